// FleetClock.swift -- starts to use a connection to the store, and measures the store's clock.

import EventLoop
import Files
import Store

extension FleetLevel {
  /// The clock's difference is logged again if it has changed by more than this, in seconds.
  private static let smallChange: Int64 = 60

  /// The measurement ends with a round trip of at most this. The error of the estimate is up to half the round trip.
  private static let shortRoundTrip = Duration.milliseconds(10)
  /// The most requests of one measurement.
  private static let mostMeasurements = 5

  /// The connection is up. The store may be a different one than before, or may have lost its data.
  package func connected() {
    loop.assertCurrent()
    clock.invalidate()
    (timeAskedAt, heartbeatAt, isEpochKnown) = (nil, nil, false)
    dropWrites()
    askTime()
    // Also reports the units that were spent while the store was down.
    askEpoch()
  }

  /// The machine was suspended: the estimate of the store's clock may be wrong and is measured again.
  package func hasSlept() {
    loop.assertCurrent()
    clock.invalidate()
    timeAskedAt = nil
    askTime()
  }

  /// Cancels all timers and callbacks. The link is the caller's to close.
  package func close() {
    loop.assertCurrent()
    for timer in [presence, recountTimer, flushTimer, walkTimer, writeTimer] { timer.cancel() }
    // Tasks that wait for a reply hold this object longer than the connections live.
    (flushHere, onLoss, describe) = (nil, nil, { nil })
  }

  /// Sends `TIME`, unless a request is in flight.
  func askTime() {
    guard link.isUp, timeAskedAt == nil else { return }
    if clock.isDue(at: loop.now.nanoseconds) { (shortestRoundTrip, measurements) = (nil, 0) }
    let sentAt = loop.preciseNow
    timeAskedAt = sentAt
    link.post(StoreCommand.time.words()) { [weak self] in self?.receivedTime($0, sentAt) }
  }

  private func receivedTime(_ result: Result<RESPValue, StoreFailure>, _ sentAt: BootInstant) {
    guard timeAskedAt == sentAt else { return }
    timeAskedAt = nil
    let now = loop.preciseNow
    // After a longer round trip the error of the estimate is too large.
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
    // Sends the lookup of marks before any GET. Replies come in the order of their commands, so the marks are known
    // before a value is used.
    if heartbeatAt == nil { sign() }
    guard clock.isOff, let difference = clock.difference else {
      loggedDifference = nil
      return
    }
    // Each new connection measures the clock again: do not repeat the line.
    if let loggedDifference, abs(difference - loggedDifference) <= FleetLevel.smallChange { return }
    loggedDifference = difference
    let direction = difference > 0 ? "ahead of" : "behind"
    let text = "the store's clock is \(abs(difference)) s \(direction) this machine's"
    log("\(text)\(keys.hasSecret ? ": the store is not used" : ""); set both clocks by NTP")
  }

  private static func number(_ value: RESPValue, in range: ClosedRange<Int64>) -> Int64? {
    guard case .bulk(let octets) = value else { return nil }
    return String(decoding: octets, as: UTF8.self).number(in: range)
  }
}
