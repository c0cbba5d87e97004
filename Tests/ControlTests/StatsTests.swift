// StatsTests.swift -- the counters under the names that Alibaba's SDKs give them.

import DNSWire
import EventLoop
import Testing
import Upstreams

@testable import BusyNames
@testable import Control
@testable import Resolver
@testable import Forwarder

@Suite struct `The daemon's numbers` {
  /// As `getRequestReportInfo` has them.
  private static let names = [
    "avgRtt", "cacheDnsNum", "gobackLocaldnsNum", "localErro", "maxRtt", "noPermissionErro", "noResponseErro",
    "requestPDnsNum", "sp", "successNum", "timeoutErro", "urlParameterErro", "urlPathErro",
  ]

  private func answers() -> Answers {
    var counts = NameCounts()
    counts.asked(nil, rtt: 12_300_000)
    counts.asked(.noResponse(.timeout), rtt: nil)
    counts.asked(nil, rtt: 14_300_000)
    counts.cacheDnsNum = 1000
    counts.wentToLocalDNS(isAnswered: true)
    var answers = Answers()
    answers.numbers.counts = counts
    answers.names = [
      NameReport(name: DomainName(text: "www.example.com")!, type: .aaaa, time: .seconds(90), counts: counts),
      NameReport(name: DomainName(text: "none.example")!, type: RecordType(0), time: .zero, counts: NameCounts()),
    ]
    return answers
  }

  @Test func `statistics of all names have the names and units of the SDKs`() throws {
    let scene = try ControlScene(answers())
    let text = try scene.client.stats(byName: false, .text).content
    for (name, value) in [("avgRtt", "13.3 ms"), ("maxRtt", "14.3 ms"), ("cacheDnsNum", "1000"), ("sp", "eth0")] {
      #expect(text.split(separator: "\n").contains { $0.hasPrefix("\(name) ") && $0.hasSuffix(" \(value)") })
    }
    #expect(text.contains("\n\ncounters of Alibaba's SDKs\navgRtt "), "\(text)")
    let json = try scene.client.stats(byName: false, .json).content
    for name in `The daemon's numbers`.names { #expect(json.contains("\"\(name)\":")) }
    #expect(json.contains("\"avgRtt\":13.3,") && json.contains("\"uptime_seconds\":10,"))
  }

  @Test func `each of the busiest names has a line, or an object with its type as a number`() throws {
    let scene = try ControlScene(answers())
    let lines = try scene.client.stats(byName: true, .text).content.split(separator: "\n").map(String.init)
    #expect(lines.count == 3)
    #expect(lines[0].split(separator: " ").map(String.init) == ["domain", "type"] + `The daemon's numbers`.names)
    #expect(lines[1].hasPrefix("www.example.com.  AAAA ") && lines[2].hasPrefix("none.example.     NXDOMAIN  -"))
    let json = try scene.client.stats(byName: true, .json).content
    let beginning = "{\"names\":[{\"domain\":\"www.example.com.\",\"type\":28,\"counted_seconds\":90,\"avgRtt\":13.3,"
    #expect(json.hasPrefix(beginning))
    #expect(json.contains("\"requestPDnsNum\":3,\"sp\":\"eth0\",\"successNum\":2,\"timeoutErro\":1,"))
  }

  @Test func `statistics of a thousand names of maximum length reach the client`() throws {
    var answers = Answers()
    let label = String(repeating: "\\000", count: 63)
    answers.names = (0..<1000).map { number in
      let last = String(repeating: "\\001", count: 58) + "\(100 + number % 900)"
      let name = DomainName(text: "\(label).\(label).\(label).\(last)")!
      return NameReport(name: name, type: .a, time: .zero, counts: NameCounts())
    }
    let scene = try ControlScene(answers)
    #expect(try scene.client.stats(byName: true, .text).content.split(separator: "\n").count == 1001)
    #expect(try scene.client.sample().names.count == 1000)
  }
}
