// HTTPClientOptions.swift -- options and limits of an origin.

/// How an origin connects, and its limits.
public struct HTTPClientOptions: Sendable {
  /// Which of a server's addresses may be used.
  public enum Family: Hashable, Sendable {
    /// Both families, raced during connection setup.
    case any
    /// IPv4 only.
    case ipv4
    /// IPv6 only.
    case ipv6
  }

  /// A PEM file of certificates to trust in addition to the system's; empty for none.
  public var caFile = ""
  /// Public key pins of the form `sha256//BASE64`. If there are any, the server's key must match one.
  public var pins: [String] = []
  /// `http://…`, `socks5://…` or `socks5h://…` with an address literal as host; empty for none. Every scheme is
  /// tunnelled.
  public var proxy = ""
  /// The address family to connect to.
  public var family = Family.any
  /// Maximum simultaneous connections. HTTP/2 through a proxy uses at most two.
  public var maxConnections = 64
  /// Maximum transfers in flight, including those that wait for a connection; a further one fails with `busy`.
  public var maxInFlight = 1024
  /// The age at which a connection accepts no more transfers.
  public var maxAge = Duration.seconds(600)
  /// How long an HTTP/2 connection beside others stays open without transfers.
  public var surplusTime = Duration.seconds(15)
  /// Maximum octets of content; a transfer in flight takes slightly more memory than that. With HTTP/2 at most
  /// `mostHTTP2Body`.
  public var maxBody = 64 * 1024
  /// Maximum octets of content over HTTP/2: the largest buffer of libcurl 7.88, less a frame and libcurl's own
  /// overhead.
  public static let mostHTTP2Body = 480 << 10
  /// Whether to use HTTP/2 if the server supports it.
  public var usesHTTP2 = true
  /// Takes the content of a response with status 200 piece by piece, in place of its body, without the one content coding that
  /// it may have; false ends the transfer with `tooLarge`. Called on the loop. Content of another status is not read. Only
  /// without `usesHTTP2`, and on a loop of its own: libcurl may unpack much in one turn.
  public var sink: (@Sendable (UnsafeRawBufferPointer) -> Bool)?
  /// Whether libcurl carries all transfers, also those of HTTP/2; for tests and comparisons.
  package var carriesByCurl = false
  /// The time for certificate checks while the system clock is implausible; nil always uses the system clock.
  public var certificateClock: CertificateClock?
  /// `TCP_USER_TIMEOUT`: how long sent octets may remain unacknowledged before the connection is closed.
  public var userTimeout = Duration.seconds(5)

  public init() {}
}

/// The reason why an origin cannot be created.
public struct HTTPSetupError: Error, CustomStringConvertible, Hashable, Sendable {
  /// One human-readable line: what was found and what is allowed.
  public let description: String

  public init(description: String) { self.description = description }
}
