// QueryProperty.swift -- every query is answered, handed on or rightly dropped, and every reply is fit for its query.

import Configuration
import DNSWire
import EventLoop
import Frontend
import Glibc
import MessageCache
import Resolver
import Routing
import Upstreams

/// The query path, with rules, special names and a few answers in its cache.
public final class QueryProperty: Property {
  /// The fuzz target.
  public static let name = "Query"

  /// The largest UDP response of the configuration, in octets.
  static let largestOverUDP = 1232
  private static let now: Int64 = 1_000_000_000_000
  /// Octets behind the room that the query path was promised; it must leave them alone.
  private static let fence = [UInt8](repeating: 0xA5, count: 64)

  private let cache = MessageCache(CacheBounds(maxOctets: 8 << 20, maxEntries: 20_000))
  private let path: QueryPath
  private let output: UnsafeMutablePointer<UInt8>
  private let neighbour = SocketAddress(text: "127.0.0.1:4242")!
  private let stranger = SocketAddress(text: "[2001:db8::1]:4242")!

  /// With whatever it needs set up.
  public init() {
    let bounds = TTLBounds(lowest: 0, highest: 3600, highestNegative: 30, highestFallback: 60)
    let routes = (0..<Route.Number.firstRule).map { number in
      let ofNetwork = [Route.Number.network, Route.Number.portal, Route.Number.loopProbe].contains(number)
      var route = Route(
        providers: ofNetwork ? [] : [0], localServers: [.system], fallsBack: true, ttl: bounds)
      route.belongsToNetwork = number != Route.Number.standard
      return route
    }
    let settings = SpecialNamesSettings(
      networkRoute: Route.Number.network, portalRoute: Route.Number.portal, routerRoute: Route.Number.router)
    path = QueryPath(
      QueryTables(
        access: AccessPolicy([IPPrefix(text: "127.0.0.0/8")!, IPPrefix(text: "::1/128")!]),
        table: RouteTable(rules: QueryProperty.rules, hosts: HostsFile(), settings: settings), routes: routes,
        cache: cache,
        network: CurrentNetwork(of: cache), cacheEnabled: true, maxUDPPayload: QueryProperty.largestOverUDP,
        keepalive: 150, passesSubnets: { _ in true }, knowsFlags: { _ in true }))
    output = .allocate(capacity: 65535 + ResponseWriter.overhead + QueryProperty.fence.count)
    output.initialize(repeating: 0, count: 65535 + ResponseWriter.overhead + QueryProperty.fence.count)
    fillCache()
  }

  deinit { output.deallocate() }

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) { _ = try replies(to: input) }

  /// What a query gets that does not have to be handed on: over UDP and TCP, each as a client that may ask and as one that
  /// may not. Each has been checked.
  package func replies(to query: [UInt8]) throws(Violation) -> [[UInt8]] {
    let parsed = try? Message.parse(query)
    var replies: [[UInt8]] = []
    for transport in [QueryTransport.udp, .tcp, .dot] {
      if transport != .udp { path.options = StreamOptions(keepalive: 150, isPadded: transport == .dot) }
      for client in [neighbour, stranger] {
        guard let reply = try reply(to: query, parsed, from: client, transport) else { continue }
        replies.append(reply)
        let expectation = Expectation(query, parsed, transport)
        try expectation.check(reply)
      }
    }
    return replies
  }

  private func reply(
    to query: [UInt8], _ parsed: Message?, from client: SocketAddress, _ transport: QueryTransport
  ) throws(Violation) -> [UInt8]? {
    let room = (transport == .udp ? QueryProperty.largestOverUDP : 65535) + ResponseWriter.overhead
    (output + room).update(from: QueryProperty.fence, count: QueryProperty.fence.count)
    let outcome = query.withUnsafeBufferPointer { octets in
      withUnsafePointer(to: client.storage) {
        path.accept(octets, from: $0, transport, now: QueryProperty.now + 5_000_000_000, into: output)
      }
    }
    let fence = UnsafeBufferPointer(start: output + room, count: QueryProperty.fence.count)
    try require(fence.elementsEqual(QueryProperty.fence), "octets behind the output")
    switch outcome {
    case .drop:
      try require(query.count < 12 || query[2] & 0x80 != 0, "a query that gets no answer")
      return nil
    case .forward:
      try require(client == neighbour, "a query of a stranger that is handed on")
      try require(
        query[2] & 0xF9 == 1 && query[4] == 0 && query[5] == 1, "handed on, and not one question that wants recursion")
      return nil
    case .reply(let length), .replyAndRefresh(let length, _):
      return Array(UnsafeBufferPointer(start: output, count: length))
    }
  }
}

extension QueryProperty {
  private static let rules = [
    RouteRule(
      names: [NamePattern(text: "pinned.example")!],
      action: .pinned([IPAddress(text: "192.0.2.1")!, IPAddress(text: "2001:db8::1")!])),
    RouteRule(names: [NamePattern(text: "blocked.example")!], action: .nxDomain),
    RouteRule(names: [NamePattern(text: "refused.example")!], action: .refused),
    RouteRule(names: [NamePattern(text: "empty.example")!], types: [.aaaa, .service], action: .noData),
  ]

  /// Puts an answer into the cache of the default route, for clients with and without DO and CD.
  package func keep(_ answer: ComposedResponse, to question: Question, subnet: QueryClientSubnet = QueryClientSubnet())
  {
    let name = question.name.lowercased.octets
    var buffer = name + [UInt8](repeating: 0, count: CacheKey.longest - name.count)
    for flags in 0..<4 {
      let scope = CacheScope(
        type: question.type.rawValue, dnssecOK: flags & 1 != 0, checkingDisabled: flags & 2 != 0, route: 0, network: 0)
      buffer.withUnsafeMutableBufferPointer {
        let key = cache.key(in: $0.baseAddress!, nameLength: name.count, scope, subnet: subnet)
        _ = cache.insert(key, answer, now: QueryProperty.now, lifetime: 3600)
      }
    }
  }

  /// Keeps a chain of that many CNAME records, of some 200 octets each: it answers questions of every type. Behind it are
  /// that many addresses, if the question is for IPv4 addresses.
  package func keepChain(_ question: Question, links: Int, addresses: UInt8 = 0) {
    var owner = question.name
    var records: [ResourceRecord] = []
    for link in 0..<links {
      // Names without anything in common, which compression would make a few octets of.
      let letter = String(Unicode.Scalar(UInt8(ascii: "a") + UInt8(link % 26)))
      let labels = (61...63).map { String(repeating: letter, count: $0) }
      let target = DomainName(text: labels.joined(separator: "."))!
      records.append(ResourceRecord(owner: owner, type: .cname, ttl: 3600, rdata: target.octets))
      owner = target
    }
    if question.type == .a {
      records += (0..<addresses).map { ResourceRecord(owner: owner, type: .a, ttl: 300, rdata: [192, 0, 2, $0]) }
    }
    guard let answer = ComposedResponse(.noError, to: question.name, answers: records) else { return }
    keep(answer, to: question)
  }

  private func fillCache() {
    let name = { (text: String) in DomainName(text: text)! }
    let addresses = { (owner: DomainName) in
      (1...3).map { ResourceRecord(owner: owner, type: .a, ttl: 300, rdata: [192, 0, 2, $0]) }
    }
    let (www, host) = (name("www.example.com"), name("host.example.com"))
    let alias = ResourceRecord(owner: www, type: .cname, ttl: 300, rdata: host.octets)
    var answer = ComposedResponse(.noError, to: www, answers: [alias] + addresses(host))!
    answer.isAuthenticated = true
    keep(answer, to: Question(name: www, type: .a))
    keepChain(Question(name: name("middle.example.com"), type: .txt), links: 4)
    keepChain(Question(name: name("large.example.com"), type: .txt), links: 20)
    keep(
      ComposedResponse(.nxDomain), to: Question(name: name("none.example.com"), type: RecordType(CacheKey.everyType)))
    let near = name("near.example.com")
    answer = ComposedResponse(.noError, to: near, answers: addresses(near))!
    answer.isForEverySubnet = false
    let subnet = QueryClientSubnet(family: 1, sourceLength: 24, high: 0xCB00_7100_0000_0000)
    keep(answer, to: Question(name: near, type: .a), subnet: subnet)
  }
}
