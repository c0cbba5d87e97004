// QueryLog.swift -- one line for each answered query, for operators that switch it on, and queries for `httpdnsd tail`.
//
// Resolver's loop only. Listener threads leave the queries that they answer in their taps and wake the loop, which takes
// them a moment later: many at a time, in the order of their answers, and no more lines than so many a second. Queries
// that are left out are counted and reported.

import CSocket
import DNSWire
import EventLoop
import Glibc
import Logging
import Telemetry

/// The query log, which is off unless the configuration switches it on.
package final class QueryLog {
  /// Lines a second at most: the journal takes some thousands.
  package static let linesPerSecond = 5000
  /// How long queries wait in the taps.
  private static let pause = Duration.milliseconds(100)
  private static let linesPerPause = linesPerSecond / 10
  /// A thread may publish its queries so much later than another one that has answered after it.
  private static let holdBack = Duration.milliseconds(20)
  /// Queries that may wait for their place in the order.
  static let mostPending = 16_384
  /// Shortest time between two reports of queries that were left out.
  private static let reportPause = Duration.seconds(1)

  /// Whether queries are logged.
  package private(set) var isOn = false
  private let loop: EventLoop
  private var output: LogOutput?
  private var taps: [(tap: QueryTap, leftOut: Int)] = []
  private var watches: [QueryWatch] = []
  /// Answered queries that were not passed on yet, in no order.
  private var pending: [LoggedQuery] = []
  private var clock = LogClock()
  /// Lines that may be written until the pause is over that began at `pauseBegan`.
  private var left = 0
  private var pauseBegan: BootInstant?
  private var notLogged = 0
  private var reportedAt: BootInstant?
  private var timer: LoopTimer?

  package init(_ loop: EventLoop) { self.loop = loop }

  /// Whether anything needs queries.
  private var isWanted: Bool { isOn || !watches.isEmpty }

  /// A tap for one more listener thread; made before the threads run.
  package func makeTap() -> QueryTap {
    let tap = QueryTap()
    taps.append((tap, 0))
    return tap
  }

  /// Switches the log on or off.
  package func setOn(_ isOn: Bool, writingTo output: LogOutput) {
    self.output = output
    if self.isOn, !isOn { finish() }
    self.isOn = isOn
    setTaps()
  }

  /// Passes the queries that are answered from now on to a watch.
  package func add(_ watch: QueryWatch) {
    // Queries that were answered before are not for it.
    finish()
    watches.append(watch)
    setTaps()
  }

  /// Ends that; the watch gets nothing more.
  package func remove(_ watch: QueryWatch) {
    watches.removeAll { $0 === watch }
    setTaps()
  }

  /// Passes on everything that was answered so far.
  package func finish() { drain(upTo: BootInstant(nanoseconds: .max)) }

  /// Checks in a turn of the loop whether there are queries to pass on, and does so a moment later.
  package func turn() {
    guard isWanted, timer == nil, notLogged > 0 || !pending.isEmpty || taps.contains(where: \.tap.hasNews) else {
      return
    }
    timer = loop.schedule(after: QueryLog.pause) { [unowned self] in
      timer = nil
      drain(upTo: BootInstant(nanoseconds: BootInstant.now.nanoseconds - QueryLog.holdBack.nanoseconds))
    }
  }

  /// Takes a query that was answered on the loop.
  func add(_ query: @autoclosure () -> LoggedQuery) {
    guard isWanted else { return }
    if pending.count >= QueryLog.mostPending { finish() }
    pending.append(query())
  }

  private func setTaps() { for (tap, _) in taps { tap.setOn(isWanted) } }

  /// Passes on the queries that were answered by a moment, in the order of their answers.
  private func drain(upTo end: BootInstant) {
    var leftOut = 0
    for index in taps.indices {
      let tap = taps[index].tap
      tap.clearNews()
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
    for watch in watches { watch.take(ready, clock, missing: leftOut) }
    pending.removeFirst(ready.count)
    report()
  }

  private func write(_ query: LoggedQuery) {
    if pauseBegan.map({ loop.now - $0 >= QueryLog.pause }) ?? true {
      pauseBegan = loop.now
      left = QueryLog.linesPerPause
    }
    guard left > 0, output?.write(query.line(clock), .minor) ?? false else {
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

/// The wall clock beside the boot-time clock. It changes by steps only, so that two moments keep their order.
struct LogClock {
  /// Nanoseconds since 1970 when the boot-time clock began.
  private var offset = LogClock.present

  /// A difference up to this, in nanoseconds, is that of two readings.
  private static let tolerance: Int64 = 1_000_000

  private static var present: Int64 { LogTime.now.nanoseconds - BootInstant.now.nanoseconds }

  /// Follows the wall clock where that was set.
  mutating func look() {
    let present = LogClock.present
    if abs(present - offset) > LogClock.tolerance { offset = present }
  }

  /// When something happened.
  func time(of instant: BootInstant) -> LogTime { LogTime(nanoseconds: instant.nanoseconds + offset) }
}
