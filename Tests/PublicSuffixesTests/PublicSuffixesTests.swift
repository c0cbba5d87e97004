// PublicSuffixesTests.swift -- public suffixes, and the registered domains of names.

import CPublicSuffix
import DNSWire
import Foundation
import Testing

@testable import PublicSuffixes

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

  /// The text is there wherever Debian's package `publicsuffix` is.
  @Test(.enabled(if: SuffixFilter.shared != nil))
  func `the filter lets every name of libpsl's list pass, and few others`() throws {
    let text = try String(contentsOfFile: "/usr/share/publicsuffix/public_suffix_list.dat", encoding: .utf8)
    let filter = try #require(SuffixFilter.shared)
    var (suffixes, others, passed) = (0, 0, 0)
    var stopped: [String] = []
    for line in text.split(separator: "\n") where !line.hasPrefix("//") {
      let rule = line.drop { "!*.".contains($0) }
      for name in [
        String(rule), "www.\(rule)", "a.b.\(rule)", rule.split(separator: ".").dropFirst().joined(separator: "."),
      ] {
        let (isSuffix, mayBe) = name.withCString {
          (psl_is_public_suffix2(psl_builtin(), $0, PSL_TYPE_ANY) != 0, filter.mayContain($0))
        }
        if isSuffix {
          suffixes += 1
          if !mayBe, name.contains(".") { stopped.append(name) }
        } else {
          others += 1
          if mayBe { passed += 1 }
        }
      }
    }
    #expect(stopped.isEmpty && suffixes > 9_000)
    #expect(others > 9_000 && passed < others / 10, "\(passed) of \(others)")
  }

  @Test func `without the text there is no filter`() {
    #expect(SuffixFilter(path: "/nonexistent") == nil && SuffixFilter(path: "/dev/null") == nil)
    // Fewer names than libpsl has.
    #expect(SuffixFilter(path: "/etc/os-release") == nil)
  }

  @Test(arguments: ["github.io", "com.cn", "xn--55qx5d.cn", "ck", "www.compute.amazonaws.com"])
  func `names of the whole list are public suffixes as text`(text: String) {
    #expect(PublicSuffixes.contains(text: text))
  }

  @Test(arguments: ["example.github.io", "www.com.cn", "example.com"])
  func `names below are none`(text: String) {
    #expect(!PublicSuffixes.contains(text: text))
  }

  @Test func `the longest name has a domain`() {
    let labels = Array(repeating: "a", count: 127).joined(separator: ".")
    #expect(PublicSuffixes.domain(of: name(labels)).text == "a.a.")
  }
}
