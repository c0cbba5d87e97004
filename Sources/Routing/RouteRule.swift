// RouteRule.swift -- one `[[rule]]` of the configuration: which names, and what becomes of their questions.

import DNSWire

/// What becomes of the questions that a rule is about.
public enum RouteAction: Hashable, Sendable {
  /// They are resolved by the route of this number; 0 is the default route.
  case route(UInt16)
  /// They are answered with NXDOMAIN and the extended error "blocked".
  case nxDomain
  /// They are answered with REFUSED and the extended error "blocked".
  case refused
  /// A and AAAA are answered with those of these addresses that fit, in this order; every other type with NODATA.
  case pinned([IPAddress])
}

/// A rule: the first one whose patterns match a name decides about it.
public struct RouteRule: Hashable, Sendable {
  /// The names it is about.
  public var names: [NamePattern]
  /// What becomes of their questions.
  public var action: RouteAction

  /// A rule about these names.
  public init(names: [NamePattern], action: RouteAction) {
    self.names = names
    self.action = action
  }
}
