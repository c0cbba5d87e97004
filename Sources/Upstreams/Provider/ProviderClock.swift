// ProviderClock.swift -- a provider's time, and when it is asked for it.

import EventLoop
import HTTPClient

/// The provider's clock, against which it checks signatures.
struct ProviderClock {
  /// Seconds by which the provider is ahead of the machine, as far as a response that may say so has said so.
  private(set) var offset: Int64 = 0
  /// Seconds by which the last response's `Date` was ahead of the time used to sign its request.
  private var difference: Int64 = 0
  /// Seconds by which the last response's `Date` was ahead of the machine's clock; nil without such a response.
  private(set) var differenceOfMachine: Int64?
  /// Whether the service has stated its time in a body. From then on the `Date` of answers, which may be another machine's,
  /// corrects nothing.
  private var isStated = false

  /// Differences up to this many seconds are not corrected: `Date` has whole seconds and some transit time.
  private static let tolerance: Int64 = 2
  /// The difference in seconds from which the log mentions it: the shortest life of a signature, UCloud's.
  private static let odd: Int64 = 60

  /// Converts to the provider's time, in seconds since 1970.
  func unixTime(wallTime: Int64) -> Int64 { wallTime + offset }

  /// The last difference in seconds, if that is large.
  var oddDifference: Int64? { abs(difference) < ProviderClock.odd ? nil : difference }

  /// Notes the `Date` of a response. Only an authenticated one corrects the clock.
  mutating func note(_ date: Int64, isAuthenticated: Bool, wallTime: Int64) {
    if isAuthenticated, !isStated { learn(date - wallTime) }
    difference = date - unixTime(wallTime: wallTime)
    differenceOfMachine = date - wallTime
  }

  /// Corrects the clock by the time of a refusal, whatever carried it.
  ///
  /// - Parameters:
  ///   - time: seconds since 1970.
  ///   - isStated: whether the service states the time in its body.
  mutating func correct(to time: Int64, isStated: Bool, wallTime: Int64) {
    self.isStated = self.isStated || isStated
    learn(time - wallTime)
    difference = time - unixTime(wallTime: wallTime)
  }

  private mutating func learn(_ difference: Int64) {
    guard abs(difference - offset) > ProviderClock.tolerance else { return }
    offset = abs(difference) > ProviderClock.tolerance ? difference : 0
  }
}

/// When a provider is asked for the time, since the machine's clock cannot be right and no certificate can be checked. The
/// certificate is checked at least against the day of the build, so that the `Date` of the response can be trusted.
struct TimeRequests {
  private let clock: CertificateClock?
  /// The earliest time for the next request; nil while one is in flight.
  private var next: BootInstant? = BootInstant(nanoseconds: .min)
  /// The pause after it, if it does not yield the time.
  private var pause = TimeRequests.shortest

  private static let (shortest, longest) = (Duration.seconds(5), Duration.seconds(60))

  init(_ clock: CertificateClock?) { self.clock = clock }

  /// Whether certificates can be checked.
  var isTimeKnown: Bool { clock?.isTimeKnown ?? true }

  /// Whether a request is due; it counts as sent then.
  mutating func take(now: BootInstant) -> Bool {
    guard let next, now >= next else { return false }
    self.next = nil
    return true
  }

  /// The request has ended. What did not reach a server cost nothing, and makes the pauses no longer.
  mutating func ended(hasReachedServer: Bool, now: BootInstant) {
    next = now + pause
    if hasReachedServer { pause = min(pause * 2, TimeRequests.longest) }
  }

  mutating func networkHasChanged() { pause = TimeRequests.shortest }
}
