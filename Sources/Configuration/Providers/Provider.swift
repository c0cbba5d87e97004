// Provider.swift -- one `[[provider]]`, with the defaults of its kind filled in.

import DNSWire

extension Configuration {
  /// An HTTPDNS provider.
  public struct Provider: Hashable, Sendable {
    /// The name in rules, logs and metrics; unique. 1 to 63 letters, digits, `-`, `_` and `.`.
    public var name = "alidns"
    /// The protocol.
    public var kind = ProviderKind.alidns(account: nil, short: false)
    /// The servers that transfers go to; empty only for a table in a file.
    public var servers = ProviderEndpoint(url: .aliDNS).servers(tlsName: nil)
    /// The scheme of servers that do not specify one.
    public var scheme = Scheme.https
    /// The name for SNI, Host and the certificate check of servers given by address.
    public var tlsName = ProviderURL.aliDNS.host.text
    /// The path of servers that do not specify one.
    public var path = ProviderURL.aliDNS.path
    /// An additional CA bundle; nil means none.
    public var caFile: String?
    /// SPKI pins in libcurl's form: `sha256//BASE64`.
    public var pins: [String] = []
    /// Classic DNS resolvers that look up servers given by name; empty means LocalDNS.
    public var bootstrap: [ResolverAddress] = []
    /// The HTTP or SOCKS proxy; nil means none, also if the environment names one.
    public var proxy: CredentialURL?
    /// The address family for connections.
    public var family = Family.auto
    /// The time limit of one attempt.
    public var timeout: Duration = .seconds(2)
    /// Transfers in a row without a verdict before the next server comes first.
    public var attemptsBeforeSwitch = 3
    /// The time after which the first server is tried again.
    public var returnToFirst: Duration = .seconds(600)
    /// `client_subnet`: which subnet the provider receives.
    public var clientSubnet = ClientSubnet.none
    /// Whether clients get the AD bit of this provider's answers.
    public var trustsAD = false
    /// Transfers per second; 0 means no limit.
    public var requestsPerSecond = 0
    /// Simultaneous connections to one server, 1 to 1,024.
    public var connections = 64
    /// Billing units per day; 0 means no limit.
    public var unitsPerDay = 0
    /// The fraction of `unitsPerDay`, 0 to 0.9, reserved for names that were in the cache or are in `refresh.keep`.
    public var unitsReserve = 0.1
    /// Client subnets per name that are resolved separately; 0 means no limit.
    public var subnetsPerName = 64
    /// Whether an empty answer makes the resolver ask the next provider …
    public var fallbackOnEmpty = true
    /// … and for how long it skips this provider for the name; whole seconds.
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
