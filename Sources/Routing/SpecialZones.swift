// SpecialZones.swift -- the names that never go to a provider, and why.

import DNSWire

/// What becomes of the questions about a special name.
enum SpecialEffect: Hashable {
  /// A and AAAA are the loopback addresses, the rest is NODATA (RFC 6761 section 6.3).
  case loopback
  /// PTR is `localhost`, the rest is NODATA (RFC 6303 sections 4.2 and 4.3).
  case loopbackPointer
  /// The name is there, and empty.
  case noData
  /// There is no such name.
  case nxDomain
  /// The name belongs to the network we are on: LocalDNS, or else NXDOMAIN.
  case network
  /// As `network` for addresses, and for SVCB and HTTPS, which go where those go; every other type is an ordinary question.
  case singleLabel
  /// An address that was taken for a name, or a top-level label that is a number: there is no such name.
  case literal
  /// Below a search domain: providers and network, in the order of `localdns.search_domains`.
  case search
  /// As `network`; without LocalDNS there is no NAT64, and the zone has its two A records only (RFC 7050 section 8).
  case ipv4Only
  /// A probe for a captive portal: LocalDNS.
  case portal
}

/// A special name. A nil effect leaves the questions to the next special name above.
struct SpecialZone {
  /// The name.
  let name: DomainName
  /// The zone whose SOA record negative answers carry: the name, or one above it.
  let zone: DomainName
  /// What becomes of the name itself.
  let at: SpecialEffect?
  /// What becomes of the names below it.
  let below: SpecialEffect?
  /// How many labels a rule must have that is stronger.
  let ruleDepth: Int

  init(
    _ name: DomainName, zone: DomainName? = nil, at: SpecialEffect?, below: SpecialEffect?, ruleDepth: Int? = nil
  ) {
    self.name = name
    self.zone = zone ?? name
    self.at = at
    self.below = below
    self.ruleDepth = ruleDepth ?? name.labelCount
  }

  /// A search domain; nil where it has no effect. Every rule is stronger that says something about the names in it
  /// without the search domain: the network does not change what the administrator wants.
  fileprivate init?(_ domain: SearchDomain) {
    switch domain.effect {
    case .networkOnly:
      self.init(domain.name, at: .network, below: .network, ruleDepth: domain.reservedZone?.labelCount)
    case .shared: self.init(domain.name, at: .search, below: .search, ruleDepth: 0)
    case .publicSuffix, .special: return nil
    }
  }
}

extension SpecialZone {
  /// All special names, later ones winning over earlier ones of the same name.
  static func zones(_ settings: SpecialNamesSettings) -> [SpecialZone] {
    var zones: [SpecialZone] = []
    let portals = PortalNames.all.map { SpecialZone($0, at: .portal, below: nil) }
    let hasPortals = settings.portalNames && settings.portalRoute != nil
    guard settings.special else { return hasPortals ? portals : [] }
    zones += absentTexts.map { whole($0, .nxDomain) }
    if settings.networkRoute != nil, settings.searchRoute != nil {
      zones += SearchDomain.judged(settings.searchDomains).compactMap { SpecialZone($0) }
    }
    // A network may call its own domain what it likes, but not by a name with a meaning of its own.
    if hasPortals { zones += portals }
    zones += networkTexts.map { whole($0, .network) }
    zones += privateReverseTexts.map { whole($0, .network) }
    zones += emptyReverseTexts.map { SpecialZone(DomainName(text: $0)!, at: .noData, below: .nxDomain) }
    zones += loopbackReverse
    zones += [whole("localhost", .loopback), whole("resolver.arpa", .noData)]
    // What many hosts files call 127.0.0.1.
    zones.append(SpecialZone(DomainName(text: "localhost.localdomain")!, at: .loopback, below: nil))
    zones.append(SpecialZone(DomainName(text: "ipv4only.arpa")!, at: .ipv4Only, below: .network))
    return zones
  }

  private static func whole(_ text: String, _ effect: SpecialEffect) -> SpecialZone {
    SpecialZone(DomainName(text: text)!, at: effect, below: effect)
  }

  /// RFC 8375, ICANN's reservation of 2024, and the names of RFC 6762 appendix G, which will never be public.
  static let networkTexts = ["home.arpa", "internal", "lan", "home", "corp", "intranet", "private", "localdomain"]

  /// RFC 6761 (test, invalid), 6762 (local), 7686 (onion), 9476 (alt), 9665 (service.arpa), and the name by which a
  /// browser asks whether it should go round the system's resolver.
  static let absentTexts = [
    "test", "invalid", "local", "onion", "alt", "service.arpa", "use-application-dns.net",
  ]

  /// Private ranges: RFC 6303 sections 4.1 and 4.4, RFC 7793.
  static let privateReverseTexts =
    ["10.in-addr.arpa", "168.192.in-addr.arpa", "d.f.ip6.arpa"]
    + (16...31).map { "\($0).172.in-addr.arpa" }
    + (64...127).map { "\($0).100.in-addr.arpa" }

  /// This network, link-local, documentation, broadcast and the unspecified address: RFC 6303 sections 4.2 to 4.6,
  /// and RFC 9637 for the second documentation prefix.
  static let emptyReverseTexts = [
    "0.in-addr.arpa", "254.169.in-addr.arpa", "2.0.192.in-addr.arpa", "100.51.198.in-addr.arpa",
    "113.0.203.in-addr.arpa", "255.255.255.255.in-addr.arpa", "8.b.d.0.1.0.0.2.ip6.arpa", "0.f.f.f.3.ip6.arpa",
    "8.e.f.ip6.arpa", "9.e.f.ip6.arpa", "a.e.f.ip6.arpa", "b.e.f.ip6.arpa",
    String(repeating: "0.", count: 32) + "ip6.arpa",
  ]

  /// 127/8 and ::1. The names between the zone and its one PTR record exist, and are empty (RFC 8020).
  private static var loopbackReverse: [SpecialZone] {
    let zone = DomainName(text: "127.in-addr.arpa")!
    return [
      SpecialZone(zone, at: .noData, below: .nxDomain),
      SpecialZone(DomainName(text: "0.127.in-addr.arpa")!, zone: zone, at: .noData, below: nil),
      SpecialZone(DomainName(text: "0.0.127.in-addr.arpa")!, zone: zone, at: .noData, below: nil),
      SpecialZone(DomainName(text: "1.0.0.127.in-addr.arpa")!, zone: zone, at: .loopbackPointer, below: nil),
      SpecialZone(
        DomainName(text: "1." + String(repeating: "0.", count: 31) + "ip6.arpa")!, at: .loopbackPointer,
        below: .nxDomain),
    ]
  }
}

/// What the network and the administrator say about special names.
public struct SpecialNamesSettings: Sendable {
  /// Whether special names are answered here or sent to the network; without it they are ordinary names.
  public var special: Bool
  /// Whether the probe names of captive portals go to `portalRoute`.
  public var portalNames: Bool
  /// The network's search domains; `SearchDomain` says what each of them means.
  public var searchDomains: [DomainName]
  /// The route of names below them, which asks providers and LocalDNS; nil where search domains have no effect.
  public var searchRoute: UInt16?
  /// The route for names that belong to the network, which is never HTTPDNS; nil answers them with NXDOMAIN.
  public var networkRoute: UInt16?
  /// The route for `PortalNames`: LocalDNS, with TTLs of at most 10 s; nil makes them ordinary names.
  public var portalRoute: UInt16?

  /// Settings; the defaults are those of a machine without LocalDNS.
  public init(
    special: Bool = true, portalNames: Bool = true, searchDomains: [DomainName] = [], searchRoute: UInt16? = nil,
    networkRoute: UInt16? = nil, portalRoute: UInt16? = nil
  ) {
    self.special = special
    self.portalNames = portalNames
    self.searchDomains = searchDomains
    self.searchRoute = searchRoute
    self.networkRoute = networkRoute
    self.portalRoute = portalRoute
  }
}
