// NotesTests.swift -- what of a store's life is logged.

import EventLoop
import TestSupport
import Testing

@testable import Store

@Suite struct `Lines about a store` {
  private let loop = SimulatedLoop()
  private let notes: StoreNotes
  private let lines: Lines

  private final class Lines {
    var all: [String] = []
  }

  init() {
    let lines = Lines()
    self.lines = lines
    let prefix = "store [2001:db8::1]:6379: "
    notes = StoreNotes(.tcp(host: "2001:db8::1", port: 6379), on: loop) { event in
      #expect(event.text.hasPrefix(prefix))
      lines.all.append(String(event.text.dropFirst(prefix.count)))
    }
  }

  private func down(_ text: String = "gone") { notes.down(.down, .warning, text) }

  @Test func `an outage and its end are logged, also when they follow another`() {
    for _ in 0..<4 {
      notes.up("up")
      down()
      loop.advance(by: .seconds(5))
    }
    notes.up("up")
    #expect(lines.all == Array(repeating: ["up", "gone"], count: 4).flatMap(\.self))
    // The ninth change of a minute waits, and is not lost.
    loop.advance(by: .seconds(60))
    #expect(lines.all.count == 9 && lines.all.last == "up")
    #expect(loop.timers.count == 0)
  }

  @Test func `a store that is not used has a line a minute for each kind of failure`() {
    for number in 0..<60 {
      down("\(number)")
      notes.down(.nonsense, .warning, "nonsense")
      notes.line(.writes("OOM"), .warning, "full")
      loop.advance(by: .seconds(1))
    }
    #expect(lines.all == ["0", "nonsense", "full"])
    down("later")
    #expect(lines.all.last == "later" && lines.all.count == 4)
  }

  @Test func `the last line is true however fast the state changes`() {
    for endsUp in [true, false] {
      let before = lines.all.count
      for number in 0..<200 {
        down("\(number)")
        loop.advance(by: .milliseconds(300))
        notes.up("up")
        loop.advance(by: .milliseconds(300))
      }
      if !endsUp { down("at last") }
      loop.advance(by: .seconds(120))
      #expect(lines.all.last == (endsUp ? "up" : "at last"))
      // Two minutes passed before the pause, with at most eight changes each.
      #expect(lines.all.count - before <= 25)
      #expect(loop.timers.count == 0)
    }
  }

  @Test func `nothing is logged after the end`() {
    for _ in 0..<5 {
      down()
      notes.up("up")
    }
    notes.end()
    loop.advance(by: .seconds(120))
    #expect(lines.all.count == 8)
  }
}
