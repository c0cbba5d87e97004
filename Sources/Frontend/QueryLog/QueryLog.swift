// QueryLog.swift -- logs one line for each answered query, if the operator enables it, and feeds `httpdnsd tail`.
//
// Resolver's loop only. Listener threads leave the queries that they answer in their taps and wake the loop, which
// takes them a moment later: many at a time, in the order of their answers, and up to a limit of lines a second.
// Queries beyond that are counted and reported.

import CSocket
import DNSWire
import EventLoop
import Glibc
import Logging
import Telemetry

/// The query log; off unless the configuration enables it.
package final class QueryLog {
  /// The most lines a second: the journal takes a few thousand.
  package static let linesPerSecond = 5000
  /// How long queries wait in the taps before the loop takes them.
  private static let pause = Duration.milliseconds(100)
  private static let linesPerPause = linesPerSecond / 10
  /// A thread may publish its queries this much later than another thread that answered after it.
  private static let holdBack = Duration.milliseconds(20)
  /// The most queries that wait to be put in order.
  static let mostPending = 16_384
  /// Shortest time between two reports of queries that were not logged.
  private static let reportPause = Duration.seconds(1)

  /// Whether queries are logged.
  package private(set) var isOn = false
  /// The rules' names by their counters, for the lines of the log.
  package var rules = RuleNames()
  /// The labels of clients' tokens; nil without tokens.
  package var tokens: TokenLabels?
  private let loop: EventLoop
  private var output: LogOutput?
  private var taps: [(tap: QueryTap, leftOut: Int)] = []
  private var watches: [QueryWatch] = []
  /// Answered queries that are not passed on yet, unordered.
  private var pending: [LoggedQuery] = []
  private var clock = LogClock()
  /// Lines that may still be written in the pause that began at `pauseBegan`.
  private var left = 0
  private var pauseBegan: BootInstant?
  private var notLogged = 0
  private var reportedAt: BootInstant?
  private let timer = OwnedTimer()

  package init(_ loop: EventLoop) { self.loop = loop }

  /// Whether the log or a watch needs queries.
  private var isWanted: Bool { isOn || !watches.isEmpty }

  /// Makes a tap for one more listener thread. Call it before the threads run.
  package func makeTap() -> QueryTap {
    let tap = QueryTap()
    taps.append((tap, 0))
    return tap
  }

  /// Switches the log on or off; passes on pending queries before it goes off.
  package func setOn(_ isOn: Bool, writingTo output: LogOutput) {
    loop.assertCurrent()
    self.output = output
    if self.isOn, !isOn { finish() }
    self.isOn = isOn
    setTaps()
  }

  /// Passes queries that are answered from now on to a watch.
  package func add(_ watch: QueryWatch) {
    loop.assertCurrent()
    // The watch does not get queries that were answered before.
    finish()
    watches.append(watch)
    setTaps()
  }

  /// Removes a watch, which receives nothing more.
  package func remove(_ watch: QueryWatch) {
    loop.assertCurrent()
    watches.removeAll { $0 === watch }
    setTaps()
  }

  /// Passes on all queries that were answered so far.
  package func finish() {
    loop.assertCurrent()
    drain(upTo: BootInstant(nanoseconds: .max))
  }

  /// Checks, in each turn of the loop, whether there are queries to pass on, and does so a moment later.
  package func turn() {
    loop.assertCurrent()
    guard isWanted, !timer.isSet, notLogged > 0 || !pending.isEmpty || taps.contains(where: \.tap.hasUnread) else {
      return
    }
    timer.set(after: QueryLog.pause, on: loop, for: self) {
      $0.drain(upTo: BootInstant(nanoseconds: BootInstant.now.nanoseconds - QueryLog.holdBack.nanoseconds))
    }
  }

  /// Adds a query that was answered on the loop. Evaluates `query` only if the log or a watch needs it.
  func add(_ query: @autoclosure () -> LoggedQuery) {
    loop.assertCurrent()
    guard isWanted else { return }
    if pending.count >= QueryLog.mostPending { finish() }
    pending.append(query())
  }

  private func setTaps() { for (tap, _) in taps { tap.setOn(isWanted) } }

  /// Passes on the queries that were answered up to `end`, in the order of their answers.
  private func drain(upTo end: BootInstant) {
    var leftOut = 0
    for index in taps.indices {
      let tap = taps[index].tap
      tap.clearUnread()
      while let query = tap.take({ LoggedQuery($0, name: $1) }) { pending.append(query) }
      leftOut += tap.takeLeftOut(&taps[index].leftOut)
    }
    pending.sort { $0.answeredAt < $1.answeredAt }
    let ready = pending.prefix { $0.answeredAt <= end }
    clock.look()
    if isOn {
      notLogged += leftOut
      for query in ready { write(query) }
    }
    for watch in watches { watch.take(ready, clock, rules, tokens, missing: leftOut) }
    pending.removeFirst(ready.count)
    report()
  }

  private func write(_ query: LoggedQuery) {
    if pauseBegan.map({ loop.now - $0 >= QueryLog.pause }) ?? true {
      pauseBegan = loop.now
      left = QueryLog.linesPerPause
    }
    guard left > 0, output?.write(query.line(clock, rules, tokens), .minor) ?? false else {
      notLogged += 1
      return
    }
    left -= 1
  }

  private func report() {
    guard notLogged > 0 else { return }
    if let reportedAt, loop.now - reportedAt < QueryLog.reportPause { return }
    reportedAt = loop.now
    let reason = "above \(QueryLog.linesPerSecond) lines a second, or the log's reader is stalled"
    let line = LogLine(time: .now, level: .warning, message: "\(notLogged) queries were not logged: \(reason)")
    if output?.write(line) ?? false { notLogged = 0 }
  }
}

/// The wall clock, derived from the boot-time clock. It changes only in steps, so that two instants keep their order.
struct LogClock {
  /// The wall-clock time at which the boot-time clock began, in nanoseconds since 1970.
  private var offset = LogClock.present

  /// A difference up to this, in nanoseconds, comes from reading the two clocks one after the other.
  private static let tolerance: Int64 = 1_000_000

  private static var present: Int64 { LogTime.now.nanoseconds - BootInstant.now.nanoseconds }

  /// Follows the wall clock if that was set.
  mutating func look() {
    let present = LogClock.present
    if abs(present - offset) > LogClock.tolerance { offset = present }
  }

  /// The wall-clock time of an instant.
  func time(of instant: BootInstant) -> LogTime { LogTime(nanoseconds: instant.nanoseconds + offset) }
}
