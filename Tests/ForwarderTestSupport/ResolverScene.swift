// ResolverScene.swift -- a query path and a resolver on a virtual clock, with scripted upstreams and clients.

import CSocket
import Configuration
import DNSWire
import EventLoop
import FairShares
import Glibc
import HTTPDNS
import MessageCache
import Routing
import TestSupport
import Testing

@testable import Frontend
@testable import Ranking
@testable import Resolver
@testable import Upstreams

/// What a client's query is made of.
struct ClientQuestion {
  var name: String
  var type: RecordType = .a
  /// Which client asks: each has an address of its own.
  var client: UInt16 = 1
  var port: UInt16 = 5353
  /// The ID; nil for one that no other query of the scene has.
  var id: UInt16?
  var dnssecOK = false
  var checkingDisabled = false
  var wantsAD = false
  var subnet: IPPrefix?
}

/// A query that was asked, and what came back.
struct ClientTransaction {
  var question: ClientQuestion
  var id: UInt16
  var askedAt: BootInstant
  var replies: [(message: Message, at: BootInstant)] = []
}

/// Clients, the hot path, the resolver, and what it asks.
///
/// Route 0 is the standard one, 1 is for names of the network, 2 for portals, 4 for names below search domains, 5 for routers; `rules` may lead to further ones.
final class ResolverScene: @unchecked Sendable {
  let loop: SimulatedLoop
  let cache: MessageCache
  let network: CurrentNetwork
  let queries: ClientQueries
  let replies: ReplySender
  let resolver: Resolver
  /// The limits that the resolver reported.
  var toldLimits: [ShareLimit] { mailbox.limits }
  /// How often it reported a name with too many subnets.
  var toldSubnets: Int { mailbox.surplusSubnets }
  private let mailbox = Mailbox()
  private var path: QueryPath
  /// Whether the resolver takes a query over as soon as a listener has handed it over.
  var takesOver = true
  private let output: UnsafeMutablePointer<UInt8>
  private var nextID: UInt16 = 0

  static let bounds = TTLBounds(lowest: 0, highest: 3600, highestNegative: 30, highestFallback: 60)

  /// The fixed routes, all providers in order on the first.
  static func routes(providers: Int, bounds: TTLBounds = bounds) -> [Route] {
    let local = [Configuration.LocalServer.system]
    let standard = Route(providers: Array(0..<providers), localServers: local, fallsBack: true, ttl: bounds)
    var network = Route(providers: [], localServers: local, fallsBack: true, ttl: bounds)
    network.isNetwork = true
    network.belongsToNetwork = true
    network.isConfined = true
    network.filtersPrivate = false
    var portal = network
    portal.isNetwork = false
    portal.ttl.highest = 10
    portal.ttl.highestNegative = 10
    let loopProbe = Route(
      providers: [], localServers: [.system], fallsBack: false, ttl: bounds)
    var search = standard
    search.search = .afterNXDOMAIN
    search.belongsToNetwork = true
    search.isConfined = true
    var router = search
    router.search = .first
    return [standard, network, portal, loopProbe, search, router]
  }

  /// Answers the probes of ranking, which is off until a test says otherwise.
  let prober: ScriptedProber

  init(
    on loop: SimulatedLoop, _ upstreams: [any Upstream], local: (any LocalUpstream)? = nil, rules: [RouteRule] = [],
    searchDomains: [String] = [], slots: Int = 4096, cacheOctets: Int = 8 << 20, cacheEntries: Int = 4000,
    cacheSeed: UInt64 = testSeed,
    _ configure: (inout ResolverSettings) -> Void = { _ in }
  ) {
    self.loop = loop
    var settings = ResolverSettings(Configuration(), ResolverScene.routes(providers: upstreams.count))
    (settings.listen.missesPerClient, settings.listen.missesPerDomain) = (0, 0)
    configure(&settings)
    let bounds = CacheBounds(maxOctets: cacheOctets, maxEntries: cacheEntries)
    cache = MessageCache(bounds, seed: cacheSeed)
    network = CurrentNetwork(of: cache)
    queries = ClientQueries(capacity: slots)
    replies = ReplySender(queries, on: loop, maxUDPPayload: 1232) { [mailbox] response, _, peer in
      mailbox.deliver(Array(response), to: peer.pointee)
    }
    let tables = ResolverScene.tables(settings, upstreams, rules, searchDomains, cache, network)
    path = QueryPath(tables)
    output = .allocate(capacity: 1232 + ResponseWriter.overhead)
    let log = mailbox
    nonisolated(unsafe) let parts = (upstreams, local, replies)
    resolver = Resolver(
      on: loop, settings: settings, cache: cache, network: network, upstreams: parts.0, local: parts.1,
      replies: parts.2, table: tables.routes,
      onLimit: { log.note($0) }
    ) { name, failure in log.failures.append((name, failure)) }
    mailbox.loop = loop
    let probes = ScriptedProber(on: loop)
    prober = probes
    nonisolated(unsafe) let handedOver = probes
    resolver.assumeIsolated { $0.beginRanking(RankingSettings(), prober: handedOver) { log.notes.append($0) } }
  }

  deinit { output.deallocate() }

  private static func tables(
    _ settings: ResolverSettings, _ upstreams: [any Upstream], _ rules: [RouteRule], _ searchDomains: [String],
    _ cache: MessageCache, _ network: CurrentNetwork
  ) -> QueryTables {
    let table = RouteTable(
      rules: rules, hosts: HostsFile(),
      settings: SpecialNamesSettings(
        searchDomains: searchDomains.map { DomainName(text: $0)! }, searchRoute: Route.Number.search,
        networkRoute: Route.Number.network, portalRoute: Route.Number.portal, routerRoute: Route.Number.router))
    return QueryTables(
      access: AccessPolicy([IPPrefix(text: "0.0.0.0/0")!]), table: table, routes: settings.routes, cache: cache,
      network: network, cacheEnabled: settings.cache.isEnabled, maxUDPPayload: 1232, keepalive: 150,
      passesSubnets: { upstreams[$0].passesClientSubnet }, knowsFlags: { upstreams[$0].knowsDNSSECFlags })
  }

  /// Gives the resolver another configuration; the listener uses the old one until it gets the tables.
  ///
  /// - Returns: gives the listener its tables.
  func change(
    to upstreams: [any Upstream], numbers: [Int]? = nil, rules: [RouteRule] = [], searchDomains: [String] = [],
    _ configure: (inout ResolverSettings) -> Void = { _ in }
  ) -> () -> Void {
    var settings = resolver.assumeIsolated { $0.settings }
    settings.routes = ResolverScene.routes(providers: upstreams.count)
    configure(&settings)
    let configuration = ResolverConfiguration(settings, upstreams, providerNumbers: numbers)
    let tables = ResolverScene.tables(settings, upstreams, rules, searchDomains, cache, network)
    resolver.assumeIsolated { $0.use(configuration, tables.routes) }
    return { [self] in
      path = path.successor(tables)
      resolver.assumeIsolated { $0.forgetEarlier() }
    }
  }

  /// Failures that the resolver reported, by upstream.
  var toldFailures: [(name: String, failure: UpstreamFailure)] { mailbox.failures }
  /// Lines that ranking wrote to the log.
  var notes: [String] { mailbox.notes }
  /// All queries so far.
  var transactions: [ClientTransaction] { mailbox.transactions }
  /// The numbers of a scene that does not remember its queries.
  var tally: ReplyTally { mailbox.tally }
  /// From now on replies are only counted.
  func onlyCount() { mailbox.onlyCounts = true }
  /// Replies that belonged to no query.
  var strays: Int { mailbox.strays }
  /// The resolver's numbers.
  var counters: ResolverCounters { resolver.assumeIsolated { $0.counters } }
  var inFlight: Int { resolver.assumeIsolated { $0.questionsInFlight } }

  /// Sends a query; the number of its transaction.
  @discardableResult
  func ask(_ question: ClientQuestion) -> Int {
    nextID &+= 1
    let id = question.id ?? nextID
    let number = mailbox.expect(ClientTransaction(question: question, id: id, askedAt: loop.now))
    send(ResolverScene.octets(question, id: id), from: question.client, port: question.port)
    return number
  }

  /// From now on replies go there instead, as octets.
  func receive(_ receiver: @escaping ([UInt8]) -> Void) { mailbox.receiver = receiver }

  /// Sends a query that stands in octets.
  func send(_ message: [UInt8], from client: UInt16, port: UInt16) {
    var peer = datagram_peer()
    let address = SocketAddress(
      octets: [10, 0, UInt8(client >> 8), UInt8(truncatingIfNeeded: client)], port: port)!
    peer.address = address.storage
    peer.length = address.length
    message.withUnsafeBufferPointer { octets in
      let outcome = withUnsafePointer(to: peer.address) {
        path.accept(octets, from: $0, .udp, now: loop.now.nanoseconds, into: output)
      }
      switch outcome {
      case .reply(let length): mailbox.deliver(Array(UnsafeBufferPointer(start: output, count: length)), to: peer)
      case .replyAndRefresh(let length, let route):
        mailbox.deliver(Array(UnsafeBufferPointer(start: output, count: length)), to: peer)
        handOver(octets, route, peer, wantsAnswer: false)
      case .drop: break
      case .forward(let route): handOver(octets, route, peer)
      }
    }
  }

  /// Sends a query for a name.
  @discardableResult
  func ask(_ name: String, _ type: RecordType = .a, client: UInt16 = 1) -> Int {
    ask(ClientQuestion(name: name, type: type, client: client))
  }

  /// Sends a query, moves the clock until it is answered, and gives the answer.
  func answer(
    _ question: ClientQuestion, within limit: Duration = .seconds(6), _ location: SourceLocation = #_sourceLocation
  ) throws -> Message {
    let number = ask(question)
    loop.settle()
    let end = loop.now + limit
    while transactions[number].replies.isEmpty, let next = loop.timers.earliest, next <= end {
      loop.advance(by: next - loop.now)
    }
    return try #require(transactions[number].replies.first?.message, sourceLocation: location)
  }

  func answer(
    _ name: String, _ type: RecordType = .a, _ location: SourceLocation = #_sourceLocation
  ) throws -> Message {
    try answer(ClientQuestion(name: name, type: type), location)
  }

  /// The one reply to a query, and how long it took.
  func reply(
    _ number: Int, _ location: SourceLocation = #_sourceLocation
  ) throws -> (message: Message, after: Duration) {
    let transaction = transactions[number]
    #expect(transaction.replies.count == 1, sourceLocation: location)
    let reply = try #require(transaction.replies.first, sourceLocation: location)
    return (reply.message, reply.at - transaction.askedAt)
  }

  private func handOver(
    _ octets: UnsafeBufferPointer<UInt8>, _ route: UInt16, _ peer: datagram_peer, wantsAnswer: Bool = true
  ) {
    let slot = withUnsafePointer(to: peer.address) { queries.take(ClientKey($0)) }
    guard slot >= 0 else {
      guard wantsAnswer else { return }
      if case .reply(let length) = path.refuse(.servFail, ede: .other, to: octets, over: .udp, into: output) {
        mailbox.deliver(Array(UnsafeBufferPointer(start: output, count: length)), to: peer)
      }
      return
    }
    queries.fill(
      slot, path.query, of: octets.baseAddress!, over: .udp, route: route, rule: path.lastEnd.rule,
      receivedAt: loop.now.nanoseconds, descriptor: 0)
    queries.slots[slot].wantsAnswer = wantsAnswer
    queries.peer(slot).pointee = peer
    queries.submit(slot)
    if takesOver { resolver.assumeIsolated { $0.takeQueries() } }
  }

  /// The query of a client.
  static func octets(_ question: ClientQuestion, id: UInt16) -> [UInt8] {
    let options = question.subnet.map { [ClientSubnet($0).option] } ?? []
    var message = Message.query(
      Question(name: DomainName(text: question.name)!, type: question.type), id: id,
      edns: EDNS(dnssecOK: question.dnssecOK, options: options))
    message.header.cd = question.checkingDisabled
    message.header.ad = question.wantsAD
    return try! message.compose()
  }
}

extension ClientQueries {
  /// A slot for a client that has none.
  func take() -> Int { take(ClientKey(value: .random(in: 1 ... .max))) }
}

/// How many replies there were of which kind.
struct ReplyTally: Equatable {
  var queries = 0
  var replies = 0
  var servFails = 0
  /// SERVFAIL without an Extended DNS Error.
  var silentServFails = 0
}

/// What clients have asked and got.
private final class Mailbox: @unchecked Sendable {
  var loop: SimulatedLoop?
  var onlyCounts = false
  var receiver: (([UInt8]) -> Void)?
  var tally = ReplyTally()
  var transactions: [ClientTransaction] = []
  var failures: [(name: String, failure: UpstreamFailure)] = []
  var limits: [ShareLimit] = []
  var surplusSubnets = 0
  var strays = 0
  var notes: [String] = []
  private var latest: [String: Int] = [:]

  func note(_ bound: ReachedBound) {
    switch bound {
    case .share(let limit): limits.append(limit)
    case .subnetsPerName: surplusSubnets += 1
    }
  }

  func expect(_ transaction: ClientTransaction) -> Int {
    tally.queries += 1
    guard !onlyCounts else { return -1 }
    latest[key(transaction.id, transaction.question.client, transaction.question.port)] = transactions.count
    transactions.append(transaction)
    return transactions.count - 1
  }

  func deliver(_ octets: [UInt8], to peer: datagram_peer) {
    if let receiver { return receiver(octets) }
    tally.replies += 1
    if octets[3] & 0xF == ResponseCode.servFail.rawValue {
      tally.servFails += 1
      // The last option: EDE of two octets.
      if !octets.suffix(6).starts(with: [0, 15, 0, 2]) { tally.silentServFails += 1 }
    }
    guard !onlyCounts else { return }
    let address = SocketAddress(storage: peer.address, length: peer.length)
    let client = UInt16(address.octets[2]) << 8 | UInt16(address.octets[3])
    guard let message = try? Message.parse(octets), message.header.qr,
      let number = latest[key(message.id, client, address.port)]
    else {
      strays += 1
      return
    }
    transactions[number].replies.append((message, loop!.now))
  }

  private func key(_ id: UInt16, _ client: UInt16, _ port: UInt16) -> String { "\(id) \(client) \(port)" }
}

extension Message {
  /// The addresses of the answer section, as text.
  var addresses: [String] {
    answers.filter { $0.type == .a || $0.type == .aaaa }.compactMap { IPAddress(octets: $0.rdata)?.description }
  }
}
