// ResolverFleet.swift -- where the resolver uses the second level: before the providers, after them, and for refreshes.

import DNSWire
import EventLoop
import FairShares
import Fleet
import Frontend
import HTTPDNS
import MessageCache
import Store
import Telemetry
import Upstreams

extension Resolver {
  /// Shares answers with the daemons of a fleet from now on; nil for not any more.
  package func use(_ fleet: sending FleetLevel?) {
    self.fleet?.close()
    self.fleet = fleet
    fleet?.flushHere = { [weak self, loop] flush in
      Task(executorPreference: loop) { await self?.carryOut(flush) }
    }
  }

  private func carryOut(_ flush: RemoteFlush) async {
    let counts = await self.flush(NameSelection(flush.names), storedBefore: flush.before)
    if let problem = counts.saveProblem {
      fleet?.log(
        FleetNote(isProblem: true, text: "what another daemon flushed is still in the cache file: \(problem)"))
    }
  }

  /// The store that daemons share; nil without one.
  package var fleetReport: FleetReport? { fleet?.report }

  /// This machine has slept.
  package func hasSlept() { fleet?.hasSlept() }

  /// The question under which the fleet knows a question; nil if its answer is not shared.
  ///
  /// - Parameter first: the provider that is asked first.
  private func sharedQuestion(_ asked: ResolverQuestion, _ first: (any Upstream)?) -> FleetQuestion? {
    guard fleet != nil, !asked.route.fleetFingerprint.isEmpty, let first, !first.answersAtOnce else { return nil }
    return FleetQuestion(
      name: asked.question.name, type: asked.question.type, dnssecOK: asked.scope.dnssecOK,
      checkingDisabled: asked.scope.checkingDisabled, subnet: asked.subnet.prefix,
      fingerprint: asked.route.fleetFingerprint)
  }

  /// The provider that is asked first for a question.
  private func firstProvider(_ asked: ResolverQuestion) -> (any Upstream)? {
    asked.route.providers.lazy.map { asked.configuration.upstreams[$0] }.first { $0.serves(asked.question) }
  }

  /// Asks the fleet, and the providers if it has no answer.
  func askFleet(_ fetch: Fetch) async -> FetchResult {
    guard let fleet, let first = firstProvider(fetch.asked), let shared = sharedQuestion(fetch.asked, first) else {
      return await askProviders(fetch)
    }
    let look = await fleet.look(for: shared, providerTimeout: first.timeout, median: first.medianRoundTrip) {
      value throws(FleetRejection) in
      try self.finish(value, to: fetch.asked, fleet)
    }
    defer { fleet.releaseLease(shared) }
    switch look {
    case .found(let result): return result
    case .alone, .leads: return fetch.isDisplaced ? .failure(.limited(.places)) : await askProviders(fetch)
    }
  }

  /// Turns a value of the store into an answer by the rules that hold for the provider's own.
  func finish(
    _ value: FleetValue, to asked: ResolverQuestion, _ fleet: FleetLevel
  ) throws(FleetRejection) -> FetchResult {
    let (question, route) = (asked.question, asked.route)
    guard value.scope ?? 0 <= asked.subnet.prefix?.length ?? 0 else { throw .records }
    let providers = route.providers.map { asked.configuration.upstreams[$0] }
    var policy = AnswerPolicy(
      // The daemon that asked has dropped AD of a provider that is not trusted.
      ttl: route.ttl, trustsAD: providers.contains(where: \.trustsAD),
      rebindFilter: route.filtersPrivate ? asked.configuration.settings.rebindFilter : nil)
    let (answer, rest) = try fleet.answer(value, to: question) { policy.finish($0, to: question)?.lifetime }
    // What is left of the value is neither raised again nor exceeded.
    policy.ttl.lowest = 0
    policy.ttl.highest = min(policy.ttl.highest, rest)
    policy.ttl.highestNegative = min(policy.ttl.highestNegative, rest)
    guard let finished = policy.finish(answer, to: question), finished.lifetime > 0 else { throw .records }
    let name = (providers.first { $0.name == value.provider } ?? providers.first)?.name
    return FetchResult(
      result: .success(withoutContradiction(finished, asked, policy)),
      source: .fleet(provider: name ?? value.provider))
  }

  /// Shares a provider's answer with the fleet.
  ///
  /// - Parameter sentAt: when the provider was asked.
  func share(
    _ answer: HTTPDNSAnswer, _ finished: FinishedAnswer?, to asked: ResolverQuestion, from upstream: any Upstream,
    sentAt: BootInstant
  ) {
    guard let fleet, let finished, let shared = sharedQuestion(asked, upstream) else { return }
    var answer = answer
    answer.isAuthenticated = answer.isAuthenticated && upstream.trustsAD
    // The scope of a subnet other than the client's does not apply to the client.
    let sent = upstream.subnet(for: asked.question.clientSubnet)
    if sent == nil || sent != asked.question.clientSubnet { answer.scopePrefixLength = nil }
    fleet.publish(answer, to: shared, from: upstream.name, lifetime: finished.lifetime, sentAt: sentAt)
  }

  // MARK: Flushes

  /// Flushes names here and, unless that is not wanted, in the other daemons of the fleet.
  package func flush(_ names: FlushedNames, everywhere: Bool) async -> (counts: FlushCounts, reach: FlushReach?) {
    // Nothing flushed comes back from the store.
    fleet?.recordFlush(names)
    let announcement = everywhere && fleet != nil ? Task(executorPreference: loop) { await self.announce(names) } : nil
    let counts = await flush(NameSelection(names))
    return (counts, await announcement?.value)
  }

  /// Takes entries of the stream of flushes.
  ///
  /// - Returns: whether to read on at once.
  package func took(flushes reply: RESPValue) -> Bool { fleet?.received(reply) ?? false }

  private func announce(_ names: FlushedNames) async -> FlushReach? { await fleet?.announce(names) }

  // MARK: Refreshes

  /// What becomes of a refresh.
  enum RefreshTurn {
    /// A younger answer of another daemon has been stored.
    case adopted
    /// This daemon refreshes.
    case ours
    /// Another daemon is about to.
    case theirs
  }

  /// Whether refreshes are shared.
  var sharesRefreshes: Bool { fleet != nil }

  /// Looks for a younger answer of another daemon; if there is none, tries to become the one that refreshes.
  ///
  /// - Parameters:
  ///   - expiresAt: the end of the present answer, in nanoseconds; nil if there is none.
  ///   - mayWait: whether another daemon may be waited for.
  func turn(toRefresh wanted: RefreshedQuestion, expiresAt: Int64?, mayWait: Bool) async -> RefreshTurn {
    guard let fleet, let asked = question(wanted.asked), let first = firstProvider(asked),
      let shared = sharedQuestion(asked, first)
    else { return .ours }
    let turn = await fleet.refresh(
      shared, providerTimeout: first.timeout, expiresAt: expiresAt, mayWait: mayWait
    ) { value throws(FleetRejection) in
      try self.finish(value, to: asked, fleet)
    }
    switch turn {
    case .found(let result):
      // A client's miss is fetching the answer.
      guard let answer = result.answer, inFlight[asked.key] == nil else { return .ours }
      insert(
        answer, to: asked,
        EntryOrigin(
          source: result.source, epoch: cache.epoch, network: network.number, heat: wanted.heat,
          hits: 0, client: .ourselves))
      fleet.counters.adopted += 1
      return .adopted
    case .leads:
      fleet.counters.led += 1
      return .ours
    case .alone:
      fleet.counters.alone += 1
      return .ours
    case .waits: return .theirs
    }
  }

  /// A refresh that this daemon made, or did not make after all, has ended: others may make it.
  func settle(_ wanted: RoutedQuestion) {
    guard let fleet, let asked = question(wanted), let shared = sharedQuestion(asked, firstProvider(asked)) else {
      return
    }
    fleet.releaseLease(shared)
  }
}

extension NameSelection {
  /// The names of a flush.
  init(_ names: FlushedNames) {
    switch names {
    case .everything: self = .everything
    case .names(let names, let andBelow): self.init(names, andBelow: andBelow)
    }
  }
}
