// RouteRule.swift -- one `[[rule]]` of the configuration: names, types and the action for their questions.

import DNSWire
import Lists

/// The action for questions that match a rule.
public enum RouteAction: Hashable, Sendable {
  /// Decide as if no rule had matched, but with the route of this number in the place of the default route.
  case standard(UInt16)
  /// Resolve them by the route of this number; 0 is the default route.
  case route(UInt16)
  /// Answer NXDOMAIN with the extended error "blocked".
  case nxDomain
  /// Answer NODATA with the extended error "blocked".
  case noData
  /// Answer REFUSED with the extended error "blocked".
  case refused
  /// Answer A and AAAA with the addresses of that type, in this order, and other types with NODATA.
  case pinned([IPAddress])
}

/// The record types that routing distinguishes.
public enum TypeCategory: CaseIterable, Hashable, Sendable {
  case a, aaaa, pointer
  /// HTTPS and SVCB.
  case service
  case other

  init(_ type: RecordType) {
    self =
      switch type {
      case .a: .a
      case .aaaa: .aaaa
      case .ptr: .pointer
      case .svcb, .https: .service
      default: .other
      }
  }
}

/// A rule. The first rule with a matching pattern or list decides.
public struct RouteRule: Hashable, Sendable {
  /// The patterns; one that matches is enough, and so is one list.
  public var names: [NamePattern]
  /// The indices of its lists in the table of lists.
  public var lists: [Int]
  /// The types that it is for; empty for all.
  public var types: Set<TypeCategory>
  /// The clients that it is for; empty for all, and for the daemon itself.
  public var clients: [IPPrefix]
  /// The action for their questions.
  public var action: RouteAction
  /// The number of its counter.
  public var counter = RouteFinding.noCounter

  public init(
    names: [NamePattern], lists: [Int] = [], types: Set<TypeCategory> = [], clients: [IPPrefix] = [],
    action: RouteAction
  ) {
    self.names = names
    self.lists = lists
    self.types = types
    self.clients = clients
    self.action = action
  }

  /// The uses of lists by rules, in their order.
  public static func uses(of rules: [RouteRule]) -> [ListUse] {
    rules.flatMap { rule in rule.lists.map { ListUse(list: $0, blocks: rule.blocks) } }
  }

  /// Whether it answers in place of the name's owner.
  public var blocks: Bool {
    switch action {
    case .standard, .route: false
    case .nxDomain, .noData, .refused, .pinned: true
    }
  }

  func isFor(_ category: TypeCategory) -> Bool { types.isEmpty || types.contains(category) }

  /// Whether it counts for a client; nil stands for the daemon itself.
  func isFor(_ client: IPAddress?) -> Bool {
    clients.isEmpty || client.map { client in clients.contains { $0.contains(client) } } ?? false
  }

  /// Whether a pattern of so many labels counts for a name that is in the hosts file, or special, with this many. What
  /// changes nothing about such a name may have fewer.
  func mayOverride(_ depth: Int, from patternDepth: Int) -> Bool {
    if case .standard = action { true } else { patternDepth >= depth }
  }
}
