// HotNameTests.swift -- names in use are refreshed before they expire: no client waits, and it ends.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct HotNameTests {
  /// A daemon that refreshes also what lives for a second or two, and never gives stale data.
  private func daemon(_ lab: Lab, _ simulator: Simulator, _ refresh: String) throws -> Daemon {
    var settings = Settings(Settings.json(simulator.http))
    settings.more = "[refresh]\nmin_ttl = \"1s\"\n\(refresh)\n[cache]\nstale = \"off\""
    return try lab.daemon(settings.text)
  }

  /// Asks for a name until it is hot.
  private func heat(_ server: Address, _ name: String, hits: Int) throws {
    for _ in 0...hits { #expect(try ask(server, name).code == .noError) }
  }

  /// Waits until the simulator was asked nothing for some time; what it was asked until then.
  private func whenQuiet(_ simulator: Simulator, for seconds: Double, within limit: Duration) throws -> [Simulator
    .Request]
  {
    var last = (count: -1, since: ContinuousClock.now)
    return try eventually("nothing is asked any more", within: limit) {
      let requests = try simulator.requests
      if requests.count != last.count { last = (requests.count, .now) }
      return ContinuousClock.now - last.since >= .seconds(seconds) ? requests : nil
    }
  }

  @Test func `no client waits for a hot name over five TTLs`() throws {
    let ttl = 12
    // Longer than a busy machine may take for an answer from the cache.
    let delay = 1000
    try withLab { lab in
      let simulator = try lab.simulator()
      let server = try daemon(lab, simulator, "types = [\"A\"]").address
      try ask(server, "ttl-\(ttl).example")
      // From here on the provider is slower than any answer from the cache.
      try simulator.fault("kind=delay&ms=\(delay)")
      let start = ContinuousClock.now
      var slowest = Duration.zero
      try eventually("five TTLs", within: .seconds(ttl * 5 + 10)) {
        let (reply, duration) = try timed { try ask(server, "ttl-\(ttl).example") }
        #expect(reply.code == .noError && reply.data.count == 1 && reply.errors.isEmpty)
        slowest = max(slowest, duration)
        return ContinuousClock.now - start >= .seconds(ttl * 5) ? true : nil
      }
      #expect(slowest < .milliseconds(delay))
      // Each at 0.675 to 0.825 of the TTL after the answer before it, which all but the first brought late.
      let times = try simulator.requests.map(\.time)
      #expect((6...9).contains(times.count), "\(times)")
      for (index, (earlier, later)) in zip(times, times.dropFirst()).enumerated() {
        let gap = later - earlier - (index == 0 ? 0 : delay)
        #expect(gap >= ttl * 670, "\(times)")
        #expect(gap < ttl * 900, "\(times)")
      }
    }
  }

  @Test func `an unused name is refreshed give_up_after times`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let server = try daemon(lab, simulator, "give_up_after = 2\nhot_hits = 3").address
      try heat(server, "ttl-2.example", hits: 3)
      // Not hot: two hits are one too few.
      try heat(server, "n1.bench.example", hits: 2)
      try simulator.setZone("cool.example. 2 A 192.0.2.1")
      try heat(server, "cool.example", hits: 2)
      let requests = try whenQuiet(simulator, for: 3, within: .seconds(15))
      #expect(requests.filter { $0.name == "ttl-2.example" || $0.name == "ttl-2.example." }.count == 3)
      #expect(requests.count == 5, "\(requests.map(\.name))")
      // It has expired by now, as any other name.
      try ask(server, "ttl-2.example")
      #expect(try simulator.count.transfers == 6)
    }
  }

  @Test func `refreshing never costs more transfers than its budget`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.setZone((0..<10).map { "b\($0).example. 3 A 192.0.2.\($0)" }.joined(separator: "\n"))
      let server = try daemon(lab, simulator, "budget_per_minute = 4\nhot_hits = 1\nbatch = false").address
      for index in 0..<10 { try heat(server, "b\(index).example", hits: 1) }
      #expect(try simulator.count.transfers == 10)
      // Ten names are due within the next three seconds.
      let requests = try whenQuiet(simulator, for: 4, within: .seconds(15))
      #expect(requests.count == 14)
    }
  }
}
