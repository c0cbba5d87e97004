// URLs.swift -- the URLs of services, and URLs that may hold a password.

import Ciphers

/// The transport of a service.
public enum Scheme: String, CaseIterable, Hashable, Sendable {
  /// HTTP over TLS.
  case https
  /// HTTP in the clear.
  case http

  /// The port where none is given.
  public var defaultPort: UInt16 { self == .https ? 443 : 80 }
}

/// The URL of a service: scheme, host, port and path, nothing else.
public struct ServiceURL: Hashable, Sendable {
  /// The transport.
  public let scheme: Scheme
  /// The host.
  public let host: Host
  /// The port; the scheme's where the text gives none.
  public let port: UInt16
  /// The path, which begins with `/`.
  public let path: String

  /// A URL of these parts; `path` begins with `/`.
  init(scheme: Scheme, host: Host, port: UInt16, path: String) {
    (self.scheme, self.host, self.port, self.path) = (scheme, host, port, path)
  }

  /// A URL from its text. Nil where there is a user, a query or a fragment, or a character that has to be escaped.
  public init?(text: String) {
    guard let parts = URLParts(text), let scheme = Scheme(rawValue: parts.scheme),
      let (host, port) = splitPort(parts.authority), let host = Host(text: host)
    else { return nil }
    self.scheme = scheme
    self.host = host
    self.port = port ?? scheme.defaultPort
    path = parts.path.isEmpty ? "/" : parts.path
  }
}

extension ServiceURL: CustomStringConvertible {
  /// The text, with the port where it is not the scheme's.
  public var description: String {
    "\(scheme)://\(host.urlText)\(port == scheme.defaultPort ? "" : ":\(port)")\(path)"
  }
}

/// A URL that may hold a user and a password. Its description leaves them out.
public struct CredentialURL: Hashable, Sendable {
  /// The scheme in lower case.
  public let scheme: String
  /// The host.
  public let host: Host
  /// The port.
  public let port: UInt16
  /// The whole text, for the library that connects.
  public let text: Secret
  /// Whether a user or a password is given.
  public let hasCredentials: Bool

  /// A URL from its text: one of these schemes, and a port.
  public init?(text: String, schemes: [String]) {
    var bare = text
    if let slashes = text.firstRange(of: "://"), let at = text.lastIndex(of: "@"), at >= slashes.upperBound {
      bare = String(text[..<slashes.upperBound] + text[text.index(after: at)...])
    }
    guard let parts = URLParts(bare), schemes.contains(parts.scheme), let (host, port) = splitPort(parts.authority),
      let host = Host(text: host), let port
    else { return nil }
    scheme = parts.scheme
    self.host = host
    self.port = port
    self.text = Secret(text)
    hasCredentials = bare != text
  }
}

extension CredentialURL: CustomStringConvertible {
  /// Scheme, host and port; `…@` stands for a user.
  public var description: String { "\(scheme)://\(hasCredentials ? "…@" : "")\(host.urlText):\(port)" }
}

/// A URL without user, query and fragment, taken apart.
private struct URLParts {
  let scheme: String
  let authority: String
  let path: String

  init?(_ text: String) {
    guard let separator = text.firstRange(of: "://"), text.utf8.allSatisfy(URLParts.isAllowed) else { return nil }
    scheme = text[..<separator.lowerBound].lowercased()
    let rest = text[separator.upperBound...]
    let slash = rest.firstIndex(of: "/") ?? rest.endIndex
    authority = String(rest[..<slash])
    path = String(rest[slash...])
  }

  /// The characters of RFC 3986 sections 2.2 and 2.3 that may stand in an authority or a path here.
  private static func isAllowed(_ octet: UInt8) -> Bool {
    isLetterOrDigit(octet) || "-._~:/[]!$&'()*+,;=%".utf8.contains(octet)
  }
}

extension Form where Result == ServiceURL {
  static var serviceURL: Form {
    Form("a URL such as \"https://dns.example/path\", without user, query and fragment") { value in
      value.line.flatMap { ServiceURL(text: $0) }
    }
  }
}

extension Form where Result == CredentialURL {
  static func credentialURL(schemes: [String]) -> Form {
    let schemeWords = schemes.map { "\($0)://" }.joined(separator: " or ")
    return Form("a URL with a port: \(schemeWords) and host:port") { value in
      value.line.flatMap { CredentialURL(text: $0, schemes: schemes) }
    }
  }
}
