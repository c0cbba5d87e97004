// NamesAheadTests.swift -- names that are prefetched before a client asks for them.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct NamesAheadTests {
  private func configuration(_ simulator: Simulator) -> String {
    var settings = Settings(Settings.json(simulator.http))
    settings.more = """
      [refresh]
      keep = ["n1.bench.example"]
      preload = ["n2.bench.example", "n3.bench.example"]
      min_ttl = "1s"
      """
    return settings.text
  }

  @Test func `names are prefetched at start without delaying readiness`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.fault("kind=delay&ms=700")
      let (daemon, duration) = try timed { try lab.daemon(configuration(simulator)) }
      #expect(!daemon.log.contains(" resolved at start"))
      try daemon.waitForLog("6 of 6 names and types resolved at start in ")
      let line = try #require(daemon.log.firstMatch(of: /resolved at start in (\d+) ms/))
      #expect(try #require(Int(line.1)) >= 690)
      #expect(duration < .seconds(8))
      #expect(try simulator.count.transfers == 6)
      // What has been resolved is at hand, for a client that will not wait for a slow provider.
      for index in 1...3 {
        let (reply, duration) = try timed { try ask(daemon.address, "n\(index).bench.example") }
        #expect(reply.data == ["198.18.0.\(index)"])
        #expect(duration < .milliseconds(600))
      }
      #expect(try simulator.count.transfers == 6)
    }
  }

  @Test func `keep list names that failed at start are fetched as soon as possible`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.fault("kind=status&code=500")
      let daemon = try lab.daemon(configuration(simulator))
      try daemon.waitForLog("0 of 6 names and types resolved at start in ")
      try simulator.clearFaults()
      let asked = try simulator.count.transfers
      try eventually("both types of the name", within: .seconds(15)) {
        let kept = try simulator.requests.dropFirst(asked).filter { $0.name?.hasPrefix("n1.bench.example") ?? false }
        return Set(kept.compactMap(\.type)).count == 2 ? true : nil
      }
    }
  }
}
