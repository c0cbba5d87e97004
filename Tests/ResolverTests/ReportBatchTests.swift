// ReportBatchTests.swift -- bodies of `POST /report`.

import DNSWire
import Ranking
import Testing

@testable import Resolver

@Suite struct `A batch of reports` {
  private func refusal(_ body: String) -> String? {
    do throws(ReportBatch.Refusal) {
      _ = try ReportBatch(Array(body.utf8))
      return nil
    } catch { return error.reason }
  }

  private func item(
    name: String = #""www.example.com""#, address: String = #""192.0.2.1""#, result: String = #""ok""#,
    rest: String = ""
  ) -> String {
    #"{"name":\#(name),"address":\#(address),"result":\#(result)\#(rest)}"#
  }

  @Test func `has names, addresses, results and round trips`() throws {
    let items = [
      item(rest: #","ms":23"#), item(name: #""WWW.Example.COM.""#, address: #""2001:db8::1""#, result: #""failed""#),
    ]
    let batch = try ReportBatch(Array(#"{"reports":[\#(items.joined(separator: ","))]}"#.utf8))
    let name = try #require(DomainName(text: "www.example.com"))
    #expect(
      batch.reports == [
        AddressReport(name: name, address: IPAddress(text: "192.0.2.1")!, result: .works(milliseconds: 23)),
        AddressReport(name: name, address: IPAddress(text: "2001:db8::1")!, result: .failed),
      ])
  }

  @Test func `101 items, another form, or no JSON is refused as a whole, with the place`() {
    #expect(refusal("") == "the body is not JSON")
    #expect(refusal("[") == "the body is not JSON")
    #expect(refusal("[]") == "\"reports\" is not an array with at least one report")
    #expect(refusal(#"{"reports":[]}"#) == "\"reports\" is not an array with at least one report")
    let many = Array(repeating: item(), count: 101).joined(separator: ",")
    #expect(refusal(#"{"reports":[\#(many)]}"#) == "101 reports; at most 100 at once")
    #expect(refusal(String(repeating: " ", count: 16_385)) == "16385 octets; at most 16384")
    for (broken, reason) in [
      (item(name: #""a..b""#), "reports[#2].name: not a domain name"),
      (item(name: "1"), "reports[#2].name: not a domain name"),
      (item(address: #""192.0.2""#), "reports[#2].address: not an IP address"),
      (item(result: #""bad""#), "reports[#2].result: expected \"ok\" or \"failed\""),
      (item(result: #""failed""#, rest: #","ms":7"#), "reports[#2].ms: only with \"result\": \"ok\""),
      (item(rest: #","ms":-1"#), "reports[#2].ms: not an integer from 0 to 3600000"),
      (item(rest: #","ms":1.5"#), "reports[#2].ms: not an integer from 0 to 3600000"),
      ("7", "reports[#2].name: not a domain name"),
    ] { #expect(refusal(#"{"reports":[\#(item()),\#(broken)]}"#) == reason) }
  }
}
