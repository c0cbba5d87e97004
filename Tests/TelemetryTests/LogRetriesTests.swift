// LogRetriesTests.swift -- a reader that falls behind repeatedly causes one chain of retries only.

import Logging
import Telemetry
import Testing

@Suite struct LogRetriesTests {
  /// A loop whose turns the test controls.
  private final class Turns {
    var waiting: [() -> Void] = []
    var scheduled = 0

    func turn() {
      let due = waiting
      waiting = []
      for action in due { action() }
    }
  }

  @Test func `a reader that falls behind again and again starts one chain of timers`() throws {
    let pipe = try LogPipe()
    let log = LogOutput(LogThreshold(.info), descriptor: pipe.writeEnd, isJournal: false)
    let turns = Turns()
    let retries = LogRetries(attempt: log.retry) { action in
      turns.scheduled += 1
      turns.waiting.append(action)
    }
    let line = LogLine(time: .now, level: .info, message: String(repeating: "x", count: 1000))
    let begins = Begins()
    log.whenBehind { begins.count += 1 }
    for round in 1...20 {
      // The pipe is full; then there is room, a line goes through, and it is full again before the timer fires.
      for _ in 0..<100 { log.write(line) }
      while begins.count > 0 {
        begins.count -= 1
        retries.begin()
      }
      #expect(turns.waiting.count == 1 && turns.scheduled == 1, "round \(round)")
      var rest = pipe.read()
      while !log.retry() { rest = pipe.read() }
      #expect(!rest.isEmpty)
    }
    _ = pipe.read()
    turns.turn()
    #expect(turns.waiting.isEmpty && turns.scheduled == 1)
    for _ in 0..<100 { log.write(line) }
    retries.begin()
    turns.turn()
    #expect(turns.waiting.count == 1 && turns.scheduled == 3)
  }

  private final class Begins: @unchecked Sendable { var count = 0 }
}
