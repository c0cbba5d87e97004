// RouteRule.swift -- one `[[rule]]` of the configuration: names and the action for their questions.

import DNSWire

/// The action for questions that match a rule.
public enum RouteAction: Hashable, Sendable {
  /// Resolve them by the route of this number; 0 is the default route.
  case route(UInt16)
  /// Answer NXDOMAIN with the extended error "blocked".
  case nxDomain
  /// Answer REFUSED with the extended error "blocked".
  case refused
  /// Answer A and AAAA with the addresses of that type, in this order, and other types with NODATA.
  case pinned([IPAddress])
}

/// A rule. The first rule with a matching pattern decides.
public struct RouteRule: Hashable, Sendable {
  /// The patterns; one that matches is enough.
  public var names: [NamePattern]
  /// The action for their questions.
  public var action: RouteAction

  public init(names: [NamePattern], action: RouteAction) {
    self.names = names
    self.action = action
  }
}
