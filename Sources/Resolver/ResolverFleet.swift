// ResolverFleet.swift -- where the resolver uses the shared cache: before and after the providers, for flushes and
// refreshes.

import DNSWire
import EventLoop
import FairShares
import Fleet
import HTTPDNS
import MessageCache
import Refresh
import Upstreams

extension Resolver {
  /// Replaces the shared cache, and closes the previous one; nil for none.
  package func use(_ fleet: sending FleetLevel?) {
    self.fleet?.close()
    self.fleet = fleet
    fleet?.pacer.flushCache = { [weak self, loop] flush in
      Task(executorPreference: loop) { await self?.carryOut(flush) }
    }
  }

  private func carryOut(_ flush: RemoteFlush) async {
    let counts = await self.flush(NameSelection(flush.names), storedBefore: flush.before)
    if let problem = counts.saveProblem { fleet?.log("cannot rewrite the cache file after a remote flush: \(problem)") }
  }

  /// The state of the shared cache; nil without one.
  package var fleetReport: FleetReport? { fleet?.report }

  /// The machine was suspended: the store's clock is measured again.
  package func hasSlept() { fleet?.hasSlept() }

  /// Looks up the answer in the store, then asks the providers if it has none.
  func askFleet(_ fetch: Fetch) async -> FetchResult {
    guard let fleet, let first = fetch.asked.firstProvider, let shared = FleetQuestion(fetch.asked, first) else {
      return await askProviders(fetch)
    }
    var lookup = FleetLookup(of: shared, in: fleet, for: .query, providerTimeout: first.timeout)
    defer { fleet.answers.releaseLease(shared) }
    while case .found(let value) = await lookup.next(median: first.medianRoundTrip) {
      do throws(FleetRejection) {
        let result = try composer.finish(value, to: fetch.asked)
        lookup.accept()
        return result
      } catch { lookup.reject(error) }
    }
    return fetch.state.isDisplaced ? .failure(.limited(.places)) : await askProviders(fetch)
  }

  // MARK: Flushes

  /// Flushes names in this daemon and, if `everywhere`, in all daemons of the fleet.
  package func flush(_ names: FlushedNames, everywhere: Bool) async -> (counts: FlushCounts, reach: FlushReach?) {
    // From now on flushed values of the store are not used.
    fleet?.follower.record(names)
    let announcement = everywhere && fleet != nil ? Task(executorPreference: loop) { await self.announce(names) } : nil
    let counts = await flush(NameSelection(names))
    return (counts, await announcement?.value)
  }

  private func announce(_ names: FlushedNames) async -> FlushReach? { await fleet?.announce(names) }

  // MARK: Refreshes

  package var sharesRefreshes: Bool { fleet != nil }

  package func turn(toRefresh wanted: RefreshedQuestion, expiresAt: Int64?, mayWait: Bool) async -> RefreshTurn {
    guard let fleet, let asked = store.question(wanted.asked), let first = asked.firstProvider,
      let shared = FleetQuestion(asked, first)
    else { return .ours }
    var lookup = FleetLookup(
      of: shared, in: fleet, for: .refresh(expiresAt: expiresAt, mayWait: mayWait), providerTimeout: first.timeout)
    while true {
      switch await lookup.next() {
      case .found(let value):
        do throws(FleetRejection) {
          let result = try composer.finish(value, to: asked)
          // A fetch for a client is in flight and stores its own answer.
          guard let answer = result.answer, inFlight[asked.key] == nil else { return .ours }
          insert(
            answer, to: asked,
            EntryOrigin(
              source: result.source, epoch: cache.epoch, network: network.number, heat: wanted.heat.rawValue,
              hits: 0, client: .ourselves))
          lookup.accept()
          return .adopted
        } catch { lookup.reject(error) }
      case .leads, .alone: return .ours
      case .waits: return .theirs
      }
    }
  }

  package func releaseLease(of wanted: RoutedQuestion) {
    guard let fleet, let asked = store.question(wanted), let first = asked.firstProvider,
      let shared = FleetQuestion(asked, first)
    else { return }
    fleet.answers.releaseLease(shared)
  }
}

extension ResolverQuestion {
  /// The first provider of the route that serves the question.
  fileprivate var firstProvider: (any Upstream)? {
    route.providers.lazy.map { configuration.upstreams[$0] }.first { $0.serves(question) }
  }
}

extension FleetQuestion {
  /// The question as the fleet identifies it; nil if the provider's answer is not shared.
  fileprivate init?(_ asked: ResolverQuestion, _ provider: any Upstream) {
    guard !asked.route.fleetFingerprint.isEmpty, !provider.answersAtOnce else { return nil }
    self.init(
      name: asked.question.name, type: asked.question.type, dnssecOK: asked.scope.dnssecOK,
      checkingDisabled: asked.scope.checkingDisabled, subnet: asked.subnet.prefix,
      fingerprint: asked.route.fleetFingerprint)
  }
}

extension FleetLevel {
  /// Queues a provider's answer for the store; does nothing if it is not shared.
  ///
  /// - Parameter sentAt: when the provider was asked.
  func share(
    _ answer: HTTPDNSAnswer, _ finished: FinishedAnswer?, to asked: ResolverQuestion, from upstream: any Upstream,
    sentAt: BootInstant
  ) {
    guard let finished, let shared = FleetQuestion(asked, upstream), !answer.isEmptyAmbiguous,
      answer.responseCode == .noError || answer.responseCode == .nxDomain
    else { return }
    var header = Header()
    header.qr = true
    header.ad = answer.isAuthenticated && upstream.trustsAD
    header.rcode = UInt8(truncatingIfNeeded: answer.responseCode.rawValue)
    let message = Message(
      id: 0, header: header, questions: [Message.Entry(Question(name: shared.name, type: shared.type))],
      answers: answer.answers, authorities: answer.authorities)
    answers.publish(
      message, scope: asked.sendsItsSubnet(to: upstream) ? answer.scopePrefixLength : nil,
      extendedError: answer.extendedError, to: shared, from: upstream.name, lifetime: finished.lifetime, sentAt: sentAt)
  }
}

extension NameSelection {
  init(_ names: FlushedNames) {
    switch names {
    case .everything: self = .everything
    case .names(let names, let andBelow): self.init(names, andBelow: andBelow)
    }
  }
}
