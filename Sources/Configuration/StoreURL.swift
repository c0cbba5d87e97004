// StoreURL.swift -- the URL of a Redis or Valkey server, with or without user and password.

import Ciphers
import DNSWire

extension Configuration {
  /// The URL of a store, that is, of a Redis or Valkey server. Its description omits user and password.
  public struct StoreURL: Hashable, Sendable {
    /// How the store is reached.
    public enum Scheme: String, CaseIterable, Hashable, Sendable {
      /// TCP in the clear.
      case redis
      /// TLS over TCP.
      case rediss
      /// A Unix socket.
      case unix
    }

    /// What is wrong with the text of a URL. The raw value completes a message: `"TEXT" …`.
    public enum Fault: String, Error {
      case scheme = "has none of these schemes"
      case credentials = "has a user or password with characters that must be percent-encoded"
      case host = "has no valid host"
      case port = "has a port that is not from 1 to 65535"
      case database = "has a database that is not a number from 0 to 1000000"
      case query = "has a query or fragment that is not allowed"
      case path = "has no absolute path of a socket with at most 107 octets"
    }

    /// How the store is reached.
    public let scheme: Scheme
    /// A socket where the scheme is `unix`, else a host.
    public let endpoint: StoreEndpoint
    /// The ACL user, percent-decoded; nil means none.
    public let user: String?
    /// The password, percent-decoded; nil means none.
    public let password: Secret?
    /// The number of the database, 0 to 1,000,000.
    public let database: Int
  }

  /// Where a store listens.
  public enum StoreEndpoint: Hashable, Sendable {
    /// An address, or a name to look up, with a TCP port.
    case host(Host, port: UInt16)
    /// The absolute path of a Unix socket, at most 107 octets.
    case socket(path: String)
  }
}

extension Configuration.StoreURL {
  /// The port of a URL without one, with and without TLS.
  public static let defaultPort: UInt16 = 6379
  /// The largest number of a database.
  public static let maxDatabase = 1_000_000
  /// The longest path of a Unix socket in octets: `sun_path` without its NUL.
  private static let maxPathSize = 107

  /// A URL from its text, as `form` describes it.
  ///
  /// - Throws: What is wrong with the text.
  public init(text: String) throws(Fault) {
    guard let colon = text.firstIndex(of: ":"), let scheme = Scheme(rawValue: text[..<colon].lowercased()) else {
      throw .scheme
    }
    let rest = text[text.index(after: colon)...]
    if scheme == .unix {
      try self.init(socket: rest)
    } else {
      guard rest.hasPrefix("//") else { throw .scheme }
      try self.init(scheme, rest.dropFirst(2))
    }
  }

  private init(_ scheme: Scheme, _ text: Substring) throws(Fault) {
    var rest = text
    var credentials: (user: String?, password: Secret?) = (nil, nil)
    if let at = rest.lastIndex(of: "@") {
      credentials = try Configuration.StoreURL.credentials(rest[..<at])
      rest = rest[rest.index(after: at)...]
    }
    guard !rest.contains(where: { $0 == "?" || $0 == "#" }) else { throw .query }
    let slash = rest.firstIndex(of: "/") ?? rest.endIndex
    let path = rest[slash...].dropFirst()
    self.scheme = scheme
    endpoint = try Configuration.StoreURL.host(rest[..<slash])
    (user, password) = credentials
    database = path.isEmpty ? 0 : try Configuration.StoreURL.database(path)
  }

  private init(socket text: Substring) throws(Fault) {
    guard !text.contains("#") else { throw .query }
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var database = 0
    if parts.count == 2 {
      guard parts[1].hasPrefix("db=") else { throw .query }
      database = try Configuration.StoreURL.database(parts[1].dropFirst(3))
    }
    // `unix://host/path` would name a host.
    let path = parts[0].hasPrefix("//") ? parts[0].dropFirst(2) : parts[0]
    guard path.hasPrefix("/"), !path.hasPrefix("//"), let decoded = percentDecoded(path),
      !decoded.hasSuffix("/"), decoded.utf8.count <= Configuration.StoreURL.maxPathSize
    else { throw .path }
    scheme = .unix
    endpoint = .socket(path: decoded)
    (user, password) = (nil, nil)
    self.database = database
  }

  /// `[user][:password]`, of which each may be empty, that is, not given.
  private static func credentials(_ text: Substring) throws(Fault) -> (user: String?, password: Secret?) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    // RFC 3986 section 3.2.1: these end the part of a URL in which users and passwords stand.
    guard !text.contains(where: { "/?#[]@".contains($0) || $0.isWhitespace }), let user = percentDecoded(parts[0]),
      let password = percentDecoded(parts.count == 2 ? parts[1] : "")
    else { throw .credentials }
    return (user.isEmpty ? nil : user, password.isEmpty ? nil : Secret(password))
  }

  /// `host`, `host:port`, `[IPv6]` or `[IPv6]:port`.
  private static func host(_ text: Substring) throws(Fault) -> Configuration.StoreEndpoint {
    let isBracketed = text.hasPrefix("[")
    let end = text.firstIndex(of: isBracketed ? "]" : ":") ?? text.endIndex
    let name = isBracketed ? text[..<end].dropFirst() : text[..<end]
    let rest = isBracketed ? text[end...].dropFirst() : text[end...]
    guard let host = Host(text: String(name)), rest.isEmpty || rest.hasPrefix(":") else { throw .host }
    if isBracketed {
      guard end < text.endIndex, case .address(let address) = host, address.isIPv6 else { throw .host }
    }
    guard !rest.isEmpty else { return .host(host, port: defaultPort) }
    guard let port = portNumber(rest.dropFirst()) else { throw .port }
    return .host(host, port: port)
  }

  private static func database(_ text: Substring) throws(Fault) -> Int {
    guard !text.isEmpty, text.utf8.allSatisfy({ isDigit($0) }), let number = Int(text), number <= maxDatabase else {
      throw .database
    }
    return number
  }
}

extension Configuration.StoreEndpoint: CustomStringConvertible {
  /// `/run/redis.sock`, `redis.example:6379` or `[2001:db8::1]:6379`.
  public var description: String {
    switch self {
    case .host(let host, let port): "\(host.urlText):\(port)"
    case .socket(let path): path
    }
  }
}

extension Configuration.StoreURL: CustomStringConvertible {
  /// The text with port and database; `…@` replaces user and password.
  public var description: String {
    switch endpoint {
    case .host: "\(scheme)://\(user == nil && password == nil ? "" : "…@")\(endpoint)/\(database)"
    case .socket(let path): "unix://\(shownText(path))?db=\(database)"
    }
  }
}

extension Form where Result == Configuration.StoreURL {
  static var storeURL: Form {
    let allowed =
      "redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], the same with rediss:// (TLS), or unix:///PATH[?db=DATABASE]"
    return Form(allowed: allowed) { value, place, report in
      guard let line = value.line else {
        report.refuse(value, at: place, allowed: allowed)
        return nil
      }
      do throws(Configuration.StoreURL.Fault) {
        return try Configuration.StoreURL(text: line)
      } catch {
        report.refuse(value, is: error.rawValue, at: place, allowed: allowed)
        return nil
      }
    }
  }
}

/// The percent-decoded text; nil if that is not one line.
private func percentDecoded(_ text: Substring) -> String? {
  PercentText.decode(text).flatMap { Value.string($0).line }
}
