// AnswerStore.swift -- the cache as the cold path uses it: keys, look-up, ageing, stale data, insertion.
//
// Resolver's loop only. It asks no upstream and knows nothing of the questions in flight.

import BusyNames
import Configuration
import DNSWire
import EventLoop
import FairShares
import Frontend
import HTTPDNS
import MessageCache
import Refresh
import Upstreams

/// An entry that answers a question, and how it was found.
struct CachedAnswer {
  fileprivate var found: CachedResponse
  fileprivate var scope: CacheScope
  fileprivate var subnet: QueryClientSubnet
  /// Whether it has not expired; otherwise it is stale data.
  var isFresh: Bool

  /// Whether it has addresses or other data, and was queried in more than one second. An attacker can query unlimited
  /// one-off names in its own zone.
  var isInUse: Bool { found.isInUse && found.answers > 0 && found.responseCode == .noError }

  /// Whether no upstream has to be asked: it is fresh, or currently served as stale data.
  func isServed(at now: BootInstant) -> Bool { isFresh || now.nanoseconds < found.staleUntil }
}

/// An answer that was stored, for the schedule of refreshes.
struct StoredAnswer {
  /// The hash of the key under which it is stored, which leaves out a client subnet that does not matter.
  var hash: UInt64
  var life: EntryLife
  /// Whether it is NXDOMAIN, stored for every type.
  var isNXDOMAIN: Bool
  /// The time of storage in nanoseconds of the boot-time clock.
  var storedAt: Int64
}

/// What an entry remembers of the fetch that brought its answer.
struct EntryOrigin {
  var source: AnswerSource
  /// The cache's epoch when the question was sent.
  var epoch: UInt32
  /// The network whose LocalDNS answered.
  var network: UInt32
  /// What the schedule of refreshes remembers.
  var heat: UInt32
  /// Hits that count as the entry's own.
  var hits: UInt32
  /// The client that asked first, or the daemon itself.
  var client = ClientKey.ourselves
  /// Whether the firewall sets of its route have its addresses.
  var isInSets = false
}

/// Finds and stores answers.
final class AnswerStore {
  private let cache: MessageCache
  private let network: CurrentNetwork
  private let names: NameLedger
  private let keyBuffer = KeyBuffer()
  /// The current configuration; answers to questions of an earlier one are stored if their route still exists.
  var configuration: ResolverConfiguration
  /// Names that have others below them: NXDOMAIN for such a name does not cover those.
  var namesBelow = NamesBelow()

  /// Fills firewall sets; nil without sets.
  var sets: SetFiller?

  private var settings: ResolverSettings { configuration.settings }

  init(of cache: MessageCache, _ network: CurrentNetwork, _ names: NameLedger, _ configuration: ResolverConfiguration) {
    self.cache = cache
    self.network = network
    self.names = names
    self.configuration = configuration
  }

  // MARK: Keys

  /// The question with its key under a configuration.
  func question(
    _ question: HTTPDNSQuestion, _ configuration: ResolverConfiguration, _ route: Route,
    subnet: QueryClientSubnet = QueryClientSubnet()
  ) -> ResolverQuestion {
    let scope = scope(question, route)
    return ResolverQuestion(
      question: question, configuration: configuration, route: route, scope: scope, subnet: subnet,
      key: withKey(question.name, scope, subnet: subnet) { QuestionKey($0) })
  }

  /// The question by its route in the current configuration; nil if the route no longer exists.
  func question(_ routed: RoutedQuestion) -> ResolverQuestion? {
    configuration.route(routed.route).map { question(routed.question, configuration, $0, subnet: routed.subnet) }
  }

  /// The parts of a question's key other than name and subnet, on the current network.
  func scope(_ question: HTTPDNSQuestion, _ route: Route) -> CacheScope {
    CacheScope(
      type: question.type.rawValue, dnssecOK: question.dnssecOK && route.tellsDNSSECFlags,
      checkingDisabled: question.checkingDisabled && route.tellsDNSSECFlags,
      route: route.number, network: route.belongsToNetwork ? network.number : 0)
  }

  /// Builds a key in the store's own buffer; it is valid during the call.
  func withKey<Value>(
    _ name: DomainName, _ scope: CacheScope, subnet: QueryClientSubnet = QueryClientSubnet(),
    _ body: (CacheKey) -> Value
  ) -> Value {
    keyBuffer.set(name)
    return body(cache.key(in: keyBuffer.octets, nameLength: name.octets.count, scope, subnet: subnet))
  }

  // MARK: Look-up

  /// The entry that answers a question: the first fresh one, otherwise the newest stale one. The hot path chooses by the
  /// same `LookupOrder`.
  func find(_ asked: ResolverQuestion, now: BootInstant) -> CachedAnswer? {
    guard settings.cache.isEnabled else { return nil }
    let now = now.nanoseconds
    var order = LookupOrder(usesSubnet: asked.hasSubnet)
    var newest: CachedAnswer?
    while let step = order.next() {
      guard let entry = look(step, asked, now: now) else { continue }
      if entry.isFresh { return entry }
      let isNewest = order.noteExpired(step, storedAt: entry.found.storedAt, isServed: now < entry.found.staleUntil)
      if isNewest { newest = entry }
    }
    return newest
  }

  private func look(_ step: LookupStep, _ asked: ResolverQuestion, now: Int64) -> CachedAnswer? {
    var scope = asked.scope
    var subnet = QueryClientSubnet()
    switch step {
    case .subnet: subnet = asked.subnet
    case .shared: break
    case .nameError: scope = asked.nameErrorScope
    }
    let isOwnKey = step == .subnet || step == .shared && !asked.hasSubnet
    let found =
      isOwnKey
      ? asked.key.withCacheKey { cache.peek($0, now: now, orStale: true) }
      : withKey(asked.question.name, scope) { cache.peek($0, now: now, orStale: true) }
    guard let found, isOwnKey || !asked.hasSubnet || found.isForEverySubnet else { return nil }
    return CachedAnswer(found: found, scope: scope, subnet: subnet, isFresh: now < found.expiresAt)
  }

  /// A fresh answer: that of an entry, or NXDOMAIN by that of a name above.
  func freshAnswer(to asked: ResolverQuestion, now: BootInstant) -> FinishedAnswer? {
    freshAnswer(to: asked, find(asked, now: now), now: now)
  }

  /// - Parameter entry: the result of `find` for the question.
  func freshAnswer(to asked: ResolverQuestion, _ entry: CachedAnswer?, now: BootInstant) -> FinishedAnswer? {
    if let entry, entry.isFresh { return answer(to: asked, by: entry, now: now) }
    return nxdomainAbove(asked, now: now)
  }

  /// Composes the answer of an entry: with the TTLs that are left, or as stale data.
  func answer(to asked: ResolverQuestion, by entry: CachedAnswer, now: BootInstant) -> FinishedAnswer? {
    let name = asked.question.name
    var answer = entry.isFresh ? aged(entry.found, name, now: now.nanoseconds) : stale(entry.found, name)
    if asked.hasSubnet { answer?.scope = Int(entry.subnet.sourceLength) }
    if !entry.isFresh, asked.route.sets != nil { sets?.add(answer, to: asked) }
    return answer
  }

  func hasFreshAnswer(to asked: ResolverQuestion, now: BootInstant) -> Bool { freshAnswer(to: asked, now: now) != nil }

  /// What clients get if an upstream fails; nil without it.
  func staleAnswer(to asked: ResolverQuestion, now: BootInstant) -> FinishedAnswer? {
    find(asked, now: now).flatMap { stale($0.found, asked.question.name) }
  }

  /// RFC 8020: NXDOMAIN is valid for every name below, if the upstream means the whole tree.
  ///
  /// A network's resolver does not: it has private zones below names that it answers with NXDOMAIN. Nor do some providers,
  /// which do so for the empty names between two zones; `namesBelow` knows these.
  private func nxdomainAbove(_ asked: ResolverQuestion, now: BootInstant) -> FinishedAnswer? {
    guard settings.cache.isEnabled, settings.cache.nxdomainCut, !asked.route.providers.isEmpty, !asked.route.isSearched
    else {
      return nil
    }
    let scope = asked.nameErrorScope
    var name = asked.question.name
    // NXDOMAIN for a single label does not prove that a whole top-level domain does not exist.
    while let parent = name.parent, parent.labelCount > 1 {
      name = parent
      if namesBelow.hasNames(below: parent, scope, now: now) { return nil }
      guard let found = withKey(parent, scope, { cache.peek($0, now: now.nanoseconds) }),
        found.source != EntrySource.localDNS.number, !asked.hasSubnet || found.isForEverySubnet,
        let above = aged(found, parent, now: now.nanoseconds)
      else { continue }
      guard ![RecordType.a, .aaaa].contains(where: { hasAddresses(asked, $0, now: now) }) else { return nil }
      return nxdomain(asked, by: above, at: parent)
    }
    return nil
  }

  private func nxdomain(_ asked: ResolverQuestion, by above: FinishedAnswer, at parent: DomainName) -> FinishedAnswer? {
    let question = Question(name: parent, type: asked.question.type)
    guard let message = above.response.message(to: question) else { return nil }
    // AD was checked when the entry was stored: it belongs to the name above, and to everything below.
    let isAuthenticated = above.response.isAuthenticated
    var answer = AnswerPolicy(ttl: asked.route.ttl, trustsAD: isAuthenticated).negative(
      .nxDomain, asked.question, chain: [], authorities: message.authorities, isAuthenticated: isAuthenticated)
    if asked.hasSubnet { answer?.scope = 0 }
    return answer
  }

  /// Whether the cache has fresh addresses of that type for the name, for the client's subnet or for everybody.
  func hasAddresses(_ asked: ResolverQuestion, _ type: RecordType, now: BootInstant) -> Bool {
    guard settings.cache.isEnabled else { return false }
    var scope = asked.scope
    scope.type = type.rawValue
    func isThere(_ subnet: QueryClientSubnet) -> Bool {
      withKey(asked.question.name, scope, subnet: subnet) { cache.peek($0, now: now.nanoseconds) }
        .map { $0.answers > 0 && $0.responseCode == .noError } ?? false
    }
    return isThere(QueryClientSubnet()) || asked.hasSubnet && isThere(asked.subnet)
  }

  /// The cached records with the TTLs that are left.
  private func aged(_ found: CachedResponse, _ name: DomainName, now: Int64) -> FinishedAnswer? {
    let elapsed = UInt32(clamping: (now - found.storedAt) / 1_000_000_000)
    guard var response = recomposed(found, name, ttl: { $0 - min($0, elapsed) }) else { return nil }
    response.extendedError = found.extendedError
    return FinishedAnswer(response: response, lifetime: UInt32(clamping: (found.expiresAt - now) / 1_000_000_000))
  }

  /// The cached records as stale data (RFC 8767 section 4, RFC 8914 sections 4.4 and 4.20).
  private func stale(_ found: CachedResponse, _ name: DomainName) -> FinishedAnswer? {
    guard var response = recomposed(found, name, ttl: { min($0, settings.cache.staleTTL.ttl) }) else { return nil }
    response.extendedError = found.responseCode == .nxDomain ? .staleNXDomain : .staleAnswer
    return FinishedAnswer(response: response, lifetime: 0)
  }

  private func recomposed(_ found: CachedResponse, _ name: DomainName, ttl: (UInt32) -> UInt32) -> ComposedResponse? {
    let message = Message.assembled(
      name, answers: found.answers, authorities: found.authorities, responseCode: found.responseCode, body: found.body)
    guard let message else { return nil }
    func changed(_ record: ResourceRecord) -> ResourceRecord {
      var record = record
      record.ttl = ttl(record.ttl)
      return record
    }
    var response = ComposedResponse(
      found.responseCode, to: name, answers: message.answers.map(changed),
      authorities: message.authorities.map(changed))
    response?.isAuthenticated = found.isAuthenticated
    return response
  }

  // MARK: Changes

  /// Stores an answer under everything that it depends on. An answer that must not be stored still replaces older ones.
  ///
  /// - Returns: the stored entry if refreshes may be scheduled for it: not for answers to one subnet.
  func insert(
    _ answer: FinishedAnswer, to asked: ResolverQuestion, _ origin: EntryOrigin, now: BootInstant
  ) -> StoredAnswer? {
    guard settings.cache.isEnabled, isStillRouted(asked) else { return nil }
    // The key names the network on which the question began.
    if origin.source.isLocalDNS, asked.route.belongsToNetwork, asked.scope.network != origin.network { return nil }
    let name = asked.question.name
    let isForEveryType = answer.isNXDOMAIN && !answer.isOfItsTypeOnly
    let scope = isForEveryType ? asked.nameErrorScope : asked.scope
    let life = life(of: answer, asked, origin)
    // An answer of our own does not show that the name exists.
    if !answer.isNXDOMAIN, origin.source != .ourselves {
      namesBelow.note(name, scope, until: now + .seconds(Int64(life.lifetime)))
    }
    if asked.question.clientSubnet != nil, answer.scope != 0 {
      // Only for the subnet and type of the question: other subnets may have the name.
      let isStored = asked.key.withCacheKey { cache.insert($0, answer.response, now: now.nanoseconds, life) }
      if isStored { names.stored(name, type: scope.type, as: asked.key.keyedHash, inheriting: life.hits) }
      return nil
    }
    var response = answer.response
    response.isForEverySubnet = answer.scope == 0 || !asked.route.asksForSubnets
    let (isStored, hash) = withKey(name, scope) { key in
      (cache.insert(key, response, now: now.nanoseconds, life), key.hash)
    }
    if isStored { names.stored(name, type: scope.type, as: hash, inheriting: life.hits) }
    if isForEveryType {
      // A look-up would find the older answer before NXDOMAIN.
      _ = asked.key.withCacheKey { cache.remove($0) }
    } else if response.answers > 0 {
      withKey(name, asked.nameErrorScope) { _ = cache.remove($0) }
    }
    guard isStored else { return nil }
    return StoredAnswer(hash: hash, life: life, isNXDOMAIN: isForEveryType, storedAt: now.nanoseconds)
  }

  private func life(of answer: FinishedAnswer, _ asked: ResolverQuestion, _ origin: EntryOrigin) -> EntryLife {
    let policy = asked.route.stale
    let hasData = !answer.isNegative
    var life = EntryLife(lifetime: answer.lifetime)
    // An answer of LocalDNS in a provider's place is not used for longer than `localdns.max_ttl`, and not on another
    // network.
    if answer.isOfNetwork || origin.source.isLocalDNS && !asked.route.providers.isEmpty {
      life.network = origin.network
    } else {
      if policy.mode != .off { life.staleFor = policy.maxAge }
      // Stale NXDOMAIN is never served before an upstream was asked again: the name may exist by now.
      life.isServedStale = hasData && (policy.mode == .immediate || policy.isImmutable)
      life.isImmutable = hasData && policy.isImmutable
    }
    life.source = number(of: origin.source, asked.configuration)
    life.heat = origin.heat
    life.hits = origin.hits
    life.epoch = origin.epoch
    return life
  }

  /// The octet for the source of an answer that a configuration's upstreams gave.
  private func number(of source: AnswerSource, _ origin: ResolverConfiguration) -> UInt8 {
    switch source {
    case .provider(let name, _), .fleet(let name):
      let place = origin.upstreams.firstIndex { $0.name == name }
      let number = place.map { origin.providerNumbers[$0] } ?? -1
      // The current configuration may no longer have the provider.
      return configuration.place(ofProvider: number) == nil ? 0 : EntrySource.provider(number).number
    case .localDNS: return EntrySource.localDNS.number
    case .cache, .ourselves: return EntrySource.unknown.number
    }
  }

  /// Whether the question's route is one of the current configuration: otherwise no look-up would find the answer.
  private func isStillRouted(_ asked: ResolverQuestion) -> Bool {
    asked.configuration === configuration || configuration.route(asked.route.number) != nil
  }

  /// Lets the hot path serve stale data for half a minute: until then no upstream is asked again (RFC 8767 section 5).
  func serveStale(_ entry: CachedAnswer, to asked: ResolverQuestion, now: BootInstant) {
    let end = (now + AnswerStore.staleRecheck).nanoseconds
    if asked.route.sets != nil { sets?.add(stale(entry.found, asked.question.name), to: asked) }
    withKey(asked.question.name, entry.scope, subnet: entry.subnet) { cache.serveStale($0, until: end) }
  }

  private static let staleRecheck = Duration.seconds(30)

  /// Removes fresh answers of LocalDNS to a question.
  ///
  /// - Returns: whether there was one.
  func removeLocalAnswers(to asked: ResolverQuestion, now: BootInstant) -> Bool {
    func remove(_ key: CacheKey) -> Bool {
      guard cache.peek(key, now: now.nanoseconds)?.source == EntrySource.localDNS.number else { return false }
      return cache.remove(key)
    }
    let hadType = asked.key.withCacheKey(remove)
    let hadName = withKey(asked.question.name, asked.nameErrorScope, subnet: asked.subnet, remove)
    return hadType || hadName
  }

  /// The heat and the hits of the question's entry, which a fresh answer that replaces it early continues; nil if there
  /// is no fresh entry.
  func inheritance(_ asked: ResolverQuestion, now: BootInstant) -> (heat: UInt32, hits: UInt32)? {
    guard let state = cache.state(hash: asked.key.keyedHash), now.nanoseconds < state.expiresAt else { return nil }
    return (state.heat, state.hits)
  }
}

/// Room for a cache key.
private final class KeyBuffer {
  let octets: UnsafeMutablePointer<UInt8>

  init() {
    octets = .allocate(capacity: CacheKey.longest)
    octets.initialize(repeating: 0, count: CacheKey.longest)
  }

  deinit { octets.deallocate() }

  func set(_ name: DomainName) {
    name.octets.withUnsafeBufferPointer { octets.update(from: $0.baseAddress!, count: $0.count) }
  }
}
