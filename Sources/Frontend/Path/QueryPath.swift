// QueryPath.swift -- the hot path: from a query's octets to its answer, on the listener's thread, without allocation.
//
// Each thread has its own path; what it reads is shared (QueryTables.swift). Queries that it cannot answer go to the
// resolver.

import CHotPath
import CSocket
import DNSWire
import FairShares
import Glibc
import MessageCache
import Routing

/// The result of `QueryPath.accept`.
package enum QueryOutcome {
  /// The response is in the output; the value is its length in octets.
  case reply(Int)
  /// The response is in the output, with that length; the resolver also gets the query, with that route, to refresh it.
  case replyAndRefresh(Int, UInt16)
  /// The query gets no response.
  case drop
  /// The answer is not at hand: the resolver gets the query, with that route.
  case forward(UInt16)
}

/// The transport that a query arrived over.
package enum QueryTransport: UInt8, CaseIterable, Sendable {
  case udp
  case tcp
  /// DNS over TLS (RFC 7858).
  case dot
  /// DNS over HTTPS (RFC 8484), also behind a proxy that ends TLS.
  case doh

  /// All except UDP, whose clients wait for an answer that is delayed.
  package static let streams: [QueryTransport] = [.tcp, .dot, .doh]

  /// Whether it is UDP. A comparison of raw values may allocate, as far as the compiler knows.
  @inlinable var isUDP: Bool {
    @_noAllocation get {
      switch self {
      case .udp: true
      case .tcp, .dot, .doh: false
      }
    }
  }

  /// The raw value; its own getter may allocate, as far as the compiler knows.
  @inlinable var place: Int {
    @_noAllocation get {
      switch self {
      case .udp: 0
      case .tcp: 1
      case .dot: 2
      case .doh: 3
      }
    }
  }
}

/// One thread's path from query to answer.
package final class QueryPath {
  private let tables: QueryTables
  // The objects in `tables`, which keeps them alive: a strong reference would be retained at each use.
  private let access: Unmanaged<AccessPolicy>
  private let routes: Unmanaged<RouteTable>
  /// Whether rules tell clients apart.
  private let hasClasses: Bool
  private let prepared: Unmanaged<PreparedAnswers>
  private let subnetRoutes: Unmanaged<RouteSet>
  private let networkRoutes: Unmanaged<RouteSet>
  private let network: Unmanaged<CurrentNetwork>
  private let cache: Unmanaged<MessageCache>
  private let plainRoutes: Unmanaged<RouteSet>
  private let rateLimit: Unmanaged<BucketTable>
  private let isLimited: Bool
  /// Queries beyond the limit that this thread has reported.
  private var reportedLimited: UInt64 = 0
  /// The query that `accept` read last, for callers that forward it.
  var query: Query { @_noAllocation @inline(__always) get { read.pointee } }
  /// In separate memory: a property of an object is checked for exclusive access at each use.
  private let read: UnsafeMutablePointer<Query>
  private let key: UnsafeMutablePointer<UInt8>
  /// The counters behind `tally`.
  let counters: QueryCounters
  /// The options of responses over streams. A frontend sets them before `accept` where its connections differ.
  package var options: StreamOptions
  let tally: QueryTally
  /// In separate memory, like `read`.
  private let end: UnsafeMutablePointer<QueryEnd>
  var lastEnd: QueryEnd { @_noAllocation get { end.pointee } }

  package convenience init(_ tables: QueryTables) { self.init(tables, QueryCounters()) }

  /// - Parameter counters: the thread's own counters, which outlive the tables.
  package init(_ tables: QueryTables, _ counters: QueryCounters) {
    self.tables = tables
    self.counters = counters
    tally = counters.tally
    options = StreamOptions(keepalive: tables.keepalive)
    read = .allocate(capacity: 1)
    read.initialize(to: Query())
    end = .allocate(capacity: 1)
    end.initialize(to: QueryEnd(.dropped, 0, rule: RouteFinding.noCounter))
    access = .passUnretained(tables.access)
    routes = .passUnretained(tables.routes)
    hasClasses = tables.routes.classes.count > 1
    prepared = .passUnretained(tables.prepared)
    subnetRoutes = .passUnretained(tables.subnetRoutes)
    networkRoutes = .passUnretained(tables.networkRoutes)
    network = .passUnretained(tables.network)
    cache = .passUnretained(tables.cache)
    plainRoutes = .passUnretained(tables.plainRoutes)
    rateLimit = .passUnretained(tables.rateLimit)
    isLimited = tables.rateLimit.isOn
    key = .allocate(capacity: CacheKey.longest)
    key.initialize(repeating: 0, count: CacheKey.longest)
  }

  deinit {
    key.deallocate()
    read.deallocate()
    end.deallocate()
  }

  /// A path for the same thread with other tables; it shares the counters.
  func successor(_ tables: QueryTables) -> QueryPath { QueryPath(tables, counters) }

  /// Answers `message` from local data and the cache; asks no upstream.
  ///
  /// - Parameters:
  ///   - now: nanoseconds of the boot-time clock.
  ///   - output: room for the transport's largest response plus `ResponseWriter.overhead`, in octets.
  @_noAllocation
  package func accept(
    _ message: UnsafeBufferPointer<UInt8>, from client: UnsafePointer<sockaddr_storage>, _ transport: QueryTransport,
    now: Int64, into output: UnsafeMutablePointer<UInt8>
  ) -> QueryOutcome {
    let verdict = QueryReader.read(message.span, into: &read.pointee)
    end.pointee.rule = RouteFinding.noCounter
    if case .drop = verdict {
      tally.count(.dropped, transport)
      return .drop
    }
    guard access._withUnsafeGuaranteedRef({ $0.allows(client) }) else {
      return refuse(.refused, ede: .prohibited, to: message, over: transport, into: output)
    }
    // Over streams the query has been delayed instead: see `delay`.
    if isLimited, transport.isUDP, isBeyondLimit(client, now: now) {
      guard case .query = verdict else {
        tally.count(.limited, transport)
        return .drop
      }
      return truncate(message, into: output)
    }
    switch verdict {
    case .query: break
    case .formErr: return refuse(.formErr, to: message, over: transport, into: output)
    case .notImp: return refuse(.notImp, to: message, over: transport, into: output)
    default: return refuse(.badVers, to: message, over: transport, into: output)
    }
    tally.count(type: query.type)
    guard query.qclass == RecordClass.internet.rawValue else {
      return refuse(.refused, ede: .notSupported, to: message, over: transport, into: output)
    }
    if query.type == RecordType.any.rawValue {
      return local(tables.anyAnswer, to: message, over: transport, into: output)
    }
    if RecordType(query.type).isOnlyForQuestions {
      return refuse(.refused, ede: .notSupported, to: message, over: transport, into: output)
    }
    QueryReader.lowercaseName(of: message.span, length: query.nameLength, into: key)
    // A closure that captures `self` would retain it: closures get copies of what they need.
    let (name, length, type, hasClasses) = (key, query.nameLength, query.type, hasClasses)
    let found = routes._withUnsafeGuaranteedRef {
      let group = hasClasses ? $0.group(of: client) : ClientClasses.none
      return $0.find(name, length: length, type: type, from: group)
    }
    if found.counter != RouteFinding.noCounter {
      end.pointee.rule = found.counter
      tally.count(rule: found.counter)
    }
    switch found.decision {
    case .local(let index): return local(index, to: message, over: transport, into: output)
    case .route(let route): return cached(message, route: route, over: transport, now: now, into: output)
    }
  }

  /// Answers SERVFAIL to a query that there is no room for; any question gets the same answer.
  func turnAway(
    _ message: UnsafeBufferPointer<UInt8>, _ transport: QueryTransport, into output: UnsafeMutablePointer<UInt8>
  ) -> QueryOutcome {
    end.pointee.rule = RouteFinding.noCounter
    if case .drop = QueryReader.read(message.span, into: &read.pointee) {
      tally.count(.dropped, transport)
      return .drop
    }
    return refuse(.servFail, ede: .other, to: message, over: transport, into: output)
  }

  /// Answers the query that was read last with that code and no records, and counts it under the fate of the code.
  @_noAllocation
  func refuse(
    _ code: ResponseCode, ede: ExtendedError? = nil, to message: UnsafeBufferPointer<UInt8>,
    over transport: QueryTransport, into output: UnsafeMutablePointer<UInt8>
  ) -> QueryOutcome {
    var head = ResponseHead(responseCode: code.rawValue)
    if let ede { head.extendedError = ede.rawValue }
    note(QueryFate(ofRefusal: code), code: code.rawValue, over: transport)
    return .reply(ResponseWriter.complete(query, of: message.span, head, limits(transport), into: output))
  }

  @_noAllocation
  private func isBeyondLimit(_ client: UnsafePointer<sockaddr_storage>, now: Int64) -> Bool {
    let key = ClientKey(client).value
    return rateLimit._withUnsafeGuaranteedRef { $0.take(key, now: now) == BucketLimit.refused }
  }

  /// How long to delay a query over a stream, in nanoseconds, before `accept`; 0 for not at all. Takes a token of
  /// `listen.rate_limit` and counts the delay.
  ///
  /// - Returns: `BucketLimit.refused` over DoH for a query that would wait longer than `DelayLimit.longest`: its client gets
  ///   status 429, and the query is counted. Over TCP and DoT such a query waits that long.
  @_noAllocation
  func delay(
    of client: UnsafePointer<sockaddr_storage>, over transport: QueryTransport, now: Int64
  ) -> Int64 {
    guard isLimited else { return 0 }
    let key = ClientKey(client).value
    var wait = rateLimit._withUnsafeGuaranteedRef { $0.take(key, now: now, patience: DelayLimit.longest) }
    if wait == BucketLimit.refused {
      if case .doh = transport {
        tally.count(.limited, transport)
        return wait
      }
      wait = DelayLimit.longest
    }
    if wait > 0 { tally.count(delayedOver: transport) }
    return wait
  }

  /// Answers with TC and no records: a real client retries over TCP, and a client with a forged address gains nothing.
  @_noAllocation
  private func truncate(
    _ message: UnsafeBufferPointer<UInt8>, into output: UnsafeMutablePointer<UInt8>
  ) -> QueryOutcome {
    note(.limited, code: 0, over: .udp)
    var limits = limits(.udp)
    // No record fits.
    limits.size = 0
    return .reply(ResponseWriter.complete(query, of: message.span, ResponseHead(), limits, into: output))
  }

  /// Whether to wake the resolver's loop so that it logs queries beyond the limit, or of clients that are not allowed:
  /// once a minute each.
  func hasUnreported(now: Int64) -> Bool {
    if isLimited, rateLimit._withUnsafeGuaranteedRef({ $0.hasUnreported(&reportedLimited, now: now) }) { return true }
    return access._withUnsafeGuaranteedRef { $0.hasUnreported(now: now) }
  }

  @_noAllocation @inline(__always)
  private func note(_ fate: QueryFate, code: UInt16, over transport: QueryTransport) {
    tally.count(fate, transport)
    tally.count(code: code)
    end.pointee.fate = UInt8(truncatingIfNeeded: fate.place)
    end.pointee.code = code
  }

  @_noAllocation
  private func local(
    _ index: UInt32, to message: UnsafeBufferPointer<UInt8>, over transport: QueryTransport,
    into output: UnsafeMutablePointer<UInt8>
  ) -> QueryOutcome {
    let limits = limits(transport)
    var head = ResponseHead()
    let (start, type) = (query.questionEnd, query.type)
    let additionals = prepared._withUnsafeGuaranteedRef {
      $0.copy(index, for: type, to: output + start, capacity: limits.size - start, &head)
    }
    let fate = head.extendedError == ExtendedError.blocked.rawValue ? QueryFate.blocked : .local
    note(fate, code: head.responseCode, over: transport)
    let length = ResponseWriter.complete(query, of: message.span, head, limits, into: output)
    if additionals > 0 { ResponseWriter.count(additionals: additionals, in: output) }
    return .reply(length)
  }

  @_noAllocation
  private func cached(
    _ message: UnsafeBufferPointer<UInt8>, route: UInt16, over transport: QueryTransport, now: Int64,
    into output: UnsafeMutablePointer<UInt8>
  ) -> QueryOutcome {
    let limits = limits(transport)
    var head = ResponseHead()
    let knowsSubnet = subnetRoutes._withUnsafeGuaranteedRef { $0.contains(route) }
    if knowsSubnet, query.hasBrokenSubnet { return refuse(.formErr, to: message, over: transport, into: output) }
    if tables.cacheEnabled {
      let usesSubnet = knowsSubnet ? query.clientSubnet.sourceLength > 0 : false
      let capacity = limits.size - query.questionEnd
      let found = find(
        route: route, usesSubnet: usesSubnet, now: now, into: output + query.questionEnd, capacity: capacity, &head)
      if found.isAnswer {
        note(found.isStale ? .stale : .hit, code: head.responseCode, over: transport)
        let length = ResponseWriter.complete(query, of: message.span, head, limits, into: output)
        return found.wantsRefresh ? .replyAndRefresh(length, route) : .reply(length)
      }
    }
    guard query.recursionDesired else { return refuse(.refused, to: message, over: transport, into: output) }
    return .forward(route)
  }

  /// Finds a fresh entry that answers the question, or without one the newest expired entry.
  @_noAllocation
  private func find(
    route: UInt16, usesSubnet: Bool, now: Int64, into output: UnsafeMutablePointer<UInt8>, capacity: Int,
    _ head: inout ResponseHead
  ) -> CacheLookup {
    let isApart = networkRoutes._withUnsafeGuaranteedRef { $0.contains(route) }
    var (dnssecOK, checkingDisabled) = (query.dnssecOK, query.checkingDisabled)
    if dnssecOK || checkingDisabled, plainRoutes._withUnsafeGuaranteedRef({ $0.contains(route) }) {
      (dnssecOK, checkingDisabled) = (false, false)
    }
    let asked = CacheScope(
      type: query.type, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled, route: route,
      network: isApart ? network._withUnsafeGuaranteedRef { $0.number } : 0)
    var order = LookupOrder(usesSubnet: usesSubnet)
    while let step = order.next() {
      let found = look(
        step, asked, usesSubnet: usesSubnet, now: now, servesStale: false, into: output, capacity: capacity, &head)
      switch found.kind {
      case .hit, .tooLong: return found
      case .expired: order.noteExpired(step, storedAt: found.storedAt, isServed: false)
      case .stale: order.noteExpired(step, storedAt: found.storedAt, isServed: true)
      case .miss: break
      }
    }
    guard let step = order.stale else { return .miss }
    return look(
      step, asked, usesSubnet: usesSubnet, now: now, servesStale: true, into: output, capacity: capacity, &head)
  }

  /// Looks up one of the entries that can answer the question.
  @_noAllocation
  private func look(
    _ step: LookupStep, _ asked: CacheScope, usesSubnet: Bool, now: Int64, servesStale: Bool,
    into output: UnsafeMutablePointer<UInt8>, capacity: Int, _ head: inout ResponseHead
  ) -> CacheLookup {
    var scope = asked
    var subnet = QueryClientSubnet()
    var needsEverySubnet = usesSubnet
    if usesSubnet { head.subnetScope = 0 }
    switch step {
    case .subnet:
      subnet = query.clientSubnet.capped
      head.subnetScope = Int16(subnet.sourceLength)
      needsEverySubnet = false
    case .shared: break
    case .nameError: scope.type = CacheKey.everyType
    }
    let (buffer, length) = (key, query.nameLength)
    return cache._withUnsafeGuaranteedRef { cache in
      let key = cache.key(in: buffer, nameLength: length, scope, subnet: subnet)
      return cache.find(
        key, now: now, servesStale: servesStale, onlyForEverySubnet: needsEverySubnet, into: output,
        capacity: capacity, &head)
    }
  }

  @_noAllocation
  func limits(_ transport: QueryTransport) -> ResponseLimits {
    switch transport {
    case .udp: ResponseLimits.udp(query, maximum: tables.maxUDPPayload)
    case .tcp, .dot, .doh:
      ResponseLimits.stream(options, advertisedPayload: tables.maxUDPPayload)
    }
  }
}

extension QueryFate {
  /// The fate under which a refusal with this code counts.
  @_noAllocation
  fileprivate init(ofRefusal code: ResponseCode) {
    switch code.rawValue {
    case ResponseCode.refused.rawValue: self = .refused
    case ResponseCode.servFail.rawValue: self = .overflow
    default: self = .invalid
    }
  }
}

extension QueryClientSubnet {
  /// Cut to /24 or /56: the daemon sends no more of a client's address upstream (RFC 7871 section 11.1).
  @inlinable package var capped: QueryClientSubnet {
    @_noAllocation get { masked(to: family == 1 ? 24 : 56) }
  }
}
