// QueryLog.swift -- one line an answered query, for who switches it on. Resolver's loop only.
//
// Listener threads leave what they have answered in their taps and wake the loop, which takes it a moment later: many lines
// at a time, and no more than so many a second. What that leaves out is counted and said.

import CSocket
import DNSWire
import EventLoop
import Glibc
import Logging
import Telemetry

/// The query log, which is off unless somebody switches it on.
package final class QueryLog {
  /// Lines a second at most: the journal takes some thousands.
  package static let linesPerSecond = 5000
  /// How long queries wait in the taps.
  private static let pause = Duration.milliseconds(100)
  private static let linesPerPause = linesPerSecond / 10
  /// Taps that were full are told of no more often than so.
  private static let reportPause = Duration.seconds(1)

  /// Whether queries are logged.
  package private(set) var isOn = false
  private let loop: EventLoop
  private var output: LogOutput?
  private var taps: [(tap: QueryTap, leftOut: Int)] = []
  /// Lines that may be written until the pause is over that began at `pauseBegan`.
  private var left = 0
  private var pauseBegan: BootInstant?
  private var notLogged = 0
  private var reportedAt: BootInstant?
  private var timer: LoopTimer?

  package init(_ loop: EventLoop) { self.loop = loop }

  /// A tap for one more listener thread; made before the threads run.
  package func makeTap() -> QueryTap {
    let tap = QueryTap()
    taps.append((tap, 0))
    return tap
  }

  /// Switches it on or off.
  package func setOn(_ isOn: Bool, writingTo output: LogOutput) {
    self.output = output
    if self.isOn, !isOn { drain() }
    self.isOn = isOn
    for (tap, _) in taps { tap.setOn(isOn) }
  }

  /// Looks in a turn of the loop whether there may be something to log, and does so a moment later.
  package func turn() {
    guard isOn, timer == nil, notLogged > 0 || taps.contains(where: \.tap.hasNews) else { return }
    timer = loop.schedule(after: QueryLog.pause) { [unowned self] in
      timer = nil
      drain()
    }
  }

  /// Logs a query that was answered on the loop.
  func add(_ query: @autoclosure () -> LoggedQuery) {
    guard isOn else { return }
    write(query())
  }

  /// Logs what the taps hold.
  private func drain() {
    for index in taps.indices {
      let tap = taps[index].tap
      tap.clearNews()
      while let query = tap.take({ LoggedQuery($0, name: $1) }) { write(query) }
      notLogged += tap.takeLeftOut(&taps[index].leftOut)
    }
    report()
  }

  private func write(_ query: LoggedQuery) {
    if pauseBegan.map({ loop.now - $0 >= QueryLog.pause }) ?? true {
      pauseBegan = loop.now
      left = QueryLog.linesPerPause
    }
    guard left > 0, output?.write(query.line(), .minor) ?? false else {
      notLogged += 1
      return
    }
    left -= 1
  }

  private func report() {
    guard notLogged > 0 else { return }
    if let reportedAt, loop.now - reportedAt < QueryLog.reportPause { return }
    reportedAt = loop.now
    let reason = "there are more than \(QueryLog.linesPerSecond) a second, or nobody reads the log"
    let line = LogLine(time: .now, level: .warning, message: "\(notLogged) queries were not logged: \(reason)")
    if output?.write(line) ?? false { notLogged = 0 }
  }
}
