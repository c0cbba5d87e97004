// StoreURL.swift -- where the store of a fleet is: the value of `cache.redis`.

import Ciphers
import DNSWire

/// The URL of a Redis or Valkey server. Its description omits the password.
public struct StoreURL: Hashable, Sendable {
  /// How the server is reached.
  public enum Place: Hashable, Sendable {
    /// By TCP, with TLS or without.
    case tcp(Host, port: UInt16, isEncrypted: Bool)
    /// By a Unix socket with this path.
    case unix(String)
  }

  /// How the server is reached.
  public let place: Place
  /// The ACL user; empty for the default one.
  public let user: String
  /// The password; nil for none.
  public let password: Secret?
  /// The number of the database.
  public let database: Int

  /// The port of a URL without one.
  public static let defaultPort: UInt16 = 6379
  /// The highest number of a database.
  private static let mostDatabases = 1_000_000

  /// A URL from its text: `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`, the same with `rediss://` for TLS, or
  /// `unix:///PATH[?db=DATABASE]`; nil for anything else.
  public init?(text: String) {
    guard let separator = text.firstRange(of: ":"), !text.contains("#") else { return nil }
    let (scheme, rest) = (text[..<separator.lowerBound].lowercased(), text[separator.upperBound...])
    guard scheme == "unix" ? rest.hasPrefix("/") : rest.hasPrefix("//") else { return nil }
    switch scheme {
    case "unix":
      let path = rest.hasPrefix("//") ? rest.dropFirst(2) : rest
      let parts = path.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
      guard let socket = parts.first, socket.hasPrefix("/"), socket.utf8.count <= StoreURL.longestPath else { return nil }
      if parts.count == 2 {
        guard parts[1].hasPrefix("db="), let number = StoreURL.database(parts[1].dropFirst(3)) else { return nil }
        database = number
      } else {
        database = 0
      }
      (place, user, password) = (.unix(String(socket)), "", nil)
    case "redis", "rediss":
      var authority = rest.dropFirst(2)
      var (name, secret): (String, Secret?) = ("", nil)
      if let at = authority.lastIndex(of: "@") {
        let credentials = authority[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        authority = authority[authority.index(after: at)...]
        guard let user = StoreURL.decoded(credentials[0]) else { return nil }
        name = user
        if credentials.count == 2 {
          guard let password = StoreURL.decoded(credentials[1]) else { return nil }
          secret = password.isEmpty ? nil : Secret(password)
        }
      }
      let parts = authority.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
      guard let (host, port) = splitPort(String(parts[0])), let host = Host(text: host) else { return nil }
      if parts.count == 2, !parts[1].isEmpty {
        guard let number = StoreURL.database(parts[1]) else { return nil }
        database = number
      } else {
        database = 0
      }
      place = .tcp(host, port: port ?? StoreURL.defaultPort, isEncrypted: scheme == "rediss")
      (user, password) = (name, secret)
    default: return nil
    }
  }

  /// Whether everything that goes there stays on this machine.
  public var isLocal: Bool {
    switch place {
    case .unix: true
    case .tcp(.address(let address), _, _): address.isLoopback
    case .tcp(.name, _, _): false
    }
  }

  /// The longest path of a Unix socket (unix(7)).
  private static let longestPath = 107

  private static func database(_ text: Substring) -> Int? {
    guard !text.isEmpty, text.utf8.count <= 7, text.utf8.allSatisfy(isDigit), let number = Int(text),
      number <= mostDatabases
    else { return nil }
    return number
  }

  /// The text with each `%XX` as its octet (RFC 3986 section 2.1).
  private static func decoded(_ text: Substring) -> String? {
    var octets: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let octet = rest.popFirst() {
      guard octet == UInt8(ascii: "%") else {
        octets.append(octet)
        continue
      }
      guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
        return nil
      }
      octets.append(value)
      rest = rest.dropFirst(2)
    }
    return String(validating: octets, as: UTF8.self)
  }
}

extension StoreURL: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The URL without user and password.
  public var description: String {
    switch place {
    case .tcp(let host, let port, let isEncrypted):
      "\(isEncrypted ? "rediss" : "redis")://\(host.urlText):\(port)/\(database)"
    case .unix(let path): "unix://\(path)" + (database == 0 ? "" : "?db=\(database)")
    }
  }
  /// The URL without user and password.
  public var debugDescription: String { description }
  /// An empty mirror, so that dumps show nothing.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Form where Result == StoreURL {
  static var storeURL: Form {
    Form("a URL of a Redis or Valkey server: redis://HOST:PORT/DATABASE, rediss://... for TLS, or unix:///PATH") { value in
      value.line.flatMap { StoreURL(text: $0) }
    }
  }
}
