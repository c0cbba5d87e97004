// ShownText.swift -- how messages quote text from the configuration: on one line, short, and without secrets.

/// The longest text from a file that a message quotes, in characters.
let shownLimit = 60

/// The text on one line, cut at the limit. Characters that are invisible or move the cursor are escaped.
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
  /// The value as a message quotes it.
  func shown(at place: ValuePath) -> String {
    if holdsSecret(place.lastKey) { return "\(kind) (not shown)" }
    return switch self {
    case .string(let text): "\"\(shownText(withoutCredentials(text, at: place), limit: shownLimit))\""
    case .integer(let number): "\(number)"
    case .float(let number): "\(number)"
    case .boolean(let flag): "\(flag)"
    case .array(let values): values.isEmpty ? "an empty array" : "an array"
    case .date, .table: kind
    }
  }
}

/// Whether the name of a key suggests that its value is a secret, or that people put one there by mistake.
func holdsSecret(_ key: String) -> Bool {
  let key = key.lowercased()
  // The id of an account or of an application is next to the secret and easily confused with it.
  if key == "id" || key.hasSuffix("_id") { return true }
  return ["secret", "key", "token", "password", "passwd", "credential", "account", "auth"].contains { key.contains($0) }
}

/// The text without a user and a password before a host, and without the query and fragment of a URL.
func withoutCredentials(_ text: String, at place: ValuePath) -> String {
  var scheme = ""
  var rest = text[...]
  if let separator = rest.firstRange(of: "://"), isScheme(rest[..<separator.lowerBound]) {
    scheme = String(rest[..<separator.upperBound])
    rest = rest[separator.upperBound...]
  }
  if let at = rest.lastIndex(of: "@") { rest = "…" + rest[at...] }
  if let query = rest.firstIndex(where: { $0 == "?" || $0 == "#" }) { rest = rest[...query] + "…" }
  // `user:password` without `@host` looks like a host with an invalid port. Only URLs and these keys can hold one.
  let mayHoldPassword = !scheme.isEmpty || ["proxy", "redis"].contains(place.lastKey)
  let authority = rest.prefix { $0 != "/" }
  if mayHoldPassword, !authority.hasPrefix("["), let colon = authority.firstIndex(of: ":"),
    portNumber(authority[authority.index(after: colon)...]) == nil,
    !isMistypedPort(authority[authority.index(after: colon)...], of: authority[..<colon]),
    Endpoint(text: String(authority), defaultPort: 1) == nil
  {
    rest = authority[...colon] + "…"
  }
  return scheme + rest
}

/// Whether the text has only characters of a scheme (RFC 3986 section 3.1): a password may stand before `://` too.
private func isScheme(_ text: Substring) -> Bool {
  text.utf8.allSatisfy { isLetterOrDigit($0) || "+-.".utf8.contains($0) }
}

/// Whether the text after an address or a dotted name is empty or a number, that is, a mistyped port: users do not have such
/// names, and passwords are longer.
private func isMistypedPort(_ text: Substring, of host: Substring) -> Bool {
  text.utf8.count <= 6 && text.utf8.allSatisfy { isDigit($0) } && host.contains(".") && Host(text: String(host)) != nil
}
