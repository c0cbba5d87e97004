// LocalDNS.swift -- the `[localdns]` section: the network's own resolvers, queried over classic DNS.

extension Configuration {
  /// The network's own resolvers.
  public struct LocalDNS: Hashable, Sendable {
    /// Resolvers in their order; `"system"` stands for those of the network, and `[]` for none.
    public var servers: [LocalServer] = [.system]
    /// When LocalDNS steps in for a name that is the providers'.
    public var fallback = Fallback.onFailure
    /// Time for all servers together.
    public var timeout: Duration = .milliseconds(1500)
    /// Highest TTL of an answer that LocalDNS gave instead of a provider.
    public var maxTTL: Duration = .seconds(60)
    /// Whether names that detect captive portals, and names of routers, go to LocalDNS. Those of routers go there
    /// first.
    public var portalNames = true
    /// Which upstreams resolve names below the network's search domains.
    public var searchDomains = SearchDomains.afterNXDOMAIN
  }

  /// Which upstreams resolve names below the network's search domains.
  public enum SearchDomains: String, CaseIterable, Hashable, Sendable {
    /// The providers; LocalDNS if they answer NXDOMAIN.
    case afterNXDOMAIN = "after-denial"
    /// LocalDNS; the providers if it answers NXDOMAIN.
    case first
    /// The providers, as for any other name.
    case ignore
  }

  /// One LocalDNS resolver.
  public enum LocalServer: Hashable, Sendable {
    /// The resolvers that the network announces, except the daemon's own addresses.
    case system
    case resolver(ResolverAddress)
  }

  /// A classic DNS resolver.
  public struct ResolverAddress: Hashable, Sendable {
    /// Its address; the default port is 53.
    public var endpoint: Endpoint
    /// Whether it is queried over TCP only, instead of UDP and, for long answers, TCP.
    public var isOverTCP: Bool

    public init(_ endpoint: Endpoint, isOverTCP: Bool = false) {
      self.endpoint = endpoint
      self.isOverTCP = isOverTCP
    }
  }

  /// When LocalDNS answers instead of the providers.
  public enum Fallback: String, CaseIterable, Hashable, Sendable {
    /// When no provider answered.
    case onFailure = "on-failure"
    /// LocalDNS does not step in: clients get stale data or SERVFAIL.
    case never
  }
}

extension Configuration.LocalDNS {
  mutating func read(from reader: TableReader, ownAddresses: [Endpoint]) {
    reader.read("servers", &servers, .distinctList(of: .localServer))
    reader.read("fallback", &fallback, .choice)
    reader.read("timeout", &timeout, .duration(.milliseconds(100) ... .seconds(10)))
    reader.read("max_ttl", &maxTTL, .ttl())
    reader.read("portal_names", &portalNames, .boolean)
    reader.read("search_domains", &searchDomains, .choice)
    reader.refuseOwn("servers", servers, ownAddresses)
  }
}

extension Configuration.ResolverAddress: CustomStringConvertible {
  /// `192.0.2.1:53` or `tcp://192.0.2.1:53`.
  public var description: String { isOverTCP ? "\(Self.scheme)\(endpoint)" : "\(endpoint)" }

  fileprivate static let scheme = "tcp://"

  fileprivate init?(text: String) {
    let isOverTCP = text.hasPrefix(Self.scheme)
    let address = isOverTCP ? String(text.dropFirst(Self.scheme.count)) : text
    guard let endpoint = Endpoint(text: address, defaultPort: 53) else { return nil }
    self.init(endpoint, isOverTCP: isOverTCP)
  }
}

extension Form where Result == Configuration.ResolverAddress {
  static var resolver: Form {
    let allowed = "an address, optionally with a port and after \"tcp://\", e.g. \"192.0.2.1\" or \"[2001:db8::1]:53\""
    return Form(allowed: allowed) { value, place, report in
      guard let resolver = value.line.flatMap({ Configuration.ResolverAddress(text: $0) }) else {
        report.refuse(value, at: place, allowed: allowed)
        return nil
      }
      return report.accepts(resolver.endpoint, value, at: place) ? resolver : nil
    }
  }
}

extension Form where Result == Configuration.LocalServer {
  static var localServer: Form {
    let resolver = Form<Configuration.ResolverAddress>.resolver
    let allowed = "\"system\" or \(resolver.allowed)"
    return Form(allowed: allowed) { value, place, report in
      if value.line == "system" { return .system }
      guard value.line.flatMap({ Configuration.ResolverAddress(text: $0) }) != nil else {
        report.refuse(value, at: place, allowed: allowed)
        return nil
      }
      return resolver.read(value, place, report).map { .resolver($0) }
    }
  }
}

extension MistakeReport {
  /// Whether an endpoint can be used; if not, records why.
  func accepts(_ endpoint: Endpoint, _ value: Value, at place: ValuePath) -> Bool {
    guard endpoint.lacksZone else { return true }
    refuse(
      value, is: "is a link-local address without its interface", at: place,
      allowed: "the interface after it, e.g. \"\(endpoint.address)%eth0\"")
    return false
  }
}

extension TableReader {
  /// Records resolvers that are the daemon itself: queries to them would loop.
  func refuseOwn(_ key: String, _ servers: [Configuration.LocalServer], _ ownAddresses: [Endpoint]) {
    for case .resolver(let resolver) in servers where resolver.endpoint.reaches(ownAddresses) {
      report.refuse(
        "\(resolver) is the daemon's own address", at: place.key(key),
        allowed: "an address that is not in listen.addresses")
    }
  }
}
