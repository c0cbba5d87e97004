// HTTPServerRequest.swift -- what a client asked, copied out of libevent so that it may be kept.

import CEvent
import EventLoop

/// A header field of a request or a reply.
public struct HTTPServerField: Hashable, Sendable {
  /// The field's name, in the case in which it was sent.
  public var name: String
  /// The field's value, without surrounding white space.
  public var value: String
  /// A field of that name and value.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// A request's method, RFC 9110 section 9; any other one is refused with 501 before the handler sees it.
public enum HTTPServerMethod: String, Sendable {
  case get = "GET"
  case head = "HEAD"
  case post = "POST"
  case put = "PUT"
  case delete = "DELETE"
}

/// One request, complete with its body.
public struct HTTPServerRequest: Sendable {
  /// The method.
  public let method: HTTPServerMethod
  /// The request target's path, as it was sent (percent-encoding and all).
  public let path: String
  /// What follows the first `?`, as it was sent; nil without one.
  public let query: String?
  /// Whom the request is meant for, with the port where one was sent: the authority of the target, or else the Host field
  /// (RFC 9112, section 3.2.2); nil without either.
  public let host: String?
  /// The header fields in the order in which they were sent.
  public let fields: [HTTPServerField]
  /// The body's octets.
  public let body: [UInt8]
  /// Where the client connects from; nil on a Unix socket.
  public let peer: SocketAddress?

  /// A request made by hand: for tests of handlers.
  public init(
    method: HTTPServerMethod = .get, target: String, fields: [HTTPServerField] = [], body: [UInt8] = [],
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

  /// The authority of a target in absolute form, and the rest as if it were in origin form (RFC 9112, section 3.2).
  private static func split(_ target: String) -> (authority: String?, rest: Substring) {
    guard let scheme = ["http://", "https://"].first(where: { equalIgnoringCase(target.prefix($0.count), $0) }) else {
      return (nil, target[...])
    }
    let place = target.dropFirst(scheme.count)
    let authority = place.prefix { $0 != "/" && $0 != "?" }
    let rest = place[authority.endIndex...]
    return (String(authority), rest.hasPrefix("/") ? rest : "/\(rest)")
  }

  /// The value of the first field of that name, in any case.
  ///
  /// - Complexity: O(n) in the number of fields.
  public func field(_ name: String) -> String? {
    fields.first { $0.isNamed(name) }?.value
  }
}

extension HTTPServerField {
  /// Whether that is its name, in any case.
  func isNamed(_ name: String) -> Bool { equalIgnoringCase(self.name, name) }
}

extension HTTPServerRequest {
  /// Copies libevent's request; nil for a method that the server does not know.
  init?(copying request: UnsafeMutablePointer<evhttp_request>) {
    let method: HTTPServerMethod
    switch evhttp_request_get_command(request) {
    case EVHTTP_REQ_GET: method = .get
    case EVHTTP_REQ_HEAD: method = .head
    case EVHTTP_REQ_POST: method = .post
    case EVHTTP_REQ_PUT: method = .put
    case EVHTTP_REQ_DELETE: method = .delete
    default: return nil
    }
    var fields: [HTTPServerField] = []
    var item = evhttp_request_get_input_headers(request).pointee.tqh_first
    while let field = item {
      fields.append(HTTPServerField(String(cString: field.pointee.key), String(cString: field.pointee.value)))
      item = field.pointee.next.tqe_next
    }
    let input = evhttp_request_get_input_buffer(request)
    let length = evbuffer_get_length(input)
    // An array of no capacity is one that all threads share, and its count is written here.
    let body =
      length == 0
      ? []
      : [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
        count = max(0, evbuffer_copyout(input, buffer.baseAddress, length))
      }
    self.init(
      method: method, target: String(cString: evhttp_request_get_uri(request)), fields: fields, body: body,
      peer: evhttp_request_get_connection(request).flatMap(peerAddress))
  }
}

private func peerAddress(of connection: OpaquePointer) -> SocketAddress? {
  guard let address = evhttp_connection_get_addr(connection) else { return nil }
  let length: Int
  switch Int32(address.pointee.sa_family) {
  case AF_INET: length = MemoryLayout<sockaddr_in>.size
  case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
  default: return nil
  }
  var storage = sockaddr_storage()
  withUnsafeMutableBytes(of: &storage) { $0.baseAddress!.copyMemory(from: address, byteCount: length) }
  return SocketAddress(storage: storage, length: socklen_t(length))
}

private func equalIgnoringCase(_ left: some StringProtocol, _ right: String) -> Bool {
  left.utf8.count == right.utf8.count && zip(left.utf8, right.utf8).allSatisfy { lower($0) == lower($1) }
}

private func lower(_ octet: UInt8) -> UInt8 { octet &- 65 < 26 ? octet | 0x20 : octet }
