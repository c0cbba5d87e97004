// ProviderHealth.swift -- whether a provider is asked now, which of its servers first, and when it is probed.
//
// Pure: driven by a clock that is passed in, in nanoseconds.

/// Why a provider is left alone for a while although its servers reply.
public enum AsideReason: Hashable, Sendable {
  /// It refuses the credentials.
  case authentication
  /// It does not serve the account.
  case account
  /// It refuses the requests as they are made.
  case parameters
  /// It has had too many requests.
  case quota

  /// How long the first time, in nanoseconds.
  var firstPause: Int64 {
    switch self {
    case .authentication, .parameters: 30 * second
    // Mostly too many at a time, which a moment ends.
    case .quota: 5 * second
    case .account: 3600 * second
    }
  }

  /// The longest pause, in nanoseconds: a mended account is noticed within the hour.
  static let longestPause: Int64 = 3600 * second
  /// The longest pause that a provider can name, in nanoseconds.
  static let longestNamedPause: Int64 = 24 * longestPause
  /// The shortest one, in nanoseconds: `Retry-After: 0` from a busy provider must not mean one refusal after the other.
  static let shortestNamedPause: Int64 = second
}

/// What a provider is fit for.
public enum ProviderFitness: Hashable, Sendable {
  /// It is asked.
  case up
  /// Every server has failed: a probe decides when it is asked again.
  case down
  /// It is left alone until a time.
  case aside(AsideReason)
}

/// A transfer that only finds out whether a server is well again.
public struct Probe: Hashable, Sendable {
  /// When it is due, in nanoseconds.
  public var at: Int64
  /// The servers to try, in order; the first that replies ends it.
  public var servers: [Int]
}

/// The state of one provider.
public struct ProviderHealth: Sendable {
  /// The servers and whose turn it is.
  public private(set) var rotation: ServerRotation
  private let returnToFirst: Int64
  private var movedAt: Int64?
  private var downSince: Int64?
  private var nextProbe: Int64 = 0
  private var probeWait = ProviderHealth.firstProbeWait
  private var aside: (reason: AsideReason, until: Int64)?
  private var pauses = 0
  private var noProbeBefore = Int64.min

  /// How long after it went down a provider is probed first, in nanoseconds; then the wait doubles …
  public static let firstProbeWait: Int64 = 5 * second
  /// … up to this.
  public static let longestProbeWait: Int64 = 60 * second

  /// A provider whose servers are all believed to be well.
  ///
  /// - Parameter returnToFirst: nanoseconds after which a probe may lead back to the first server.
  public init(servers: Int, attemptsBeforeSwitch: Int, returnToFirst: Int64) {
    rotation = ServerRotation(count: servers, attemptsBeforeSwitch: attemptsBeforeSwitch)
    self.returnToFirst = returnToFirst
  }

  /// What the provider is fit for.
  public func fitness(now: Int64) -> ProviderFitness {
    if let aside, now < aside.until { return .aside(aside.reason) }
    return downSince == nil ? .up : .down
  }

  /// Until when the provider is left alone, in nanoseconds; nil where it is not.
  public func asideUntil(now: Int64) -> Int64? { aside.flatMap { now < $0.until ? $0.until : nil } }

  /// The next probe; nil where none is needed. There is none while the provider is left alone.
  public var probe: Probe? {
    let earliest = max(noProbeBefore, aside?.until ?? .min)
    if downSince != nil { return Probe(at: max(nextProbe, earliest), servers: rotation.order) }
    guard let movedAt, rotation.current != 0 else { return nil }
    return Probe(at: max(movedAt + returnToFirst, earliest), servers: [0])
  }

  /// Failures say nothing about another network; what the provider itself has said still counts.
  public mutating func networkHasChanged() {
    rotation.forgetFailures()
    downSince = nil
  }

  /// A server replied to a client's question. What was under way when the provider was set aside does not end that.
  public mutating func succeeded(_ server: Int, now: Int64) {
    rotation.succeeded(server)
    downSince = nil
    if let aside, now < aside.until { return }
    aside = nil
    pauses = 0
  }

  /// A server failed a client's question.
  public mutating func failed(_ server: Int, now: Int64) {
    if rotation.failed(server) { movedAt = now }
    guard downSince == nil, rotation.isExhausted else { return }
    downSince = now
    probeWait = ProviderHealth.firstProbeWait
    nextProbe = now + probeWait
  }

  /// A probe found that server well: it becomes the current one.
  public mutating func probeSucceeded(_ server: Int, now: Int64) {
    succeeded(server, now: now)
    guard server != rotation.current else { return }
    rotation.move(to: server)
    movedAt = server == 0 ? nil : now
  }

  /// No server that was probed replied.
  public mutating func probeFailed(now: Int64) {
    if downSince != nil {
      probeWait = min(probeWait * 2, ProviderHealth.longestProbeWait)
      nextProbe = now + probeWait
    } else {
      movedAt = now
    }
  }

  /// A probe could not be made, or found out nothing about the server.
  public mutating func probeWasPutOff(now: Int64) { noProbeBefore = now + ProviderHealth.firstProbeWait }

  /// The provider replied, but will not serve: it is left alone. The pause doubles where it says so again after a pause;
  /// what was under way when it began says the same thing once more, and can only name a later time.
  ///
  /// - Parameter pause: nanoseconds that the provider itself named.
  /// - Returns: nanoseconds until it is asked again; nil where it was left alone already.
  @discardableResult
  public mutating func setAside(_ reason: AsideReason, for pause: Int64? = nil, now: Int64) -> Int64? {
    let named = pause.map { min(max($0, AsideReason.shortestNamedPause), AsideReason.longestNamedPause) }
    if let present = aside, now < present.until {
      aside = (present.reason, max(present.until, now + (named ?? 0)))
      return nil
    }
    let doubled = reason.firstPause << Int64(min(pauses, 12))
    let length = named ?? min(doubled, AsideReason.longestPause)
    pauses += 1
    aside = (reason, now + length)
    return length
  }
}

private let second: Int64 = 1_000_000_000
