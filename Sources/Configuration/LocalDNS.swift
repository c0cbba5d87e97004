// LocalDNS.swift -- the `[localdns]` section: the plain resolvers of the network.

extension Configuration {
  /// The plain resolvers of the network.
  public struct LocalDNS: Hashable, Sendable {
    /// Where to ask; empty means that there is no LocalDNS.
    public var servers: [LocalServer] = [.system]
    /// When a name that belongs to a provider is asked of LocalDNS.
    public var fallback = Fallback.onFailure
    /// How long one attempt may take.
    public var timeout: Duration = .milliseconds(1500)
    /// The longest TTL of an answer that came by fallback; whole seconds.
    public var maxTTL: Duration = .seconds(60)
    /// Whether the captive-portal probe names of the desktop systems go to LocalDNS.
    public var portalNames = true
    /// Who is asked for names below the network's search domains.
    public var searchDomains = SearchDomains.afterDenial
  }

  /// Who is asked for names below the network's search domains.
  public enum SearchDomains: String, CaseIterable, Hashable, Sendable {
    /// The providers, and LocalDNS for what they deny.
    case afterDenial = "after-denial"
    /// LocalDNS, and the providers for what it denies.
    case first
    /// The providers, as for any name.
    case ignore
  }

  /// One LocalDNS resolver.
  public enum LocalServer: Hashable, Sendable {
    /// What the network hands out, without this program's own addresses.
    case system
    /// This resolver, over UDP and TCP.
    case endpoint(Endpoint)
  }

  /// When LocalDNS answers in the place of the providers.
  public enum Fallback: String, CaseIterable, Hashable, Sendable {
    /// When no provider could answer.
    case onFailure = "on-failure"
    /// Never.
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
    Form("\"system\", or an address with or without a port, such as \"192.0.2.1\" or \"[2001:db8::1]:53\"") { value in
      guard let line = value.line else { return nil }
      return line == "system" ? .system : Endpoint(text: line, defaultPort: 53).map { .endpoint($0) }
    }
  }
}

extension TableReader {
  /// Records resolvers that are this program itself: a query to them would come back for ever.
  func refuseOwn(_ key: String, _ servers: [Configuration.LocalServer], _ ownAddresses: [Endpoint]) {
    for case .endpoint(let endpoint) in servers where endpoint.reaches(ownAddresses) {
      report.refuse("our own \(endpoint)", at: place.key(key), allowed: "other addresses than in listen.addresses")
    }
  }
}
