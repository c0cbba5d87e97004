// HTTPServerRequest.swift -- a client's request, as handlers see it.

import EventLoop
import HTTPMessage

/// A complete request with its body.
public struct HTTPServerRequest: Sendable {
  /// The request method, as the client sent it.
  public let method: HTTPMethod
  /// The path of the request target as sent, with its percent-encoding.
  public let path: String
  /// The part of the target after the first `?`, as sent; nil if there is no `?`.
  public let query: String?
  /// The host that the request addresses, with the port if one was sent: the authority of the target, otherwise the
  /// Host field (RFC 9112 section 3.2.2). Nil if the request has neither.
  public let host: String?
  /// The header fields in the order in which the client sent them.
  public let fields: [HTTPField]
  /// The octets of the body; empty without a body.
  public let body: [UInt8]
  /// The address of the client; nil on a Unix socket.
  public let peer: SocketAddress?

  /// For tests of handlers, without a connection.
  public init(
    method: HTTPMethod = .get, target: String, fields: [HTTPField] = [], body: [UInt8] = [],
    peer: SocketAddress? = nil
  ) {
    let host = fields.first { $0.isNamed("Host") }?.value
    self.init(method, target, host: host, fields: fields, body: body, peer: peer)
  }

  init(_ head: RequestHead, body: [UInt8], peer: SocketAddress?) {
    self.init(head.method, head.target, host: head.host, fields: head.fields, body: body, peer: peer)
  }

  private init(
    _ method: HTTPMethod, _ target: String, host: String?, fields: [HTTPField], body: [UInt8], peer: SocketAddress?
  ) {
    self.method = method
    self.fields = fields
    self.body = body
    self.peer = peer
    let (authority, rest) = HTTPServerRequest.split(target)
    self.host = authority ?? host
    if let mark = rest.utf8.firstIndex(of: UInt8(ascii: "?")) {
      path = String(rest[..<mark])
      query = String(rest[rest.utf8.index(after: mark)...])
    } else {
      path = String(rest)
      query = nil
    }
  }

  /// Splits a target in absolute form into its authority and the equivalent origin form (RFC 9112 section 3.2).
  private static func split(_ target: String) -> (authority: String?, rest: Substring) {
    guard target.utf8.first != UInt8(ascii: "/") else { return (nil, target[...]) }
    guard let scheme = ["http://", "https://"].first(where: { equalIgnoringCase(target.prefix($0.count), $0) }) else {
      return (nil, target[...])
    }
    let place = target.dropFirst(scheme.count)
    let authority = place.prefix { $0 != "/" && $0 != "?" }
    let rest = place[authority.endIndex...]
    return (String(authority), rest.hasPrefix("/") ? rest : "/\(rest)")
  }

  /// Returns the value of the first field with this name, compared without regard to case.
  ///
  /// - Complexity: O(n) in the number of fields.
  public func field(_ name: String) -> String? { fields.first { $0.isNamed(name) }?.value }

  /// The token of the Authorization field (RFC 6750 section 2.1); nil without the field, and with another scheme.
  public var bearerToken: String? {
    let scheme = "bearer "
    guard let field = field("Authorization"), field.lowercased().hasPrefix(scheme) else { return nil }
    return String(field.dropFirst(scheme.count))
  }
}

extension HTTPField {
  /// Compares names without regard to case.
  func isNamed(_ name: String) -> Bool { equalIgnoringCase(self.name, name) }
}

private func equalIgnoringCase(_ left: some StringProtocol, _ right: String) -> Bool {
  left.utf8.count == right.utf8.count
    && zip(left.utf8, right.utf8).allSatisfy { Octet.lower($0) == Octet.lower($1) }
}
