// LocalDNS.swift -- the `[localdns]` section: the network's own resolvers, queried over classic DNS.

extension Configuration {
  /// The network's own resolvers.
  public struct LocalDNS: Hashable, Sendable {
    /// The resolvers to query; empty disables LocalDNS.
    public var servers: [LocalServer] = [.system]
    /// When LocalDNS replaces the providers for a name that is theirs.
    public var fallback = Fallback.onFailure
    /// The time limit of one attempt.
    public var timeout: Duration = .milliseconds(1500)
    /// The longest TTL of an answer obtained by fallback; whole seconds.
    public var maxTTL: Duration = .seconds(60)
    /// Whether the names that desktop systems use to detect captive portals go to LocalDNS.
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
    /// This resolver, over UDP and TCP.
    case endpoint(Endpoint)
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

extension Form where Result == Configuration.LocalServer {
  static var localServer: Form {
    Form("\"system\" or an address, optionally with a port, e.g. \"192.0.2.1\" or \"[2001:db8::1]:53\"") { value in
      guard let line = value.line else { return nil }
      return line == "system" ? .system : Endpoint(text: line, defaultPort: 53).map { .endpoint($0) }
    }
  }
}

extension TableReader {
  /// Records resolvers that are the daemon itself: queries to them would loop.
  func refuseOwn(_ key: String, _ servers: [Configuration.LocalServer], _ ownAddresses: [Endpoint]) {
    for case .endpoint(let endpoint) in servers where endpoint.reaches(ownAddresses) {
      report.refuse(
        "\(endpoint) is the daemon's own address", at: place.key(key),
        allowed: "an address that is not in listen.addresses")
    }
  }
}
