// Provider.swift -- one `[[provider]]`, with everything that its kind implies filled in.

import Ciphers
import DNSWire

extension Configuration {
  /// An HTTPDNS provider.
  public struct Provider: Hashable, Sendable {
    /// Used in rules, logs and metrics; unique. 1 to 63 letters, digits, `-`, `_` and `.`.
    public var name = "alidns"
    /// What is spoken with it.
    public var service = Service.alidns(account: nil, short: false)
    /// Where transfers go; never empty.
    public var servers = ServiceKind.alidns.defaultServers(of: nil, tlsName: nil)
    /// The transport of a server that does not say otherwise.
    public var scheme = Scheme.https
    /// The name for SNI, Host and the certificate check where a server is an address.
    public var tlsName = ServiceKind.aliDNSName
    /// The path of a server that does not say otherwise.
    public var path = ServiceKind.aliDNSPath
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
    /// Billing units per day; 0 means no limit.
    public var unitsPerDay = 0
    /// Whether an empty answer is asked of the next provider …
    public var fallbackOnEmpty = true
    /// … and for how long that is remembered; whole seconds.
    public var notListedTTL: Duration = .seconds(600)

    /// The provider that is used where the file has none: Alibaba Cloud's public service, unsigned.
    public init() {}
  }

  /// What is spoken with a provider.
  public enum Service: Hashable, Sendable {
    /// Alibaba Cloud DNS; without an account unsigned, `short` asks for addresses only.
    case alidns(account: AliDNSAccount?, short: Bool)
    /// JSON over HTTP as Google and Cloudflare have it.
    case json
    /// RFC 8484.
    case doh(method: DoHMethod)
  }

  /// An account of Alibaba Cloud DNS.
  public struct AliDNSAccount: Hashable, Sendable {
    /// The account's number, sent as `uid`.
    public var accountID: String
    /// The AccessKey's public part, sent as `ak`.
    public var accessKeyID: String
    /// The AccessKey's secret part.
    public var accessKeySecret: Secret

    /// An account of these parts.
    public init(accountID: String, accessKeyID: String, accessKeySecret: Secret) {
      self.accountID = accountID
      self.accessKeyID = accessKeyID
      self.accessKeySecret = accessKeySecret
    }
  }

  /// The HTTP method of RFC 8484 transfers.
  public enum DoHMethod: String, CaseIterable, Hashable, Sendable {
    /// The query is the body: shorter URLs, and nothing of it in logs on the way.
    case post
    /// The query is in the URL: caches on the way can answer.
    case get
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
