// URLs.swift -- URLs of services, and URLs that may contain a password.

import Ciphers

/// The transport of a service.
public enum Scheme: String, CaseIterable, Hashable, Sendable {
  /// HTTP over TLS.
  case https
  /// HTTP in the clear.
  case http

  /// The port of a URL without one.
  public var defaultPort: UInt16 { self == .https ? 443 : 80 }
}

/// The URL of a service: scheme, host, port and path, without user, query and fragment.
public struct ProviderURL: Hashable, Sendable {
  /// HTTP or HTTPS.
  public let scheme: Scheme
  /// An address, or a name to look up.
  public let host: Host
  /// The port; the scheme's default if the text has none.
  public let port: UInt16
  /// The path, which begins with `/`.
  public let path: String
}

extension ProviderURL {
  /// A URL from its text; nil if it has a user, a query, a fragment or a character that must be escaped. Services print theirs
  /// as a URI template (RFC 8484 section 3): a final `{?dns}` is left out.
  public init?(text: String) {
    let template = "{?dns}"
    guard let parts = URLParts(text.hasSuffix(template) ? String(text.dropLast(template.count)) : text),
      let scheme = Scheme(rawValue: parts.scheme),
      let (host, port) = splitPort(parts.authority), let host = Host(text: host)
    else { return nil }
    self.init(
      scheme: scheme, host: host, port: port ?? scheme.defaultPort, path: parts.path.isEmpty ? "/" : parts.path)
  }
}

extension ProviderURL: CustomStringConvertible {
  /// The text; the port is left out if it is the scheme's default.
  public var description: String {
    "\(scheme)://\(host.urlText)\(port == scheme.defaultPort ? "" : ":\(port)")\(path)"
  }
}

/// A URL that may contain a user and a password. Its description omits them.
public struct CredentialURL: Hashable, Sendable {
  /// The scheme in lower case.
  public let scheme: String
  /// An address, or a name to look up.
  public let host: Host
  public let port: UInt16
  /// The whole text, for libcurl.
  public let text: Secret
  /// Whether a user or a password is given.
  public let hasCredentials: Bool

  /// A URL from its text, which needs one of these schemes and a port.
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
  /// Scheme, host and port; `…@` replaces user and password.
  public var description: String { "\(scheme)://\(hasCredentials ? "…@" : "")\(host.urlText):\(port)" }
}

/// The parts of a URL without user, query and fragment.
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

  /// The characters of RFC 3986 sections 2.2 and 2.3 that an authority or a path may contain here.
  private static func isAllowed(_ octet: UInt8) -> Bool {
    isLetterOrDigit(octet) || "-._~:/[]!$&'()*+,;=%".utf8.contains(octet)
  }
}

extension Form where Result == ProviderURL {
  static var providerURL: Form {
    Form("a URL without user, query and fragment, e.g. \"https://dns.example/path\"") { value in
      value.line.flatMap { ProviderURL(text: $0) }
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
