// StoreClockSync.swift -- measures the store's clock, by which all daemons of a fleet tell the age of a value.
//
// `FleetLevel` owns it. Resolver's loop only.

import EventLoop
import Files
import Store

/// The store's time, measured again over each connection, after each sleep, and on the first use after an hour.
final class StoreClockSync {
  private let loop: any Loop
  private let link: any StoreLink
  private let hasSecret: Bool
  private let note: (FleetNote) -> Void
  private var estimate = StoreClock()
  /// When the `TIME` in flight was sent; nil for none.
  private var askedAt: BootInstant?
  /// Replies in this measurement, and the shortest round trip among them; the estimate is taken from that one.
  private var measurements = 0
  private var shortestRoundTrip: Duration?
  /// The difference in the last log line about it, in seconds; nil if the clocks agree.
  private var loggedDifference: Int64?
  /// Called with each new estimate. If the clock was set back, `steppedFrom` is what it would show otherwise, in
  /// milliseconds: values stored before that time seem younger than they are.
  var onEstimate: ((_ steppedFrom: Int64?) -> Void)?

  /// The clock's difference is logged again if it has changed by more than this, in seconds.
  private static let smallChange: Int64 = 60
  /// The measurement ends with a round trip of at most this. The error of the estimate is up to half the round trip.
  private static let shortRoundTrip = Duration.milliseconds(10)
  /// Replies after a longer round trip are ignored.
  private static let longestRoundTrip = Duration.seconds(1)
  /// The most requests of one measurement.
  private static let mostMeasurements = 5

  init(hasSecret: Bool, over link: any StoreLink, on loop: any Loop, note: @escaping (FleetNote) -> Void) {
    (self.hasSecret, self.link, self.loop, self.note) = (hasSecret, link, loop, note)
  }

  /// Milliseconds of the store's clock; nil if unknown.
  var time: Int64? { time(at: loop.now) }

  func time(at instant: BootInstant) -> Int64? { estimate.time(at: instant.nanoseconds) }

  /// By how many seconds the store's clock is ahead of this machine's; nil if unknown.
  var difference: Int64? { estimate.difference }

  /// Whether the difference is too large; false if unknown.
  var isOff: Bool { estimate.isOff }

  /// Whether the store is refused for its clock: a false time could extend the life of old values. Without a secret the
  /// store can forge values anyway.
  var isRefused: Bool { isOff && hasSecret }

  /// Discards the estimate and measures the clock: the connection is new, or the machine was suspended.
  func restart() {
    estimate.invalidate()
    askedAt = nil
    ask()
  }

  /// Measures the clock if the estimate is missing or old.
  func measureIfDue() { if estimate.isDue(at: loop.now.nanoseconds) { ask() } }

  /// Sends `TIME`, unless a request is in flight.
  private func ask() {
    guard link.isUp, askedAt == nil else { return }
    if estimate.isDue(at: loop.now.nanoseconds) { (shortestRoundTrip, measurements) = (nil, 0) }
    let sentAt = loop.preciseNow
    askedAt = sentAt
    link.post(StoreCommand.time.words()) { [weak self] in self?.received($0, sentAt) }
  }

  private func received(_ result: Result<RESPValue, StoreFailure>, _ sentAt: BootInstant) {
    guard askedAt == sentAt else { return }
    askedAt = nil
    let now = loop.preciseNow
    let roundTrip = now - sentAt
    guard roundTrip < StoreClockSync.longestRoundTrip, case .success(.array(let parts)) = result, parts.count == 2,
      let seconds = StoreClockSync.number(parts[0], in: NumberRange.seconds),
      let microseconds = StoreClockSync.number(parts[1], in: 0...999_999)
    else { return }
    measurements += 1
    defer {
      if roundTrip > StoreClockSync.shortRoundTrip, measurements < StoreClockSync.mostMeasurements { ask() }
    }
    if let shortestRoundTrip, shortestRoundTrip <= roundTrip { return }
    shortestRoundTrip = roundTrip
    let steppedFrom = estimate.update(
      milliseconds: seconds * 1_000 + microseconds / 1_000, sentAt: sentAt.nanoseconds, now: now.nanoseconds,
      wallTime: loop.wallTime)
    onEstimate?(steppedFrom)
    logDifference()
  }

  private func logDifference() {
    guard isOff, let difference else {
      loggedDifference = nil
      return
    }
    // Each new connection measures the clock again: do not repeat the line.
    if let loggedDifference, abs(difference - loggedDifference) <= StoreClockSync.smallChange { return }
    loggedDifference = difference
    let direction = difference > 0 ? "ahead of" : "behind"
    let text = "the store's clock is \(abs(difference)) s \(direction) this machine's"
    note(FleetNote(text: "\(text)\(hasSecret ? ": the store is not used" : ""); set both clocks by NTP"))
  }

  private static func number(_ value: RESPValue, in range: ClosedRange<Int64>) -> Int64? {
    guard case .bulk(let octets) = value else { return nil }
    return String(decoding: octets, as: UTF8.self).number(in: range)
  }
}
