// RouteRule.swift -- one `[[rule]]` of the configuration: which names, and what becomes of their questions.

import DNSWire

/// Which names a rule is about. Case does not matter.
public enum NamePattern: Hashable, Sendable {
  /// A name and everything below it: `corp.example`.
  case subtree(DomainName)
  /// Only what is below a name: `*.corp.example`.
  case below(DomainName)
  /// Only the name itself: `=corp.example`.
  case exact(DomainName)

  /// A pattern from the text of the configuration: a name, `*.` and a name, or `=` and a name.
  /// Nil where the rest is not a name, and for `*` alone, which could mean two things.
  public init?(text: some StringProtocol) {
    if text.hasPrefix("=") {
      guard let name = DomainName(text: text.dropFirst()) else { return nil }
      self = .exact(name)
    } else if text.hasPrefix("*.") {
      let rest = text.dropFirst(2)
      guard let name = rest.isEmpty ? .root : DomainName(text: rest) else { return nil }
      self = .below(name)
    } else {
      guard text != "*", let name = DomainName(text: text) else { return nil }
      self = .subtree(name)
    }
  }

  /// The name that the pattern is written with.
  public var name: DomainName {
    switch self {
    case .subtree(let name), .below(let name), .exact(let name): name
    }
  }

  /// Whether the pattern is about this name.
  ///
  /// - Complexity: O(octets of the name)
  public func matches(_ candidate: DomainName) -> Bool {
    switch self {
    case .subtree(let name): candidate.isAtOrBelow(name)
    case .below(let name): candidate != name && candidate.isAtOrBelow(name)
    case .exact(let name): candidate == name
    }
  }
}

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
