// ServerListTests.swift -- the servers that Alibaba Cloud DNS publishes as SRV records.

import Configuration
import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

@Suite struct ServerListTests {
  private func srv(
    _ target: String, priority: UInt16 = 0, weight: UInt16 = 0, port: UInt16 = 443, ttl: UInt32 = 600
  ) -> ResourceRecord {
    let numbers = [priority, weight, port].flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
    return ResourceRecord(
      owner: ServerList.question.name, type: .srv, ttl: ttl, rdata: numbers + DomainName(text: target)!.octets)
  }

  private func list(_ records: [ResourceRecord]) -> ServerList? {
    try? ServerList(HTTPDNSAnswer(responseCode: .noError, answers: records, isNegative: records.isEmpty))
  }

  private func address(_ text: String, _ port: UInt16 = 443) -> ListedServer {
    ListedServer(.address(IPAddress(text: text)!), port: port)
  }

  private func name(_ text: String) -> ListedServer { ListedServer(.name(DomainName(text: text)!), port: 443) }

  @Test func `the public service is asked, unsigned`() {
    #expect(alidns.serves(ServerList.question))
    #expect(alidns.request(for: ServerList.question, unixTime: 0).target == "/resolve?name=auto.sdk.alidns.com&type=33")
  }

  @Test func `the provider's reply becomes addresses and names`() throws {
    let body = #"""
      {"Status":0,"TC":false,"Question":{"name":"auto.sdk.alidns.com.","type":33},"Answer":[
      {"name":"auto.sdk.alidns.com.","TTL":600,"type":33,"data":"3 0 443 dns.example.com.domain."},
      {"name":"auto.sdk.alidns.com.","TTL":600,"type":33,"data":"1 0 443 192.0.2.53.ipv4."},
      {"name":"auto.sdk.alidns.com.","TTL":600,"type":33,"data":"2 0 8443 2001-db8--53.ipv6."}]}
      """#
    let list = try ServerList(alidns.answer(to: ServerList.question, from: json(body)))
    #expect(list.servers == [address("192.0.2.53"), address("2001:db8::53", 8443), name("dns.example.com")])
    #expect(list.lifetime == 600)
  }

  @Test func `lower priorities come first, then higher weights, then the provider's order`() {
    let records = [
      srv("192.0.2.5.ipv4", priority: 2, weight: 9), srv("192.0.2.3.ipv4", priority: 1, weight: 1),
      srv("192.0.2.1.ipv4", priority: 1, weight: 7), srv("192.0.2.4.ipv4", priority: 1, weight: 1),
      srv("192.0.2.2.ipv4", priority: 1, weight: 7),
    ]
    #expect(list(records)?.servers == (1...5).map { address("192.0.2.\($0)") })
  }

  @Test func `eight of each kind are taken, and none twice`() {
    let records =
      (1...12).map { srv("192.0.2.\($0).ipv4") } + (1...12).map { srv("2001-db8--\($0).ipv6") }
      + (1...12).map { srv("n\($0).example.domain") }
    #expect(
      list(records + records)?.servers
        == (1...8).map { address("192.0.2.\($0)") } + (1...8).map { address("2001:db8::\($0)") }
        + (1...8).map { name("n\($0).example") })
    #expect(list([srv("192.0.2.1.ipv4"), srv("192.0.2.1.IPv4", priority: 3)])?.servers == [address("192.0.2.1")])
  }

  @Test(arguments: [
    "192.0.2.256.ipv4", "2001-db8--1.ipv4", "192.0.2.1.ipv6", "2001-db8-1.ipv6", "192.0.2.1", "dns.example.com",
    "ipv4", "domain", ".", "example.domains", #"a\.b.domain"#,
  ])
  func `targets of no known form are left out`(target: String) {
    #expect(list([srv(target)]) == nil)
    #expect(list([srv(target), srv("192.0.2.1.ipv4")])?.servers == [address("192.0.2.1")])
  }

  @Test(arguments: [
    ("192.0.2.1", true), ("10.0.0.1", true), ("172.16.0.1", true), ("192.168.1.1", true), ("100.64.0.1", true),
    ("fd00::1", true), ("2001:db8::1", true), ("dns.example", true), ("localhost.example", true),
    ("mylocalhost", true), ("127.0.0.1", false), ("127.9.9.9", false), ("0.0.0.0", false), ("169.254.169.254", false),
    ("239.0.0.1", false), ("255.255.255.255", false), ("::", false), ("::1", false), ("::ffff:127.0.0.1", false),
    ("fe80::1", false), ("ff02::1", false), ("localhost", false), ("LocalHost", false), ("a.localhost", false),
  ])
  func `a listed server may be remote unless only this machine or its link knows it`(host: String, isRemote: Bool)
    throws
  {
    #expect(ListedServer(try #require(Host(text: host))).mayBeRemote == isRemote)
  }

  @Test func `records without a port or cut short are left out`() {
    #expect(list([srv("192.0.2.1.ipv4", port: 0)]) == nil)
    for length in 0..<10 {
      var record = srv("192.0.2.1.ipv4")
      record.rdata.removeLast(record.rdata.count - length)
      #expect(list([record]) == nil)
    }
  }

  @Test func `an answer without records or with another response code is no list`() {
    #expect(list([]) == nil)
    for code in [ResponseCode.servFail, .nxDomain] {
      #expect(throws: HTTPDNSFailure.unreadable(.noServers(code))) {
        try ServerList(HTTPDNSAnswer(responseCode: code, answers: [srv("192.0.2.1.ipv4")]))
      }
    }
    #expect(list([a("auto.sdk.alidns.com", 60, "192.0.2.1")]) == nil)
  }

  @Test func `a list holds for a minute at least`() {
    #expect(list([srv("192.0.2.1.ipv4", ttl: 0)])?.lifetime == 60)
    #expect(list([srv("192.0.2.1.ipv4", ttl: 61)])?.lifetime == 61)
  }
}
