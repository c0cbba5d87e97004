// SpecialZones.swift -- the special-use names that never go to a provider.

import DNSWire

/// The treatment of questions for a special name.
enum SpecialEffect: Hashable {
  /// Answer A and AAAA with the loopback addresses, other types with NODATA (RFC 6761 section 6.3).
  case loopback
  /// Answer PTR with `localhost`, other types with NODATA (RFC 6303 sections 4.2 and 4.3).
  case loopbackPointer
  /// Answer NODATA: the name exists without records.
  case noData
  /// Answer NXDOMAIN.
  case nxDomain
  /// The name belongs to the network: ask LocalDNS; without it, answer NXDOMAIN.
  case network
  /// As `network` for A, AAAA, SVCB and HTTPS; other types are ordinary questions.
  case singleLabel
  /// Answer NXDOMAIN: an address in place of a name, or a numeric top-level label.
  case literal
  /// Below a search domain: ask providers and network in the order of `localdns.search_domains`.
  case search
  /// As `network`. Without LocalDNS there is no NAT64, so the zone has only its two A records (RFC 7050 section 8).
  case ipv4Only
  /// A captive portal probe: ask LocalDNS.
  case portal
  /// A router's own page: ask LocalDNS, then the providers.
  case router
  /// Answer SVCB with the encrypted listeners, other types with NODATA (RFC 9462 section 4).
  case discovery
  /// The name of the encrypted listeners: answer A, AAAA, SVCB and HTTPS with their addresses; other types are ordinary
  /// questions.
  case ownName
}

/// A special name. With a nil effect, the next special name above decides.
struct SpecialZone {
  let name: DomainName
  /// The owner of the SOA record in negative answers: the name or one above it.
  let zone: DomainName
  /// The treatment of the name itself.
  let at: SpecialEffect?
  /// The treatment of names below it.
  let below: SpecialEffect?
  /// The number of labels that a rule needs to override it.
  let ruleDepth: Int

  init(_ name: DomainName, zone: DomainName? = nil, at: SpecialEffect?, below: SpecialEffect?, ruleDepth: Int? = nil) {
    self.name = name
    self.zone = zone ?? name
    self.at = at
    self.below = below
    self.ruleDepth = ruleDepth ?? name.labelCount
  }

  /// A search domain; nil if it has no effect. Every rule that would apply without the search domain overrides it: the
  /// network must not change the administrator's decisions.
  fileprivate init?(_ domain: SearchDomain) {
    switch domain.effect {
    case .networkOnly: self.init(domain.name, at: .network, below: .network, ruleDepth: domain.reservedZone?.labelCount)
    case .shared: self.init(domain.name, at: .search, below: .search, ruleDepth: 0)
    case .publicSuffix, .special: return nil
    }
  }
}

extension SpecialZone {
  /// All special names; later entries override earlier ones with the same name.
  static func zones(_ settings: SpecialNamesSettings) -> [SpecialZone] {
    var zones: [SpecialZone] = []
    let portals = PortalNames.all.map { SpecialZone($0, at: .portal, below: nil) }
    let routers = RouterNames.all.map { SpecialZone($0, at: .router, below: .router) }
    let namesOfDevices =
      settings.portalNames
      ? (settings.portalRoute == nil ? [] : portals) + (settings.routerRoute == nil ? [] : routers) : []
    guard settings.special else { return namesOfDevices + discovery(settings.designated) }
    zones += absentTexts.map { whole($0, .nxDomain) }
    if settings.networkRoute != nil, settings.searchRoute != nil {
      zones += SearchDomain.judged(settings.searchDomains).compactMap { SpecialZone($0) }
    }
    // A network may choose any search domain, except names with a special meaning.
    zones += namesOfDevices
    zones += networkTexts.map { whole($0, .network) }
    zones += privateReverseTexts.map { whole($0, .network) }
    zones += emptyReverseTexts.map { SpecialZone(DomainName(text: $0)!, at: .noData, below: .nxDomain) }
    zones += loopbackReverse
    zones += [whole("localhost", .loopback), whole("resolver.arpa", .noData)]
    // Many hosts files use this name for 127.0.0.1.
    zones.append(SpecialZone(DomainName(text: "localhost.localdomain")!, at: .loopback, below: nil))
    zones.append(SpecialZone(DomainName(text: "ipv4only.arpa")!, at: .ipv4Only, below: .network))
    return zones + discovery(settings.designated)
  }

  private static func discovery(_ resolver: DesignatedResolver?) -> [SpecialZone] {
    guard let resolver else { return [] }
    let zone = DomainName(text: "resolver.arpa")!
    let own = resolver.addresses.isEmpty ? [] : [SpecialZone(resolver.name, at: .ownName, below: nil)]
    return [SpecialZone(DesignatedResolver.queryName, zone: zone, at: .discovery, below: nil)] + own
  }

  private static func whole(_ text: String, _ effect: SpecialEffect) -> SpecialZone {
    SpecialZone(DomainName(text: text)!, at: effect, below: effect)
  }

  /// RFC 8375, ICANN's reservation of 2024, and the names of RFC 6762 appendix G, which will never be delegated.
  static let networkTexts = ["home.arpa", "internal", "lan", "home", "corp", "intranet", "private", "localdomain"]

  /// RFC 6761 (test, invalid), 6762 (local), 7686 (onion), 9476 (alt), 9665 (service.arpa), and the name by which a browser
  /// checks whether it may bypass the system's resolver.
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

  /// 127/8 and ::1. The names between the zone and its single PTR record exist without records (RFC 8020).
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

/// The settings for special names, from the network and the administrator.
public struct SpecialNamesSettings: Sendable {
  /// Whether special names are answered locally or sent to the network; otherwise they are ordinary names.
  public var special: Bool
  /// Whether the probe names of captive portals go to `portalRoute`, and those of routers' own pages to `routerRoute`.
  public var portalNames: Bool
  /// The network's search domains; see `SearchDomain`.
  public var searchDomains: [DomainName]
  /// The route for names below them, which asks providers and LocalDNS; nil if search domains have no effect.
  public var searchRoute: UInt16?
  /// The route for names of the network, which never uses HTTPDNS; nil answers them with NXDOMAIN.
  public var networkRoute: UInt16?
  /// The route for `PortalNames`: LocalDNS, with TTLs of at most 10 s; nil makes them ordinary names.
  public var portalRoute: UInt16?
  /// The route for `RouterNames`: LocalDNS, then the providers; nil makes them ordinary names.
  public var routerRoute: UInt16?
  /// The encrypted listeners that clients may learn of; nil for none.
  public var designated: DesignatedResolver?

  /// The defaults are for a machine without LocalDNS.
  public init(
    special: Bool = true, portalNames: Bool = true, searchDomains: [DomainName] = [], searchRoute: UInt16? = nil,
    networkRoute: UInt16? = nil, portalRoute: UInt16? = nil, routerRoute: UInt16? = nil,
    designated: DesignatedResolver? = nil
  ) {
    self.special = special
    self.portalNames = portalNames
    self.searchDomains = searchDomains
    self.searchRoute = searchRoute
    self.networkRoute = networkRoute
    self.portalRoute = portalRoute
    self.routerRoute = routerRoute
    self.designated = designated
  }
}
