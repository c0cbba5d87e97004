// QueryTotals.swift -- what all threads together have counted of queries, as one value.

import Telemetry

/// What became of a query. Each counts once.
package enum QueryFate: Int, CaseIterable, Sendable {
  /// Answered from the cache with what is fresh.
  case hit
  /// Answered at once from the cache with what has expired.
  case stale
  /// Answered by a rule, as a special name or from the hosts file.
  case local
  /// Answered by a rule that says `nxdomain` or `refused`.
  case blocked
  /// Handed to the resolver.
  case miss
  /// REFUSED: who asked may not, or the class or the type is not served, or recursion was not desired.
  case refused
  /// FORMERR, NOTIMP or BADVERS.
  case invalid
  /// SERVFAIL at once: too many clients waited already.
  case overflow
  /// No query, or one that cannot be answered: nothing was sent.
  case dropped
  /// More than `listen.rate_limit`, over UDP: an empty answer with TC.
  case limited
}

/// The response codes that are told apart.
package enum CountedCode: Int, CaseIterable, Sendable {
  case noError, formErr, servFail, nxDomain, notImp, refused, badVers, other
}

/// The types of questions that are told apart.
package enum CountedType: Int, CaseIterable, Sendable {
  case a, aaaa, https, ptr, other
}

extension QueryFate {
  /// One word for programs: in labels, in JSON and in the query log.
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
  /// One word for programs: the mnemonic in lower case.
  package var word: String {
    switch self {
    case .noError: "noerror"
    case .formErr: "formerr"
    case .servFail: "servfail"
    case .nxDomain: "nxdomain"
    case .notImp: "notimp"
    case .refused: "refused"
    case .badVers: "badvers"
    case .other: "other"
    }
  }
}

extension CountedType {
  /// One word for programs: the mnemonic in lower case.
  package var word: String {
    switch self {
    case .a: "a"
    case .aaaa: "aaaa"
    case .https: "https"
    case .ptr: "ptr"
    case .other: "other"
    }
  }
}

extension QueryTransport {
  /// One word for programs.
  package var word: String {
    switch self {
    case .udp: "udp"
    case .tcp: "tcp"
    }
  }
}

/// What all threads have counted so far.
///
/// Each number is whole; of those that several threads write together one may be a moment older than another.
package struct QueryTotals: Sendable, Equatable {
  var udp = [UInt64](repeating: 0, count: QueryFate.allCases.count)
  var tcp = [UInt64](repeating: 0, count: QueryFate.allCases.count)
  var codes = [UInt64](repeating: 0, count: CountedCode.allCases.count)
  var types = [UInt64](repeating: 0, count: CountedType.allCases.count)
  /// Responses over UDP that the kernel did not take.
  package var unsent: UInt64 = 0
  /// How long it took from the query's arrival to the answer, where that was at hand: a batch at a time.
  package var atHand = LatencyHistogram()
  /// The same for queries that the resolver answered.
  package var resolved = LatencyHistogram()

  /// Nothing.
  package init() {}

  /// Queries over one transport with that fate.
  package func count(_ fate: QueryFate, over transport: QueryTransport) -> UInt64 {
    switch transport {
    case .udp: udp[fate.rawValue]
    case .tcp: tcp[fate.rawValue]
    }
  }

  /// Queries over both transports with that fate.
  package func count(_ fate: QueryFate) -> UInt64 { udp[fate.rawValue] &+ tcp[fate.rawValue] }

  /// Responses with that code.
  package func count(_ code: CountedCode) -> UInt64 { codes[code.rawValue] }

  /// Questions of that type; queries that could not be read have none.
  package func count(_ type: CountedType) -> UInt64 { types[type.rawValue] }

  /// All queries.
  package var queries: UInt64 { udp.reduce(0, &+) &+ tcp.reduce(0, &+) }

  /// Queries that the cache answered at once, of those that it could have: from 0 to 1; nil where there was none.
  package var hitRatio: Double? {
    let hits = count(.hit) &+ count(.stale)
    let all = hits &+ count(.miss) &+ count(.overflow)
    return all == 0 ? nil : Double(hits) / Double(all)
  }

  /// How long answers took, at hand or not.
  package var durations: LatencyHistogram { atHand + resolved }

  /// What was counted between an earlier reading and a later one.
  package static func - (later: QueryTotals, earlier: QueryTotals) -> QueryTotals {
    func difference(_ left: [UInt64], _ right: [UInt64]) -> [UInt64] { zip(left, right).map { $0 > $1 ? $0 - $1 : 0 } }
    var totals = QueryTotals()
    totals.udp = difference(later.udp, earlier.udp)
    totals.tcp = difference(later.tcp, earlier.tcp)
    totals.codes = difference(later.codes, earlier.codes)
    totals.types = difference(later.types, earlier.types)
    totals.unsent = later.unsent > earlier.unsent ? later.unsent - earlier.unsent : 0
    totals.atHand = later.atHand - earlier.atHand
    totals.resolved = later.resolved - earlier.resolved
    return totals
  }
}
