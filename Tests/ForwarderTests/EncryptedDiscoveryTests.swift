// EncryptedDiscoveryTests.swift -- which encrypted listeners of a configuration clients learn of.

import Configuration
import DNSWire
import Routing
import Testing

@testable import Forwarder

@Suite struct `Discovery by the configuration` {
  private func encrypted(_ change: (inout Configuration.Encrypted) -> Void = { _ in }) -> Configuration.Encrypted {
    var encrypted = Configuration().encrypted
    encrypted.name = DomainName(text: "dns.example.com")
    encrypted.doh = ["0.0.0.0:443", "[::]:443", "192.0.2.1:8443"].map { Endpoint(text: $0)! }
    encrypted.dot = ["192.0.2.1:853", "[2001:db8::1]:853"].map { Endpoint(text: $0)! }
    encrypted.dohPlain = [Endpoint(text: "127.0.0.1:8053")!]
    change(&encrypted)
    return encrypted
  }

  /// The texts of the answer to `_dns.resolver.arpa SVCB`; nil for NODATA.
  private func answer(_ encrypted: Configuration.Encrypted) -> [String]? {
    let table = RouteTable(
      rules: [], hosts: HostsFile(), settings: SpecialNamesSettings(designated: DesignatedResolver(encrypted)))
    let name = DomainName(text: "_dns.resolver.arpa")!.octets
    let found = name.withUnsafeBufferPointer {
      table.find($0.baseAddress!, length: $0.count, type: RecordType.svcb.rawValue)
    }
    guard case .local(let index) = found.decision else { return nil }
    let records = table.localAnswers[Int(index)].records
    return records.isEmpty ? nil : records.map { RDATA.text($0.rdata, type: $0.type) }
  }

  @Test func `each port of DoH and DoT is named once, with the addresses that are no wildcards`() {
    let hints = "ipv4hint=192.0.2.1 ipv6hint=2001:db8::1"
    #expect(
      answer(encrypted()) == [
        "1 dns.example.com. alpn=h2 port=443 \(hints) dohpath=/dns-query{?dns}",
        "1 dns.example.com. alpn=h2 port=8443 \(hints) dohpath=/dns-query{?dns}",
        "2 dns.example.com. alpn=dot port=853 \(hints)",
      ])
  }

  @Test func `published addresses take the place of the listeners'`() {
    let answer = answer(encrypted { ($0.doh, $0.published) = ([], [IPAddress(text: "198.51.100.9")!]) })
    #expect(answer == ["2 dns.example.com. alpn=dot port=853 ipv4hint=198.51.100.9"])
  }

  @Test func `nothing is named without a name, with tokens, without ddr, or without a listener with TLS`() {
    #expect(answer(encrypted { $0.name = nil }) == nil)
    #expect(answer(encrypted { $0.tokensFile = "/etc/httpdnsd/tokens" }) == nil)
    #expect(answer(encrypted { $0.ddr = false }) == nil)
    #expect(answer(encrypted { ($0.doh, $0.dot) = ([], []) }) == nil)
    #expect(
      answer(encrypted { ($0.doh, $0.dot) = ([], [Endpoint(address: IPAddress(text: "192.0.2.1")!, port: 0)]) }) == nil)
    #expect(answer(Configuration().encrypted) == nil)
  }
}
