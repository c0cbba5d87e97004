// HTTPServerRequest.swift -- a client's request, copied out of libevent so that it can outlive libevent's own.

import CEvent
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

  /// For tests of handlers, without libevent.
  public init(
    method: HTTPMethod = .get, target: String, fields: [HTTPField] = [], body: [UInt8] = [],
    peer: SocketAddress? = nil
  ) {
    self.method = method
    self.fields = fields
    self.body = body
    self.peer = peer
    let (authority, rest) = HTTPServerRequest.split(target)
    host = authority ?? fields.first { $0.isNamed("Host") }?.value
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
}

extension HTTPField {
  /// Compares names without regard to case.
  func isNamed(_ name: String) -> Bool { equalIgnoringCase(self.name, name) }
}

extension HTTPServerRequest {
  /// Copies libevent's request; returns nil for an unsupported method.
  init?(copying request: UnsafeMutablePointer<evhttp_request>) {
    let method: HTTPMethod
    switch evhttp_request_get_command(request) {
    case EVHTTP_REQ_GET: method = .get
    case EVHTTP_REQ_HEAD: method = .head
    case EVHTTP_REQ_POST: method = .post
    case EVHTTP_REQ_PUT: method = .put
    case EVHTTP_REQ_DELETE: method = .delete
    default: return nil
    }
    var fields: [HTTPField] = []
    var item = evhttp_request_get_input_headers(request).pointee.tqh_first
    while let field = item {
      fields.append(HTTPField(String(cString: field.pointee.key), String(cString: field.pointee.value)))
      item = field.pointee.next.tqe_next
    }
    let input = evhttp_request_get_input_buffer(request)
    let length = evbuffer_get_length(input)
    // All threads share the empty array of capacity 0, and this initializer would write to its count.
    let body =
      length == 0
      ? []
      : [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
        count = max(0, evbuffer_copyout(input, buffer.baseAddress, length))
      }
    self.init(
      method: method, target: String(cString: evhttp_request_get_uri(request)), fields: fields, body: body,
      peer: evhttp_request_get_connection(request).flatMap { evhttp_connection_get_addr($0) }
        .flatMap { SocketAddress($0) })
  }
}

private func equalIgnoringCase(_ left: some StringProtocol, _ right: String) -> Bool {
  left.utf8.count == right.utf8.count && zip(left.utf8, right.utf8).allSatisfy { lower($0) == lower($1) }
}

private func lower(_ octet: UInt8) -> UInt8 { octet &- 65 < 26 ? octet | 0x20 : octet }
