// ProviderHealth.swift -- the state of a provider: whether to use it, which server first, and when to probe it.
//
// Pure: times are parameters, in nanoseconds.

/// The reason for backing off from a provider whose servers reply.
package enum AsideReason: Hashable, Sendable {
  /// It refuses the credentials.
  case authentication
  /// It refuses the requests, which have no credentials.
  case request
  /// It does not serve the account.
  case account
  /// Its list of servers says that the service is switched off for the account.
  case switchedOff
  /// It refuses the form of the requests.
  case parameters
  /// Too many requests, or a used-up quota.
  case quota

  /// The first pause, in nanoseconds.
  var firstPause: Int64 {
    switch self {
    case .authentication, .request, .parameters: 30 * second
    // Usually a short burst of too many requests.
    case .quota: 5 * second
    case .account, .switchedOff: 3600 * second
    }
  }

  /// The longest pause, in nanoseconds: a repaired account is used again within an hour.
  static let longestPause: Int64 = 3600 * second
  /// The longest pause that a provider can request, in nanoseconds.
  static let longestNamedPause: Int64 = 24 * longestPause
  /// The shortest such pause, in nanoseconds: with `Retry-After: 0`, requests must not be refused in a tight loop.
  static let shortestNamedPause: Int64 = second
}

/// Whether a provider can be used.
package enum ProviderFitness: Hashable, Sendable {
  /// It can be used.
  case up
  /// Every server has failed: it is used again after a successful probe.
  case down
  /// Backing off: the provider refuses requests for this reason.
  case aside(AsideReason)
}

/// A transfer that checks whether a server has recovered.
package struct Probe: Hashable, Sendable {
  /// The time at which it is due, in nanoseconds.
  package var at: Int64
  /// The servers to try, in order, until one replies.
  package var servers: [Int]
}

/// The state of one provider.
package struct ProviderHealth: Sendable {
  /// The servers and the current one.
  package private(set) var rotation: ServerRotation
  private let returnToFirst: Int64
  private var movedAt: Int64?
  private var downSince: Int64?
  private var nextProbe: Int64 = 0
  private var probeWait = ProviderHealth.firstProbeWait
  private var aside: (reason: AsideReason, until: Int64)?
  private var pauses = 0
  private var noProbeBefore = Int64.min

  /// The time from going down to the first probe, in nanoseconds. It doubles after each failed probe …
  package static let firstProbeWait: Int64 = 5 * second
  /// … up to this limit.
  package static let longestProbeWait: Int64 = 60 * second

  /// Creates the state of a provider without failures.
  ///
  /// - Parameter returnToFirst: nanoseconds after which a probe may return to the first server.
  package init(servers: Int, attemptsBeforeSwitch: Int, returnToFirst: Int64) {
    rotation = ServerRotation(count: servers, attemptsBeforeSwitch: attemptsBeforeSwitch)
    self.returnToFirst = returnToFirst
  }

  /// Whether the provider can be used now.
  package func fitness(now: Int64) -> ProviderFitness {
    if let aside, now < aside.until { return .aside(aside.reason) }
    return downSince == nil ? .up : .down
  }

  /// The end of the current pause in nanoseconds; nil if there is none.
  package func asideUntil(now: Int64) -> Int64? { aside.flatMap { now < $0.until ? $0.until : nil } }

  /// The next probe; nil if none is needed, and during a pause.
  package var probe: Probe? {
    let earliest = max(noProbeBefore, aside?.until ?? .min)
    if downSince != nil { return Probe(at: max(nextProbe, earliest), servers: rotation.order) }
    guard let movedAt, rotation.current != 0 else { return nil }
    return Probe(at: max(movedAt + returnToFirst, earliest), servers: [0])
  }

  /// Forgets failures after a change of network. Refusals by the provider remain.
  package mutating func networkHasChanged() {
    rotation.forgetFailures()
    downSince = nil
  }

  /// Records a reply to a client's question. A reply that was in flight when a pause began does not end the pause.
  package mutating func succeeded(_ server: Int, now: Int64) {
    rotation.succeeded(server)
    downSince = nil
    if let aside, now < aside.until { return }
    aside = nil
    pauses = 0
  }

  /// Records a failure of a server.
  package mutating func failed(_ server: Int, now: Int64) {
    if rotation.failed(server) { movedAt = now }
    guard downSince == nil, rotation.isExhausted else { return }
    downSince = now
    probeWait = ProviderHealth.firstProbeWait
    nextProbe = now + probeWait
  }

  /// Records a successful probe of a server, which becomes the current one.
  package mutating func probeSucceeded(_ server: Int, now: Int64) {
    succeeded(server, now: now)
    guard server != rotation.current else { return }
    rotation.move(to: server)
    movedAt = server == 0 ? nil : now
  }

  /// Records a probe to which no server replied.
  package mutating func probeFailed(now: Int64) {
    if downSince != nil {
      probeWait = min(probeWait * 2, ProviderHealth.longestProbeWait)
      nextProbe = now + probeWait
    } else {
      movedAt = now
    }
  }

  /// Records a probe that could not be sent or was inconclusive.
  package mutating func probeWasPutOff(now: Int64) { noProbeBefore = now + ProviderHealth.firstProbeWait }

  /// Records a refusal by the provider and begins a pause. The pause doubles if the provider refuses again after it. A
  /// refusal during a pause, of a request that was in flight, can only extend the pause to a time that the provider
  /// names.
  ///
  /// - Parameter pause: nanoseconds that the provider named.
  /// - Returns: nanoseconds until it is used again; nil if a pause was in progress.
  @discardableResult
  package mutating func setAside(_ reason: AsideReason, for pause: Int64? = nil, now: Int64) -> Int64? {
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
