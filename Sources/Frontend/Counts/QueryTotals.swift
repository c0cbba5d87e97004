// QueryTotals.swift -- the query counters of all threads, as one value.

import Telemetry

/// The fate of a query. Each query counts once.
package enum QueryFate: Int, CaseIterable, Sendable {
  /// Answered from the cache with fresh data.
  case hit
  /// Answered at once from the cache with expired data.
  case stale
  /// Answered by a rule, as a special name or from the hosts file.
  case local
  /// Answered by a rule that says `nxdomain`, `nodata` or `refused`.
  case blocked
  /// Handed to the resolver.
  case miss
  /// REFUSED: the client is not allowed, the class or the type is not served, or recursion is not desired.
  case refused
  /// FORMERR, NOTIMP or BADVERS.
  case invalid
  /// SERVFAIL at once: too many clients are already waiting.
  case overflow
  /// Not a query, or one that cannot be answered: the daemon sends nothing.
  case dropped
  /// Above `listen.rate_limit`: an empty answer with TC over UDP, status 429 over DoH.
  case limited
}

/// The response codes that are counted separately.
package enum CountedCode: Int, CaseIterable, Sendable {
  case noError, formErr, servFail, nxDomain, notImp, refused, badVers, other
}

/// The QTYPEs that are counted separately.
package enum CountedType: Int, CaseIterable, Sendable { case a, aaaa, https, ptr, other }

extension QueryFate {
  /// The machine-readable word: in labels, in JSON and in the query log.
  package var word: String {
    switch self {
    case .hit: "hit"
    case .stale: "stale"
    case .local: "local"
    case .blocked: "blocked"
    case .miss: "miss"
    case .refused: "refused"
    case .invalid: "invalid"
    case .overflow: "overflow"
    case .dropped: "dropped"
    case .limited: "limited"
    }
  }
}

extension CountedCode {
  /// The machine-readable word: the mnemonic in lower case.
  package var word: String { "\(self)".lowercased() }
}

extension CountedType {
  /// The machine-readable word: the mnemonic in lower case.
  package var word: String { "\(self)" }
}

extension QueryTransport {
  /// The machine-readable word.
  package var word: String {
    switch self {
    case .udp: "udp"
    case .tcp: "tcp"
    case .dot: "dot"
    case .doh: "doh"
    }
  }
}

/// The query counters of all threads since the start.
///
/// Each value is read atomically; values that several threads write may be from slightly different moments.
package struct QueryTotals: Sendable, Equatable {
  /// Those of each transport behind those of the one before.
  private var fates = [UInt64](repeating: 0, count: QueryTransport.allCases.count * QueryFate.allCases.count)
  var delayed = [UInt64](repeating: 0, count: QueryTransport.allCases.count)
  var codes = [UInt64](repeating: 0, count: CountedCode.allCases.count)
  var types = [UInt64](repeating: 0, count: CountedType.allCases.count)
  /// Queries that each rule has decided, by the number in `RuleNames`.
  package var rules = [UInt64](repeating: 0, count: RuleNames.most)
  /// UDP responses that the kernel did not take.
  package var unsent: UInt64 = 0
  /// Time from a query's arrival to its answer, for answers at hand; measured once a batch.
  package var atHand = LatencyHistogram()
  /// The same for queries that the resolver answered.
  package var resolved = LatencyHistogram()

  package init() {}

  package func count(_ fate: QueryFate, over transport: QueryTransport) -> UInt64 {
    fates[QueryTotals.place(fate, transport)]
  }

  /// Queries over all transports with that fate.
  package func count(_ fate: QueryFate) -> UInt64 {
    QueryTransport.allCases.reduce(0) { $0 &+ count(fate, over: $1) }
  }

  package mutating func add(_ count: UInt64, _ fate: QueryFate, over transport: QueryTransport) {
    fates[QueryTotals.place(fate, transport)] &+= count
  }

  private static func place(_ fate: QueryFate, _ transport: QueryTransport) -> Int {
    transport.place * QueryFate.allCases.count + fate.rawValue
  }

  /// Queries that were delayed because their client exceeded `listen.rate_limit`; each also counts under its fate.
  package func countDelayed(over transport: QueryTransport) -> UInt64 { delayed[transport.place] }

  /// Responses with that code.
  package func count(_ code: CountedCode) -> UInt64 { codes[code.rawValue] }

  /// Queries for that QTYPE; a query that could not be read has none.
  package func count(_ type: CountedType) -> UInt64 { types[type.rawValue] }

  package var queries: UInt64 { fates.reduce(0, &+) }

  /// The share of queries that the cache answered at once, among those that it could answer: 0 to 1; nil without any.
  package var hitRatio: Double? {
    let hits = count(.hit) &+ count(.stale)
    let all = hits &+ count(.miss) &+ count(.overflow)
    return all == 0 ? nil : Double(hits) / Double(all)
  }

  /// The latencies of all answers, at hand or resolved.
  package var durations: LatencyHistogram { atHand + resolved }

  /// The counts between an earlier reading and a later one.
  package static func - (later: QueryTotals, earlier: QueryTotals) -> QueryTotals {
    func difference(_ left: [UInt64], _ right: [UInt64]) -> [UInt64] { zip(left, right).map { $0 > $1 ? $0 - $1 : 0 } }
    var totals = QueryTotals()
    totals.fates = difference(later.fates, earlier.fates)
    totals.delayed = difference(later.delayed, earlier.delayed)
    totals.codes = difference(later.codes, earlier.codes)
    totals.types = difference(later.types, earlier.types)
    totals.rules = difference(later.rules, earlier.rules)
    totals.unsent = later.unsent > earlier.unsent ? later.unsent - earlier.unsent : 0
    totals.atHand = later.atHand - earlier.atHand
    totals.resolved = later.resolved - earlier.resolved
    return totals
  }
}
