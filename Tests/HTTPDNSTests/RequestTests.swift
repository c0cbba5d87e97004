// RequestTests.swift -- what dialects send, and what they never send.

import Ciphers
import DNSWire
import HTTPMessage
import Testing

@testable import Configuration
@testable import HTTPDNS

@Suite struct RequestTests {
  let signed = AliDNSDialect(
    account: Configuration.AliDNSAccount(
      accountID: "acc&count", accessKeyID: "key id/+", accessKeySecret: Secret("canary-secret")),
    isEncrypted: false)

  @Test func `a name is sent in lower case and without its final dot`() {
    let target = generic.request(for: question("WWW.Example.COM."), unixTime: 0).target
    #expect(target == "/dns-query?name=www.example.com&type=1")
  }

  @Test func `DO, CD and a subnet are sent only when they are asked for`() {
    var asked = question("www.example.com", .aaaa, dnssecOK: true, subnet: "2001:db8::/56")
    asked.checkingDisabled = true
    #expect(
      generic.request(for: asked, unixTime: 0).target
        == "/dns-query?name=www.example.com&type=28&do=1&cd=1&edns_client_subnet=2001:db8::/56")
    #expect(
      cloudflare.request(for: asked, unixTime: 0).target == "/dns-query?name=www.example.com&type=28&do=1&cd=1")
    #expect(
      alidns.request(for: asked, unixTime: 0).target
        == "/resolve?name=www.example.com&type=28&edns_client_subnet=2001:db8::/56")
  }

  @Test func `JSON requests have the media type that every service accepts`() {
    let request = cloudflare.request(for: question("www.example.com"), unixTime: 0)
    #expect(request.fields.map { "\($0.name): \($0.value)" } == ["Accept: application/dns-json"])
  }

  @Test func `requests to Google have a multiple of 128 octets whatever the name`() {
    for length in 1...63 {
      let name = String(repeating: "a", count: length) + ".example.com"
      let target = google.request(for: question(name), unixTime: 0).target
      #expect(target.utf8.count % 128 == 0, "\(length)")
      #expect(target.utf8.count <= 256)
      #expect(target.contains("&random_padding="))
    }
  }

  @Test func `a path that has a query of its own gets the parameters behind it`() {
    let dialect = JSONDialect(flavour: .generic, path: "/dns?profile=1")
    #expect(
      dialect.request(for: question("example.com"), unixTime: 0).target == "/dns?profile=1&name=example.com&type=1")
  }

  @Test(arguments: [
    ("dns.google", "/resolve", JSONDialect.Flavour.google), ("DNS.GOOGLE", "/resolve", .google),
    ("8.8.8.8", "/resolve", .google), ("cloudflare-dns.com", "/dns-query", .cloudflare),
    ("security.cloudflare-dns.com", "/dns-query", .cloudflare), ("1.1.1.1", "/dns-query", .cloudflare),
    ("doh.pub", "/dns-query", .generic), ("dns.google.example", "/resolve", .generic),
    ("notcloudflare-dns.com", "/dns-query", .generic),
  ])
  func `the flavour of a service follows from its address`(host: String, path: String, flavour: JSONDialect.Flavour) {
    #expect(JSONDialect.Flavour(host: host, path: path) == flavour)
  }

  @Test func `values from the configuration are percent-encoded and cannot add parameters`() {
    let target = signed.request(for: question("www.example.com"), unixTime: 1_700_000_000).target
    #expect(target.contains("&uid=acc%26count&ts=1700000000&key="))
    #expect(target.hasSuffix("&ak=key%20id%2F%2B"))
  }

  @Test func `alidns costs five units over HTTPS and one over HTTP, public services none`() {
    #expect(alidns.billing.unitsPerTransfer == 5)
    #expect(signed.billing.unitsPerTransfer == 1)
    let byName = Billing(unitsPerTransfer: 1, unitsPerName: 5, unitsPerAnswer: 2, source: "a test")
    #expect(byName.units(answers: 0) == 6 && byName.units(names: 3, answers: 4) == 24)
    #expect(google.billing == .free && post.billing == .free)
  }

  @Test func `of all octets only letters, digits, hyphens and underscores get into a URL of alidns`() {
    var served: [UInt8] = []
    for octet in UInt8.min...UInt8.max {
      let name = DomainName(unchecked: [3, 0x61, octet, 0x62, 3, 0x63, 0x6f, 0x6d, 0])
      let asked = HTTPDNSQuestion(name: name, type: .a)
      for dialect in [shortAliDNS, signed] as [any Dialect] { #expect(dialect.serves(asked) == alidns.serves(asked)) }
      for dialect in [google, cloudflare, generic, post] as [any Dialect] { #expect(dialect.serves(asked)) }
      guard alidns.serves(asked) else { continue }
      served.append(octet)
      let target = generic.request(for: asked, unixTime: 0).target
      #expect(target == "/dns-query?name=a\(Character(Unicode.Scalar(asciiLowercase(octet))))b.com&type=1")
    }
    #expect(
      String(decoding: served, as: UTF8.self) == "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
  }

  @Test func `types that no record has are not served, and the root not by alidns`() {
    for type in [0, 41, 128, 251, 252, 255] as [UInt16] {
      for dialect in [google, alidns, shortAliDNS, post] as [any Dialect] {
        #expect(!dialect.serves(question("example.com", RecordType(type))))
      }
    }
    for dialect in [google, cloudflare, generic, alidns] as [any Dialect] {
      #expect(dialect.serves(question("example.com", RecordType(65_534))))
    }
    for dialect in [google, cloudflare, generic, post] as [any Dialect] { #expect(dialect.serves(question(".", .ns))) }
    #expect(!alidns.serves(question(".", .ns)))
    #expect(shortAliDNS.serves(question("example.com", .aaaa)))
    #expect(!shortAliDNS.serves(question("example.com", .txt)))
  }

  @Test func `a secret stands in no description and a query in no log form`() {
    let request = signed.request(for: question("private.example.com"), unixTime: 1_700_000_000)
    let key = request.target.split(separator: "key=").last!.prefix(64)
    var shown = "\(request) \([request]) \(signed) \(String(reflecting: request)) \(String(reflecting: signed))"
    dump(request, to: &shown)
    dump(signed, to: &shown)
    dump([signed], to: &shown)
    #expect(shown.contains("GET /resolve"))
    for hidden in ["canary-secret", "private", "acc&count", "acc%26count", "key id", String(key)] {
      #expect(!shown.contains(hidden), "\(hidden)")
    }
    #expect(!request.target.contains("canary-secret"))
  }
}
