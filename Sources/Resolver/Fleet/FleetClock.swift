// FleetClock.swift -- the beginning of a connection to the store, and the store's time.

import EventLoop
import Files
import Fleet
import Store

extension FleetLevel {
  /// By how many seconds the difference of the store's clock has to change for another line in the log.
  private static let smallChange: Int64 = 60

  /// A round trip of `TIME` that is short enough: half of it is the error of the estimate.
  private static let shortRoundTrip = Duration.milliseconds(10)
  /// How often the time is asked for until a round trip is short.
  private static let mostMeasurements = 5

  /// The store can be used from now on: it may be another one than before, or have lost its data.
  package func connected() {
    loop.assertCurrent()
    clock.invalidate()
    (timeAskedAt, heartbeatAt, isEpochKnown) = (nil, nil, false)
    dropWrites()
    askTime()
    // What was spent meanwhile is reported then, also if nothing more is.
    askEpoch()
  }

  /// This machine has slept: its clock does not tell how long.
  package func hasSlept() {
    loop.assertCurrent()
    clock.invalidate()
    timeAskedAt = nil
    askTime()
  }

  /// Ends all timers.
  package func close() {
    loop.assertCurrent()
    for timer in [presence, recountTimer, flushTimer, walkTimer, writeTimer] { timer.cancel() }
    // Tasks that still wait for a reply outlive the connections.
    (flushHere, onLoss, describe) = (nil, nil, { nil })
  }

  /// Asks the store for its time, once at a time.
  func askTime() {
    guard link.isUp, timeAskedAt == nil else { return }
    if clock.isDue(at: loop.now.nanoseconds) { (shortestRoundTrip, measurements) = (nil, 0) }
    let sentAt = loop.preciseNow
    timeAskedAt = sentAt
    link.post([Array("TIME".utf8)]) { [weak self] in self?.receivedTime($0, sentAt) }
  }

  private func receivedTime(_ result: Result<RESPValue, StoreFailure>, _ sentAt: BootInstant) {
    guard timeAskedAt == sentAt else { return }
    timeAskedAt = nil
    let now = loop.preciseNow
    // A late answer says little about when the store wrote it.
    guard now - sentAt < .seconds(1), case .success(.array(let parts)) = result, parts.count == 2,
      let seconds = FleetLevel.number(parts[0], in: NumberRange.seconds),
      let microseconds = FleetLevel.number(parts[1], in: 0...999_999)
    else { return }
    measurements += 1
    let roundTrip = now - sentAt
    defer { if roundTrip > FleetLevel.shortRoundTrip, measurements < FleetLevel.mostMeasurements { askTime() } }
    if let shortestRoundTrip, shortestRoundTrip <= roundTrip { return }
    shortestRoundTrip = roundTrip
    let wentBackFrom = clock.update(
      milliseconds: seconds * 1_000 + microseconds / 1_000, sentAt: sentAt.nanoseconds, now: now.nanoseconds,
      wallTime: loop.wallTime)
    if let wentBackFrom {
      flushes.record(.everything, at: wentBackFrom)
      leaveMark(of: wentBackFrom)
    }
    // Before any value is used, since replies come in the order of their commands.
    if heartbeatAt == nil { sign() }
    guard clock.isOff, let difference = clock.difference else {
      loggedDifference = nil
      return
    }
    // Each new connection measures it again.
    if let loggedDifference, abs(difference - loggedDifference) <= FleetLevel.smallChange { return }
    loggedDifference = difference
    let direction = difference > 0 ? "ahead of" : "behind"
    let text = "the store's clock is \(abs(difference)) s \(direction) this machine's"
    log(
      FleetNote(
        isProblem: true, text: keys.hasSecret ? "\(text): it is not used; set the clocks" : "\(text); set the clocks"))
  }

  private static func number(_ value: RESPValue, in range: ClosedRange<Int64>) -> Int64? {
    guard case .bulk(let octets) = value else { return nil }
    return String(decoding: octets, as: UTF8.self).number(in: range)
  }
}
