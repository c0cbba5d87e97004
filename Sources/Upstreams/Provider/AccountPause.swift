// AccountPause.swift -- when a provider is not asked because of what it says about the account.
//
// Only words that no name can provoke begin a pause: the service's own error codes for signature, account, switch and quota,
// and requests to slow down. A bare HTTP status may be a firewall's, for a single name.

import EventLoop
import FairShares
import HTTPDNS

/// The pause of a provider. Pure: times are parameters.
struct AccountPause {
  /// Whether the service asked for this time, so that it is kept; else it ends with a verdict on a trial.
  private var isAsked = false
  private var until = BootInstant(nanoseconds: .min)
  private var began = BootInstant(nanoseconds: .min)
  private var nextTrial = BootInstant(nanoseconds: .min)
  /// Pauses in a row, without a verdict in between.
  private var pauses = 0
  /// The client of the last trial, as long as neither a verdict nor a refusal has said anything about the account.
  private var undecided: UInt64?
  /// Domains with `Retry-After` since the last verdict and the last pause.
  private var throttled: Set<DomainKey> = []

  /// The first pause, and that of a used-up quota, which is often a short burst of requests.
  private static let (first, quota) = (Duration.seconds(30), Duration.seconds(5))
  /// A repaired account is used again within this time.
  private static let longest = Duration.seconds(3600)
  /// How often a question is sent as a trial.
  private static let trialInterval = Duration.seconds(30)
  /// After a trial that said nothing about the account, the next trial is reserved for other clients for this time.
  /// Otherwise a client that asks for names without answers could keep the account in its pause.
  private static let preference = Duration.seconds(5)
  /// The first and the longest pause after ENHANCE_YOUR_CALM (RFC 9113 section 7).
  private static let (calm, longestCalm) = (Duration.seconds(1), Duration.seconds(60))
  /// The bounds of `Retry-After`: with 0, requests would be refused in a tight loop.
  private static let (shortestNamed, longestNamed) = (Duration.seconds(1), Duration.seconds(86_400))
  /// `Retry-After` counts after names of this many domains: a firewall may send it for a single name.
  private static let fewDomains = 3

  /// The time left; nil if there is no pause.
  func left(now: BootInstant) -> Duration? { now < until ? until - now : nil }

  /// Whether a client's question may be sent during the pause, to see whether the account is served again.
  func mayTry(_ client: UInt64, now: BootInstant) -> Bool {
    guard !isAsked, now >= nextTrial else { return false }
    return client != undecided || now >= nextTrial + AccountPause.preference
  }

  /// The same; counts as sent.
  mutating func takeTrial(_ client: UInt64, now: BootInstant) -> Bool {
    guard mayTry(client, now: now) else { return false }
    (nextTrial, undecided) = (now + AccountPause.trialInterval, client)
    return true
  }

  /// Notes a refusal.
  ///
  /// - Returns: the length of the pause that it begins; nil if it begins none.
  mutating func refused(_ failure: HTTPDNSFailure, on domain: DomainKey, now: BootInstant) -> Duration? {
    if case .status(429, let retryAfter?) = failure {
      throttled.insert(domain)
      guard throttled.count >= AccountPause.fewDomains else { return nil }
      return begin(isAsked: true, for: min(max(retryAfter, AccountPause.shortestNamed), AccountPause.longestNamed), now)
    }
    guard failure.isOfAccount else { return nil }
    undecided = nil
    let first = failure == .quota ? AccountPause.quota : AccountPause.first
    return begin(isAsked: false, for: min(first * (1 << min(pauses, 12)), AccountPause.longest), now)
  }

  /// The server asked for fewer requests on its connection.
  ///
  /// - Returns: the length of the pause that it begins; nil during a pause.
  mutating func askedForCalm(now: BootInstant) -> Duration? {
    guard now >= until else { return nil }
    return begin(isAsked: true, for: min(AccountPause.calm * (1 << min(pauses, 12)), AccountPause.longestCalm), now)
  }

  /// Pauses for an hour: the provider's list of servers says that the service is switched off.
  mutating func switchedOff(now: BootInstant) { _ = begin(isAsked: true, for: AccountPause.longest, now) }

  /// Ends the pause: its reason is gone.
  mutating func end() { self = AccountPause() }

  /// Notes a verdict. One on a question that was sent before the pause does not end it.
  mutating func gaveVerdict(sentAt: BootInstant, now: BootInstant) {
    if !throttled.isEmpty { throttled = [] }
    guard sentAt >= began, !isAsked || now >= until else { return }
    until = now
    pauses = 0
  }

  private mutating func begin(isAsked: Bool, for length: Duration, _ now: BootInstant) -> Duration? {
    // Of requests that were in flight, only a longer time that the service asks for counts.
    if now < until {
      if isAsked { until = max(until, now + length) }
      return nil
    }
    self.isAsked = isAsked
    (began, until, nextTrial) = (now, now + length, now + AccountPause.trialInterval)
    (throttled, undecided) = ([], nil)
    pauses += 1
    return length
  }
}
