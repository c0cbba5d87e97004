// HTTPClientOptions.swift -- how an origin connects and what it puts up with.

/// How an origin connects, and its limits.
public struct HTTPClientOptions: Sendable {
  /// Which of a server's addresses may be used.
  public enum Family: Hashable, Sendable {
    /// Both; they are raced while connecting.
    case any
    /// IPv4 only.
    case ipv4
    /// IPv6 only.
    case ipv6
  }

  /// A file of certificates (PEM) that are trusted besides the system's; empty for none.
  public var caFile = ""
  /// Public key pins, `sha256//BASE64` each; when there are any, the server's key must be one of them.
  public var pins: [String] = []
  /// `http://…`, `socks5://…` or `socks5h://…` with an address literal as host; empty for none. Every scheme is tunnelled.
  public var proxy = ""
  /// Which addresses to connect to.
  public var family = Family.any
  /// Connections at a time. With HTTP/2 there are two at most.
  public var maxConnections = 64
  /// Transfers in flight and waiting for a connection; one more fails with `busy`.
  public var maxInFlight = 1024
  /// The age after which a connection takes no more transfers.
  public var maxAge = Duration.seconds(600)
  /// The longest content, in octets; a transfer in flight takes a little more than that of memory. With HTTP/2 at most
  /// `mostHTTP2Body`.
  public var maxBody = 64 * 1024
  /// The longest content that HTTP/2 can carry: the largest buffer of libcurl 7.88, less a frame and room for its own.
  public static let mostHTTP2Body = 480 << 10
  /// Whether HTTP/2 is spoken where the server knows it.
  public var usesHTTP2 = true
  /// What is known of the time where the machine's clock cannot be right; nil for the machine's clock always.
  public var certificateClock: CertificateClock?
  /// `TCP_USER_TIMEOUT`: how long sent octets may stay unacknowledged before the connection is given up.
  public var userTimeout = Duration.seconds(5)
  /// How long nothing is sent after the server has asked for fewer transfers (ENHANCE_YOUR_CALM, RFC 9113 section 7).
  /// Each further time without a response in between it is twice as long, up to 64 times.
  public var calmPause = Duration.seconds(1)

  /// The default of everything.
  public init() {}
}

/// Why an origin could not be made: one line for a person.
public struct HTTPSetupError: Error, CustomStringConvertible, Hashable, Sendable {
  /// What was found, and what is allowed.
  public let description: String

  /// A mistake with its line.
  public init(description: String) { self.description = description }
}
