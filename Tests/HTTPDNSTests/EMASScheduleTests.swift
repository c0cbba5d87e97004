// EMASScheduleTests.swift -- which servers of EMAS answer, and which a client starts with.

import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

@Suite struct EMASScheduleTests {
  let schedule = EMASSchedule(accountID: "100000")

  private func servers(_ body: String) throws -> [ListedServer] { try schedule.servers(from: json(body)) }

  private func server(_ address: String, _ port: UInt16? = nil) -> ListedServer {
    ListedServer(.address(IPAddress(text: address)!), port: port)
  }

  @Test func `the request names account and region and is not signed`() {
    #expect(schedule.request.target == "/100000/ss?region=global" && schedule.request.method == .get)
    #expect(EMASSchedule(accountID: "1/2", region: "sg").request.target == "/1%2F2/ss?region=sg")
  }

  @Test func `each server has the port at its place, or the scheme's own`() throws {
    let body = #"""
      {"service_ip":["192.0.2.1","192.0.2.2","192.0.2.3","192.0.2.4"],"service_ip_port":[8080,0,"8443"],
      "service_ipv6":["2001:db8::1","2001:db8::2"],"service_ipv6_port":[70000,443],"service_status":"enable"}
      """#
    #expect(
      try servers(body) == [
        server("192.0.2.1", 8080), server("192.0.2.2"), server("192.0.2.3", 8443), server("192.0.2.4"),
        server("2001:db8::1"), server("2001:db8::2", 443),
      ])
  }

  @Test func `entries without an address of their family are dropped with their ports`() throws {
    let body = #"""
      {"service_ip":["x",7,"2001:db8::9","192.0.2.1","192.0.2.1"],"service_ip_port":[1,2,3,4,4],"service_ipv6":"::1"}
      """#
    #expect(try servers(body) == [server("192.0.2.1", 4)])
  }

  @Test func `of each family sixteen servers are taken`() throws {
    let ipv4 = (1...40).map { #""192.0.2.\#($0)""# }.joined(separator: ",")
    let ipv6 = (1...40).map { #""2001:db8::\#($0)""# }.joined(separator: ",")
    let listed = try servers(#"{"service_ip":[\#(ipv4)],"service_ipv6":[\#(ipv6)]}"#)
    #expect(listed.count == 32)
    #expect(listed.first == server("192.0.2.1") && listed.last == server("2001:db8::16"))
  }

  @Test func `a service that is switched off has no servers`() throws {
    #expect(try servers(#"{"service_status":"disable"}"#) == [])
    let body = #"{"service_status":"disable","service_ip":["192.0.2.1"]}"#
    #expect(try servers(body) == [])
  }

  @Test(arguments: [
    "{}", "[]", #"{"service_ip":[]}"#, #"{"service_ip":["x"],"service_ipv6":[]}"#, #"{"service_ip":{}}"#,
  ])
  func `a reply without a server is no schedule`(body: String) {
    #expect(throws: HTTPDNSFailure.unreadable(.noServers(.noError))) { try schedule.servers(from: json(body)) }
  }

  @Test func `error codes and statuses count as they do in answers`() {
    let invalid = json(#"{"code":"InvalidAccount"}"#, status: 403)
    #expect(throws: HTTPDNSFailure.account) { try schedule.servers(from: invalid) }
    #expect(throws: HTTPDNSFailure.status(502)) { try schedule.servers(from: json("", status: 502)) }
    #expect(throws: HTTPDNSFailure.unreadable(.mediaType)) {
      try schedule.servers(from: json(#"{"service_ip":["192.0.2.1"]}"#, contentType: "text/html"))
    }
  }
}
