// Provider.swift -- one `[[provider]]`, with the defaults of its kind filled in.

import DNSWire

extension Configuration {
  /// An HTTPDNS provider.
  public struct Provider: Hashable, Sendable {
    /// Name in rules, logs and metrics, by default the kind. Unique.
    public var name = "alidns"
    /// Protocol of the service.
    public var kind = ProviderKind.alidns(account: nil, short: false)
    /// The servers that transfers go to; empty only for a table in a file.
    public var servers = ProviderEndpoint(url: .aliDNS).servers(tlsName: nil)
    /// Scheme of the servers; over http everyone on the path can forge answers.
    public var scheme = Scheme.https
    /// The name for SNI, Host and the certificate check of servers given by address.
    public var tlsName = ProviderURL.aliDNS.host.text
    /// The path of servers that do not specify one.
    public var path = ProviderURL.aliDNS.path
    /// PEM file with further certificate authorities to trust; empty means none.
    public var caFile: String?
    /// SHA-256 of public keys, as `sha256//` and Base64; if there are any, a server needs one of them.
    public var pins: [String] = []
    /// Plain resolvers that find servers given by name; empty means LocalDNS.
    public var bootstrap: [ResolverAddress] = []
    /// HTTP or SOCKS proxy, `http://HOST:PORT` or `socks5h://HOST:PORT`, which also finds servers given by name. The environment's is ignored.
    public var proxy: CredentialURL?
    /// Address family of connections to the service.
    public var family = Family.auto
    /// Time for one attempt at one server.
    public var timeout: Duration = .seconds(2)
    /// Failures after which a server that answers is preferred. Counted since the last verdict.
    public var attemptsBeforeSwitch = 3
    /// Time after a switch until the first server is tried again.
    public var returnToFirst: Duration = .seconds(600)
    /// Client subnet to send (RFC 7871); `"from-client"` means that of the query.
    public var clientSubnet = ClientSubnet.none
    /// Whether clients get the AD bit of this provider's answers.
    public var trustsAD = false
    /// Transfers in a second, then the next provider is asked; 0 means no limit.
    public var requestsPerSecond = 0
    /// Connections to one server, at most three quarters of them for one client.
    public var connections = 64
    /// Billing units in a day of UTC, then the next provider is asked; 0 means no limit.
    public var unitsPerDay = 0
    /// Share of `units_per_day` for names in use and those of `refresh.keep`.
    public var unitsReserve = 0.1
    /// Client subnets asked for one name; further ones share an answer; 0 means no limit.
    public var subnetsPerName = 64
    /// Whether to ask the next provider if empty may mean "not in the account".
    public var fallbackOnEmpty = true
    /// How long it is remembered that the provider does not list a name.
    public var notListedTTL: Duration = .seconds(600)

    /// The provider of an empty file: Alibaba Cloud's public service, unsigned.
    public init() {}
  }

  /// The address family for connections to a service.
  public enum Family: String, CaseIterable, Hashable, Sendable {
    /// Both, raced on connecting (Happy Eyeballs).
    case auto
    /// IPv4 only.
    case ipv4
    /// IPv6 only.
    case ipv6
  }

  /// The client subnet (RFC 7871) that is sent to a provider.
  public enum ClientSubnet: Hashable, Sendable {
    /// No subnet.
    case none
    /// Always this prefix.
    case fixed(IPPrefix)
    /// The subnet in the option that the client sent.
    case fromClient
  }

  /// One server of a provider.
  public struct Server: Hashable, Sendable {
    public var host: Host
    public var port: UInt16
    /// HTTP or HTTPS.
    public var scheme: Scheme
    /// The name for SNI, Host and the certificate check; without a name, the address without brackets.
    public var tlsName: String
    /// The path, which begins with `/`.
    public var path: String

    public init(host: Host, port: UInt16, scheme: Scheme, tlsName: String, path: String) {
      self.host = host
      self.port = port
      self.scheme = scheme
      self.tlsName = tlsName
      self.path = path
    }
  }
}
