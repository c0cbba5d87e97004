// ListURL.swift -- the URL of a list, and where a redirect leads (RFC 3986).
//
// libcurl does not follow redirects: the host of each is looked up by our own providers, and none may lead from https to
// http.

import HTTPClient

/// The parts of an `http` or `https` URL.
struct ListURL: Hashable, Sendable {
  let scheme: HTTPServerAddress.Scheme
  /// User and password, decoded; empty without any.
  let user: [UInt8]
  /// In lower case; an IPv6 address without brackets.
  let host: String
  let port: UInt16
  /// Path and query, in octets that a request may have.
  let target: String

  /// Parses a whole URL; nil if it cannot be fetched.
  init?(_ text: String) {
    guard let separator = text.firstRange(of: "://"),
      let scheme = HTTPServerAddress.Scheme(rawValue: text[..<separator.lowerBound].lowercased())
    else { return nil }
    let rest = text[separator.upperBound...].prefix { $0 != "#" }
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let authority = rest[..<end]
    let at = authority.lastIndex(of: "@")
    guard let (host, port) = ListURL.split(at.map { authority[authority.index(after: $0)...] } ?? authority) else {
      return nil
    }
    self.scheme = scheme
    self.host = host
    self.port = port ?? scheme.defaultPort
    user = at.map { ListURL.decoded(authority[..<$0]) } ?? []
    target = ListURL.encoded(rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...])
  }

  private init(_ base: ListURL, target: String) {
    (scheme, user, host, port) = (base.scheme, base.user, base.host, base.port)
    self.target = ListURL.encoded(target)
  }

  /// Where a `Location` leads; nil if it cannot be fetched.
  func following(_ reference: String) -> ListURL? {
    let reference = String(reference.prefix { $0 != "#" })
    let path = String(target.prefix { $0 != "?" })
    if let mark = reference.firstIndex(where: { ":/?".contains($0) }), reference[mark] == ":" {
      return ListURL(reference)
    }
    if reference.hasPrefix("//") { return ListURL("\(scheme.rawValue):\(reference)") }
    if reference.isEmpty { return self }
    if reference.hasPrefix("?") { return ListURL(self, target: path + reference) }
    let folder = reference.hasPrefix("/") ? "" : String(path[...(path.lastIndex(of: "/") ?? path.startIndex)])
    return ListURL(self, target: ListURL.withoutDots(folder + reference))
  }

  /// Whether both are of one server, which may know the same user.
  func isAtServer(of other: ListURL) -> Bool { scheme == other.scheme && host == other.host && port == other.port }

  /// Without user, password and query.
  var shown: String {
    let name = host.contains(":") ? "[\(host)]" : host
    let port = port == scheme.defaultPort ? "" : ":\(port)"
    return "\(scheme.rawValue)://\(name)\(port)\(target.prefix { $0 != "?" })"
  }

  private static func split(_ authority: Substring) -> (host: String, port: UInt16?)? {
    var (host, rest) = (authority, Substring())
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]") else { return nil }
      (host, rest) = (authority[..<end].dropFirst(), authority[authority.index(after: end)...])
    } else if let colon = authority.firstIndex(of: ":") {
      (host, rest) = (authority[..<colon], authority[colon...])
    }
    guard !host.isEmpty, rest.isEmpty || rest.hasPrefix(":") else { return nil }
    // `host:` has the default port.
    guard rest.count > 1 else { return (host.lowercased(), nil) }
    guard rest.dropFirst().utf8.allSatisfy({ 48...57 ~= $0 }), let port = UInt16(rest.dropFirst()), port > 0 else {
      return nil
    }
    return (host.lowercased(), port)
  }

  /// Octets that no request may have are escaped: browsers do that too, so servers send them.
  private static func encoded(_ text: String) -> String {
    guard text.utf8.contains(where: { !(0x21...0x7E ~= $0) }) else { return text }
    return text.utf8.reduce(into: "") { encoded, octet in
      if 0x21...0x7E ~= octet {
        encoded.unicodeScalars.append(UnicodeScalar(octet))
      } else {
        encoded += (octet < 16 ? "%0" : "%") + String(octet, radix: 16, uppercase: true)
      }
    }
  }

  private static func decoded(_ text: Substring) -> [UInt8] {
    var (octets, rest) = ([UInt8](), text.utf8[...])
    while let octet = rest.popFirst() {
      let digits = Substring(rest.prefix(2))
      if octet == UInt8(ascii: "%"), digits.count == 2, let value = UInt8(digits, radix: 16) {
        octets.append(value)
        rest = rest.dropFirst(2)
      } else {
        octets.append(octet)
      }
    }
    return octets
  }

  /// RFC 3986 section 5.2.4.
  private static func withoutDots(_ target: String) -> String {
    let query = target.firstIndex(of: "?") ?? target.endIndex
    var segments: [Substring] = []
    let given = target[..<query].split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    for segment in given where segment != "." {
      if segment == ".." { _ = segments.popLast() } else { segments.append(segment) }
    }
    if given.last == "." || given.last == ".." { segments.append("") }
    return "/" + segments.joined(separator: "/") + target[query...]
  }
}
