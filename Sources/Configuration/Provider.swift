// Provider.swift -- one `[[provider]]`, with everything that its kind implies filled in.

import DNSWire

extension Configuration {
  /// An HTTPDNS provider.
  public struct Provider: Hashable, Sendable {
    /// Used in rules, logs and metrics; unique. 1 to 63 letters, digits, `-`, `_` and `.`.
    public var name = "alidns"
    /// What is spoken with it.
    public var service = Service.alidns(account: nil, short: false)
    /// Where transfers go; empty only for a table in a file.
    public var servers = ServicePlace(url: .aliDNS).servers(tlsName: nil)
    /// The transport of a server that does not say otherwise.
    public var scheme = Scheme.https
    /// The name for SNI, Host and the certificate check where a server is an address.
    public var tlsName = ServiceURL.aliDNS.host.text
    /// The path of a server that does not say otherwise.
    public var path = ServiceURL.aliDNS.path
    /// An extra CA bundle; nil means none.
    public var caFile: String?
    /// SPKI pins as libcurl takes them: `sha256//BASE64`.
    public var pins: [String] = []
    /// Plain resolvers that find a server given by name; empty means LocalDNS.
    public var bootstrap: [Endpoint] = []
    /// The HTTP or SOCKS proxy; nil means none, whatever the environment says.
    public var proxy: CredentialURL?
    /// How to reach the service.
    public var family = Family.auto
    /// A name that this provider answers, by which its failures are judged; nil for one that is found by itself.
    public var checkName: DomainName?
    /// How long one attempt may take.
    public var timeout: Duration = .seconds(2)
    /// Consecutive failures before the next server is used.
    public var attemptsBeforeSwitch = 3
    /// After which time a probe may return to the first server.
    public var returnToFirst: Duration = .seconds(600)
    /// Which client subnet is sent.
    public var clientSubnet = ClientSubnet.none
    /// Whether this provider's AD bit is passed on.
    public var trustsAD = false
    /// Transfers per second; 0 means no limit.
    public var requestsPerSecond = 0
    /// Connections to one server at once, 1 to 1,024.
    public var connections = 64
    /// Billing units per day; 0 means no limit.
    public var unitsPerDay = 0
    /// The part of them, 0 to 0.9, that is kept for names that were in the cache or in `refresh.keep`.
    public var unitsReserve = 0.1
    /// Client subnets of one name that are asked for; 0 means no limit.
    public var subnetsPerName = 64
    /// Whether an empty answer is asked of the next provider …
    public var fallbackOnEmpty = true
    /// … and for how long that is remembered; whole seconds.
    public var notListedTTL: Duration = .seconds(600)

    /// The provider that is used where the file has none: Alibaba Cloud's public service, unsigned.
    public init() {}
  }

  /// Which addresses of a service are used.
  public enum Family: String, CaseIterable, Hashable, Sendable {
    /// Both, raced when connecting.
    case auto
    /// IPv4 only.
    case ipv4
    /// IPv6 only.
    case ipv6
  }

  /// Which client subnet (RFC 7871) a provider is told.
  public enum ClientSubnet: Hashable, Sendable {
    /// None.
    case none
    /// Always this one.
    case fixed(IPPrefix)
    /// The one in the client's own option.
    case fromClient
  }

  /// One server of a provider.
  public struct Server: Hashable, Sendable {
    /// Whom to connect to.
    public var host: Host
    /// The port to connect to.
    public var port: UInt16
    /// The transport.
    public var scheme: Scheme
    /// The name for SNI, Host and the certificate check; an address without brackets where there is no name.
    public var tlsName: String
    /// The path, which begins with `/`.
    public var path: String

    /// A server of these parts.
    public init(host: Host, port: UInt16, scheme: Scheme, tlsName: String, path: String) {
      self.host = host
      self.port = port
      self.scheme = scheme
      self.tlsName = tlsName
      self.path = path
    }
  }
}
