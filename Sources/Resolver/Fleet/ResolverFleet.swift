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
  /// Shares answers with the daemons of a site from now on; nil for not any more.
  package func use(_ fleet: sending FleetLevel?) {
    self.fleet?.close()
    self.fleet = fleet
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
    let question = asked.question
    return FleetQuestion(
      name: question.name, type: question.type, dnssecOK: question.dnssecOK,
      checkingDisabled: question.checkingDisabled, subnet: asked.subnet.prefix,
      fingerprint: asked.route.fleetFingerprint)
  }

  /// Asks the fleet, and the providers if it has no answer.
  func askFleet(_ fetch: Fetch) async -> FetchResult {
    let candidates = fetch.route.providers.map { fetch.configuration.upstreams[$0] }
    let first = candidates.first { $0.serves(fetch.question) }
    guard let fleet, let first, let shared = sharedQuestion(fetch.asked, first) else {
      return await askProviders(fetch)
    }
    let look = await fleet.look(
      for: shared, providerTimeout: first.timeout, median: first.report.roundTrips.quantile(0.5)
    ) { value throws(FleetRejection) in
      try self.finish(value, to: fetch.asked, fleet)
    }
    switch look {
    case .found(let result): return result
    case .alone: return fetch.isDisplaced ? .failure(.limited(.places)) : await askProviders(fetch)
    case .leads:
      guard !fetch.isDisplaced else {
        fleet.release(shared)
        return .failure(.limited(.places))
      }
      let result = await askProviders(fetch)
      if result.answer == nil || !result.source.isProvider { fleet.release(shared) }
      return result
    }
  }

  /// Turns a value of the store into an answer by the rules that hold for the provider's own.
  func finish(
    _ value: FleetValue, to asked: ResolverQuestion, _ fleet: FleetLevel
  ) throws(FleetRejection) -> FetchResult {
    let (question, route) = (asked.question, asked.route)
    let providers = route.providers.map { asked.configuration.upstreams[$0] }
    let provider = providers.first { $0.name == value.provider } ?? providers.first
    var policy = AnswerPolicy(
      ttl: route.ttl, trustsAD: provider?.trustsAD ?? false,
      rebindFilter: route.filtersPrivate ? asked.configuration.settings.rebindFilter : nil)
    let answer = try fleet.answer(value, to: question) { policy.finish($0, to: question)?.lifetime }
    // What is left of the TTLs is not raised again.
    policy.ttl.lowest = 0
    guard let finished = policy.finish(answer, to: question), finished.lifetime > 0 else { throw .records }
    return FetchResult(result: .success(finished), source: .fleet(provider: provider?.name ?? value.provider))
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
    // The scope of a subnet other than the client's does not apply to the client.
    let sent = upstream.subnet(for: asked.question.clientSubnet)
    if sent == nil || sent != asked.question.clientSubnet { answer.scopePrefixLength = nil }
    fleet.keep(answer, to: shared, from: upstream.name, lifetime: finished.lifetime, sentAt: sentAt)
  }

  // MARK: Flushes

  /// Flushes names here and, unless that is not wanted, in the other daemons of the site.
  package func flush(_ names: FlushedNames, everywhere: Bool) async -> (counts: FlushCounts, reach: FlushReach?) {
    // The others' answers in the store are old from now on, so that nothing flushed comes back from there.
    let reach = everywhere ? await fleet?.flush(names) : nil
    return (await flush(NameSelection(names)), reach)
  }

  /// Takes entries of the stream of flushes.
  package func took(flushes reply: RESPValue) {
    for flush in fleet?.took(reply) ?? [] {
      Task(executorPreference: loop) {
        _ = await self.flush(NameSelection(flush.names), storedBefore: flush.before)
      }
    }
  }

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
    guard let fleet, let asked = question(wanted.asked) else { return .ours }
    let first = asked.route.providers.map { asked.configuration.upstreams[$0] }.first { $0.serves(asked.question) }
    guard let first, let shared = sharedQuestion(asked, first) else { return .ours }
    let turn = await fleet.refresh(
      shared, providerTimeout: first.timeout, expiresAt: expiresAt, mayWait: mayWait
    ) { value throws(FleetRejection) in
      try self.finish(value, to: asked, fleet)
    }
    switch turn {
    case .found(let result):
      guard let answer = result.answer, inFlight[asked.key] == nil else { return .ours }
      insert(
        answer, to: asked,
        EntryOrigin(
          source: result.source, epoch: cache.epoch, network: network.number, heat: wanted.heat,
          hits: 0, client: .ourselves))
      return .adopted
    case .leads, .alone: return .ours
    case .waits: return .theirs
    }
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
