// NameArgument.swift -- a domain name on the command line, and what was probably meant where it is something else.

import ArgumentParser
import Configuration
import DNSWire

extension DomainName {
  /// A name from the command line.
  ///
  /// - Throws: `ValidationError`, which ends the program with 64.
  init(argument: String) throws {
    guard argument.utf8.allSatisfy({ $0 < 0x80 }) else {
      throw ValidationError("'\(argument)' has characters beyond ASCII; write the name in its xn-- form")
    }
    if let address = IPAddress(text: argument) {
      throw ValidationError("'\(address)' is an address, not a name; `httpdnsd query \(address)` asks for its name")
    }
    if let place = PlaceArgument(argument) { throw ValidationError(place.description) }
    guard !argument.contains("\n"), let name = DomainName(text: argument) else {
      throw ValidationError("'\(argument)' is not a domain name")
    }
    self = name
  }
}

/// Text in the place of a name that has a name in it: a URL, or a host with a port or a path.
struct PlaceArgument {
  private let text: String
  private let isURL: Bool
  /// The name or the address.
  let host: String?

  /// Nil for text that may be a name. A slash alone makes no URL: names for parts of a network have one (RFC 2317).
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

  /// What it is.
  var kind: String { "'\(text)' is \(isURL ? "a URL" : "a host with a port or a path")" }

  /// What it is, and what was probably meant.
  var description: String { "\(kind), not a name" + (host.map { "; did you mean \($0)?" } ?? "") }
}
