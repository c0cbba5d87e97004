// PublicSuffixesTests.swift -- public suffixes, and the registered domains of names.

import DNSWire
import PublicSuffixes
import Testing

@Suite struct PublicSuffixesTests {
  private func name(_ text: String) -> DomainName { DomainName(text: text)! }

  @Test(arguments: [".", "com", "COM", "com.cn", "co.uk", "Co.UK", "example", "gov.cn"])
  func `top-level domains and names of the list are public suffixes`(text: String) {
    #expect(PublicSuffixes.contains(name(text)))
  }

  @Test(arguments: ["example.com", "example.com.cn", "www.co.uk", "corp.example", "github.io", "a\\.com.cn"])
  func `a registered domain is not a public suffix`(text: String) {
    #expect(!PublicSuffixes.contains(name(text)))
  }

  @Test(arguments: [
    ("www.example.com", "example.com."), ("example.com", "example.com."), ("com", "com."), (".", "."),
    ("a.b.c.example.com", "example.com."), ("www.example.com.cn", "example.com.cn."), ("com.cn", "com.cn."),
    ("example.co.uk", "example.co.uk."), ("A.B.Example.CO.UK", "example.co.uk."), ("x.y.corp.example", "corp.example."),
    ("4.3.2.192.in-addr.arpa", "2.192.in-addr.arpa."), ("192.in-addr.arpa", "192.in-addr.arpa."),
    ("in-addr.arpa", "in-addr.arpa."),
    ("1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa", "8.b.d.0.1.0.0.2.ip6.arpa."), ("ipv4only.arpa", "ipv4only.arpa."),
  ])
  func `the domain of a name is the registered one`(text: String, domain: String) {
    #expect(PublicSuffixes.domain(of: name(text)).text == domain)
  }

  @Test func `the longest name has a domain`() {
    let labels = Array(repeating: "a", count: 127).joined(separator: ".")
    #expect(PublicSuffixes.domain(of: name(labels)).text == "a.a.")
  }
}
