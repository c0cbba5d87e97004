// QueryPathScene.swift -- a query path with routes, a cache and a policy of the test's making, and what it does.

import DNSWire
import EventLoop
import FairShares
import Glibc
import MessageCache
import Routing
import TestSupport
import Testing

@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// What became of a query.
enum PathResult: Equatable {
  case drop
  case forward(UInt16)
  case reply([UInt8])
}

/// A query path on its own: no sockets, no clock, no resolver.
final class QueryPathScene {
  /// The idle timeout that clients over TCP get, in units of 100 ms.
  static let keepalive: Int32 = 150
  /// The route whose providers get the client's own subnet.
  static let subnetRoute: UInt16 = 5
  /// The route whose providers know neither DO nor CD.
  static let plainRoute: UInt16 = 6

  let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 1000))
  let network: CurrentNetwork
  /// The routes of queries that were answered and handed on all the same.
  private(set) var refreshes: [UInt16] = []
  private(set) var tables: QueryTables
  /// When answers are kept from, in nanoseconds.
  var storedAt: Int64 = 0
  let path: QueryPath
  private let output: UnsafeMutablePointer<UInt8>
  private let outputSize: Int

  /// - Parameters:
  ///   - rules: patterns, separated by spaces, and what becomes of their names.
  ///   - clients: the prefixes that all rules are for; empty for all clients.
  ///   - hasLocalDNS: whether names of the network have a route (1) and portals (2).
  init(
    rules: [(String, RouteAction)] = [], clients: [String] = [], hosts: String = "", hasLocalDNS: Bool = true,
    searchDomains: [String] = [],
    allow: [String] = ["127.0.0.0/8", "::1/128"], maxUDPPayload: Int = 1232, cacheEnabled: Bool = true,
    rateLimit: Int = 0, designated: DesignatedResolver? = nil
  ) throws {
    network = CurrentNetwork(of: cache)
    let table = RouteTable(
      rules: try rules.enumerated().map { index, rule in
        var made = RouteRule(
          names: try rule.0.split(separator: " ").map { try #require(NamePattern(text: $0)) },
          clients: try clients.map { try #require(IPPrefix(text: $0)) }, action: rule.1)
        made.counter = UInt16(index)
        return made
      },
      hosts: try HostsFile(octets: Array(hosts.utf8)),
      settings: SpecialNamesSettings(
        searchDomains: try searchDomains.map { try #require(DomainName(text: $0)) }, searchRoute: Route.Number.search,
        networkRoute: hasLocalDNS ? Route.Number.network : nil, portalRoute: hasLocalDNS ? Route.Number.portal : nil,
        designated: designated))
    let prepared = PreparedAnswers(table.localAnswers)
    tables = QueryTables(
      access: AccessPolicy(try allow.map { try #require(IPPrefix(text: $0)) }), routes: table, prepared: prepared,
      cache: cache, anyAnswer: prepared.anyAnswer, cacheEnabled: cacheEnabled,
      subnetRoutes: RouteSet([QueryPathScene.subnetRoute], count: 7),
      networkRoutes: RouteSet([Route.Number.portal], count: 7), network: network, maxUDPPayload: maxUDPPayload,
      keepalive: QueryPathScene.keepalive)
    tables.rateLimit = BucketTable(rate: rateLimit, burst: 1)
    tables.plainRoutes = RouteSet([QueryPathScene.plainRoute], count: 7)
    path = QueryPath(tables)
    outputSize = 65_535 + ResponseWriter.overhead
    output = .allocate(capacity: outputSize)
    output.initialize(repeating: 0, count: outputSize)
  }

  deinit { output.deallocate() }

  /// Asks.
  ///
  /// - Parameter now: seconds of the clock.
  func ask(
    _ octets: [UInt8], from client: String = "127.0.0.1", _ transport: QueryTransport = .udp, now: Double = 0
  ) -> PathResult {
    let address = SocketAddress(octets: IPAddress(text: client)!.octets, port: 5353)!
    let outcome = octets.withUnsafeBufferPointer { message in
      withUnsafePointer(to: address.storage) {
        path.accept(message, from: $0, transport, now: Int64(now * 1e9), into: output)
      }
    }
    switch outcome {
    case .drop: return .drop
    case .forward(let route): return .forward(route)
    case .reply(let length), .replyAndRefresh(let length, _):
      if case .replyAndRefresh(_, let route) = outcome { refreshes.append(route) }
      return .reply(Array(UnsafeBufferPointer(start: output, count: length)))
    }
  }

  /// Asks, and wants a reply.
  func reply(
    _ query: RawQuery, from client: String = "127.0.0.1", _ transport: QueryTransport = .udp, now: Double = 0,
    _ location: SourceLocation = #_sourceLocation
  ) throws -> Message {
    guard case .reply(let octets) = ask(query.octets, from: client, transport, now: now) else {
      Issue.record("no reply", sourceLocation: location)
      throw NoReply()
    }
    expectUsualHeader(octets, query, location)
    return try Message.parse(octets)
  }

  /// Asks for a name.
  func reply(
    _ name: String, _ type: RecordType = .a, now: Double = 0, _ location: SourceLocation = #_sourceLocation
  ) throws -> Message {
    try reply(
      RawQuery {
        $0.name = RawQuery.name(name)
        $0.type = type.rawValue
      }, now: now, location)
  }

  /// Runs the hot path over the query repeatedly where an allocation traps.
  func allocations(for octets: [UInt8], _ transport: QueryTransport = .udp) -> AllocationTrap.Outcome {
    let address = SocketAddress(octets: [127, 0, 0, 1], port: 5353)!.storage
    let (path, output) = (path, output)
    return octets.withUnsafeBufferPointer { message in
      withUnsafePointer(to: address) { client in
        let run = {
          var round: Int64 = 0
          while round < 100 {
            _ = path.accept(message, from: client, transport, now: round, into: output)
            round += 1
          }
        }
        run()
        return AllocationTrap.run(run)
      }
    }
  }

  /// Keeps an answer.
  func keep(
    _ name: String, _ type: UInt16 = 1, route: UInt16 = 0, dnssecOK: Bool = false, checkingDisabled: Bool = false,
    subnet: QueryClientSubnet = QueryClientSubnet(), life: EntryLife = EntryLife(lifetime: 3600),
    _ response: ComposedResponse
  ) {
    let scope = CacheScope(
      type: type, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled, route: route, network: 0)
    var buffer = RawQuery.name(name).map(asciiLowercase)
    let length = buffer.count
    buffer += [UInt8](repeating: 0, count: CacheKey.longest - length)
    buffer.withUnsafeMutableBufferPointer {
      let key = cache.key(in: $0.baseAddress!, nameLength: length, scope, subnet: subnet)
      #expect(cache.insert(key, response, now: storedAt, life))
    }
  }

  /// Keeps records of one type.
  func keep(_ name: String, _ records: [ResourceRecord], route: UInt16 = 0) throws {
    let owner = try #require(DomainName(octets: RawQuery.name(name)))
    let type = try #require(records.last).type.rawValue
    keep(name, type, route: route, try #require(ComposedResponse(.noError, to: owner, answers: records)))
  }

  private struct NoReply: Error {}
}

/// What holds for every response.
func expectUsualHeader(_ octets: [UInt8], _ query: RawQuery, _ location: SourceLocation) {
  let flags = UInt16(octets[2]) << 8 | UInt16(octets[3])
  #expect(octets[..<2].elementsEqual(words(query.id)), "ID", sourceLocation: location)
  #expect(flags & 0x8080 == 0x8080, "QR and RA", sourceLocation: location)
  #expect(flags & 0x0040 == 0, "Z", sourceLocation: location)
  #expect(flags & 0x7910 == query.flags & 0x7910, "opcode, RD and CD", sourceLocation: location)
  let question = query.name + words(query.type, query.qclass)
  if octets[5] == 1 {
    #expect(octets[12...].starts(with: question), "the question, octet by octet", sourceLocation: location)
  }
}

func address(_ name: String, _ last: UInt8, ttl: UInt32 = 300) -> ResourceRecord {
  ResourceRecord(owner: DomainName(octets: RawQuery.name(name))!, type: .a, ttl: ttl, rdata: [192, 0, 2, last])
}

func alias(_ name: String, _ target: String, ttl: UInt32 = 300) -> ResourceRecord {
  ResourceRecord(
    owner: DomainName(octets: RawQuery.name(name))!, type: .cname, ttl: ttl, rdata: RawQuery.name(target))
}

/// A TXT record with `octets` of RDATA, a multiple of 256.
func text(_ name: String, octets: Int) -> ResourceRecord {
  let rdata = (0..<(octets / 256)).flatMap { _ in [255] + [UInt8](repeating: 97, count: 255) }
  return ResourceRecord(owner: DomainName(octets: RawQuery.name(name))!, type: .txt, ttl: 300, rdata: rdata)
}

/// An SOA record of a zone, the last of its numbers its MINIMUM.
func startOfAuthority(_ zone: String, ttl: UInt32) -> ResourceRecord {
  let numbers = words(0, 1, 0, 2, 0, 3, 0, 4, UInt16(ttl >> 16), UInt16(ttl & 0xFFFF))
  return ResourceRecord(
    owner: DomainName(octets: RawQuery.name(zone))!, type: .soa, ttl: ttl,
    rdata: RawQuery.name("ns.\(zone)") + RawQuery.name("hostmaster.\(zone)") + numbers)
}
