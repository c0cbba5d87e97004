// Shown.swift -- how found text may appear in a message: on one line, short, and without secrets.

/// The longest text out of a file that a message repeats, in characters.
let shownLimit = 60

/// The text on one line: what cannot be seen or would move the cursor is escaped, and the rest is cut at the limit.
func shownText(_ text: String, limit: Int = 4096) -> String {
  var shown = ""
  var count = 0
  for scalar in text.unicodeScalars {
    count += 1
    guard count <= limit else { return shown + "…" }
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
      shown += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    default: shown.unicodeScalars.append(scalar)
    }
  }
  return shown
}

extension Value {
  /// The value as a message may repeat it.
  func shown(at place: Place) -> String {
    if holdsSecret(place.lastKey) { return "\(kind) (not shown)" }
    return switch self {
    case .string(let text): "\"\(shownText(withoutCredentials(text), limit: shownLimit))\""
    case .integer(let number): "\(number)"
    case .float(let number): "\(number)"
    case .boolean(let flag): "\(flag)"
    case .array(let values): values.isEmpty ? "an empty array" : "an array"
    case .date, .table: kind
    }
  }
}

/// Whether a key's name says that its value, or what was put there by mistake, should not be seen.
func holdsSecret(_ key: String) -> Bool {
  let key = key.lowercased()
  // The number of an account stands beside its secret, and is easily mistaken for it.
  if key == "id" { return true }
  return ["secret", "key", "token", "password", "passwd", "credential", "account", "auth"].contains { key.contains($0) }
}

/// The text without what could be a password in a URL or before a host, and without a URL's query and fragment.
func withoutCredentials(_ text: String) -> String {
  var scheme = ""
  var rest = text[...]
  if let separator = rest.firstRange(of: "://") {
    scheme = String(rest[..<separator.upperBound])
    rest = rest[separator.upperBound...]
  }
  if let at = rest.lastIndex(of: "@") { rest = "…" + rest[at...] }
  if let query = rest.firstIndex(where: { $0 == "?" || $0 == "#" }) { rest = rest[...query] + "…" }
  // `user:password` without its `@host` looks like a host with a strange port.
  let authority = rest.prefix { $0 != "/" }
  if !authority.hasPrefix("["), let colon = authority.firstIndex(of: ":"),
    portNumber(authority[authority.index(after: colon)...]) == nil,
    !isMistypedPort(authority[authority.index(after: colon)...], of: authority[..<colon]),
    Endpoint(text: String(authority), defaultPort: 1) == nil
  {
    rest = authority[...colon] + "…"
  }
  return scheme + rest
}

/// Whether what stands behind an address or a name with dots is nothing, or a number that is no port: no user is called so, and
/// no password is so short.
private func isMistypedPort(_ text: Substring, of host: Substring) -> Bool {
  text.utf8.count <= 6 && text.utf8.allSatisfy { isDigit($0) } && host.contains(".") && Host(text: String(host)) != nil
}
