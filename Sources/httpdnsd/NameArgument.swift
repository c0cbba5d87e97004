// NameArgument.swift -- parses a domain name on the command line, and suggests one if it is something else.

import ArgumentParser
import Configuration
import DNSWire

extension DomainName {
  /// A name from the command line.
  ///
  /// - Throws: `ValidationError`, which ends the program with 64.
  init(argument: String) throws {
    guard argument.utf8.allSatisfy({ $0 < 0x80 }) else {
      throw ValidationError("'\(argument)' has non-ASCII characters; write the name in its xn-- form")
    }
    if let address = IPAddress(text: argument) {
      throw ValidationError("'\(address)' is an address, not a name; `httpdnsd query \(address)` asks for its name")
    }
    if let url = URLArgument(argument) { throw ValidationError(url.description) }
    guard !argument.contains("\n"), let name = DomainName(text: argument) else {
      throw ValidationError("'\(argument)' is not a domain name")
    }
    self = name
  }
}

/// An argument that contains a host but is not one: a URL, or a host with a port or a path.
struct URLArgument {
  private let text: String
  private let isURL: Bool
  /// The name or address; nil if the URL has none that is valid.
  let host: String?

  /// Nil if the text may be a name. A slash alone does not make a URL: names of RFC 2317 contain one.
  init?(_ text: String) {
    let scheme = text.firstRange(of: "://")
    var rest = scheme.map { text[$0.upperBound...] } ?? text[...]
    rest = rest.prefix { !"/?#".contains($0) }
    if scheme != nil, let at = rest.lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
    if rest.hasPrefix("[") {
      rest = rest.dropFirst().prefix { $0 != "]" }
    } else if let colon = rest.lastIndex(of: ":"), rest[rest.index(after: colon)...].allSatisfy(\.isNumber) {
      rest = rest[..<colon]
    }
    let host = Host(text: String(rest))
    guard scheme != nil || rest.count < text.count && rest.contains(".") && host != nil else { return nil }
    self.text = text
    isURL = scheme != nil
    self.host = host?.text
  }

  var kind: String { "'\(text)' is \(isURL ? "a URL" : "a host with a port or a path")" }

  /// The error message, with a suggestion if there is a host.
  var description: String { "\(kind), not a name" + (host.map { "; did you mean \($0)?" } ?? "") }
}
