// ClientClasses.swift -- which rules count for which clients.
//
// Two prefixes are disjoint, or one contains the other. The longest prefix around a client's address therefore says which
// rules count for the client, and no more has to be compared before the cache.

import DNSWire

/// The classes of clients that rules with `clients` tell apart.
public struct ClientClasses: Sendable {
  /// A prefix of some rule.
  public struct Entry: Hashable, Sendable {
    public let prefix: IPPrefix
    /// The class of the addresses whose longest prefix this is.
    public let number: Int
  }

  /// The prefixes of all rules, longest first.
  public let entries: [Entry]
  /// The indices of the rules with `clients` that count, by class.
  private let counting: [Set<Int>]

  /// Number of classes; at least 1.
  public var count: Int { counting.count }

  /// The class of the daemon's own questions, and of clients in no prefix: rules with `clients` do not count.
  @inlinable public static var none: Int { @_noAllocation get { 0 } }

  init(_ rules: [RouteRule]) {
    var classes = Interned<Set<Int>>()
    _ = classes.number(of: [])
    let prefixes = Set(rules.flatMap(\.clients)).sorted {
      ($0.length, $0.address.octets.count) > ($1.length, $1.address.octets.count)
    }
    entries = prefixes.map { prefix in
      let counting = rules.indices.filter { rules[$0].clients.contains { $0.contains(prefix) } }
      return Entry(prefix: prefix, number: Int(classes.number(of: Set(counting))))
    }
    counting = classes.values
  }

  /// By a comparison with each prefix; `RouteTable.group` is for the hot path.
  public func number(of client: IPAddress) -> Int {
    entries.first { $0.prefix.contains(client) }?.number ?? ClientClasses.none
  }

  func counts(_ index: Int, _ rule: RouteRule, for number: Int) -> Bool {
    rule.clients.isEmpty || counting[number].contains(index)
  }
}

extension IPPrefix {
  /// Whether all addresses of another prefix are inside.
  fileprivate func contains(_ other: IPPrefix) -> Bool { length <= other.length && contains(other.address) }
}
