// FlushTests.swift -- `httpdnsd flush` of a full cache: no client waits for it, and nothing comes back after a restart.

import DNSWire
import Foundation
import Synchronization
import Testing

@Suite(.blocking) struct FlushTests {
  private static let entries = 100_000

  /// In a debug build on a busy machine: Benchmarks/bench/flushing.py has the figures of a release.
  private static let longestWait = Duration.seconds(1)

  @Test(arguments: [["--below", "fill.example"], []])
  func `a full cache is flushed under constant queries, and stays flushed`(names: [String]) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.setZone("*.fill.example. 3000 A 192.0.2.1\nwww.example. 3000 A 192.0.2.2")
      let file = "\(lab.folder.path)/cache"
      var settings = Settings(Settings.json(simulator.http))
      let socket = settings.openControl(in: lab)
      settings.more = "[cache]\npersist = \"\(file)\"\nmax_entries = 200000\n[refresh]\nhot_hits = 0"
      let first = try lab.daemon(settings.text)
      for name in ["abcdef.fill.example", "www.example"] { try ask(first.address, name) }
      first.end()
      try copyEntries(named: "abcdef", times: FlushTests.entries, inFile: file)

      let second = try lab.daemon(settings.text)
      try second.waitForLog(" \(FlushTests.entries + 1) entries loaded")
      #expect(try ask(second.address, "x99999.fill.example").data == ["192.0.2.1"])
      #expect(try simulator.count.transfers == 2)
      let client = try SteadyClient(second.address, "www.example")
      let (flush, duration) = try timed { try lab.run(["flush", "--socket", socket] + names) }
      let longest = try client.end()
      let left = names.isEmpty ? 0 : 1
      #expect(flush.ending == .exited(0))
      #expect(flush.output.hasPrefix("removed: \(FlushTests.entries + 1 - left) cached answers,"), "\(flush.output)")
      #expect(longest < FlushTests.longestWait, "of \(duration)")
      try second.kill()

      let third = try lab.daemon(settings.text)
      // What was asked for meanwhile may be there again.
      try third.process.wait(for: "the file", in: .error) { $0.contains(/\b(?:0 entries|1 entry) loaded/) ? true : nil }
      #expect(left == 0 || third.log.contains(" 1 entry loaded"))
      let before = try simulator.count.transfers
      for name in ["x00000.fill.example", "x99999.fill.example"] {
        #expect(try ask(third.address, name).data == ["192.0.2.1"])
      }
      #expect(try simulator.count.transfers == before + 2)
    }
  }
}

/// A client that asks for a name again as soon as it has the answer.
private final class SteadyClient: Sendable {
  private struct State {
    var longest = Duration.zero
    var failure: String?
  }

  private let state = Mutex(State())
  private let isAsking = Atomic<Bool>(true)
  private let hasEnded = DispatchSemaphore(value: 0)

  init(_ server: Address, _ name: String) throws {
    let socket = try Socket(SOCK_DGRAM)
    try socket.connect(to: server)
    Thread { [self] in
      do {
        while isAsking.load(ordering: .relaxed) {
          let query = TestQuery(name)
          let (octets, duration) = timed { () -> [UInt8]? in
            socket.send(query.octets)
            return socket.receive()
          }
          guard let octets, try Reply(octets, to: query).code == .noError else { throw Failure("no answer") }
          state.withLock { $0.longest = max($0.longest, duration) }
        }
      } catch { state.withLock { $0.failure = "\(error)" } }
      hasEnded.signal()
    }.start()
  }

  /// Asks no more.
  ///
  /// - Returns: the longest time that an answer took.
  func end() throws -> Duration {
    isAsking.store(false, ordering: .relaxed)
    hasEnded.wait()
    let state = state.withLock { $0 }
    if let failure = state.failure { throw Failure(failure) }
    return state.longest
  }
}
