// HTTPRequest.swift -- the request of a transfer: what a dialect composes and the client sends.

/// A request method (RFC 9110 section 9).
public enum HTTPMethod: String, Hashable, Sendable {
  case get = "GET"
  case head = "HEAD"
  case post = "POST"
  case put = "PUT"
  case delete = "DELETE"
  /// Any that no server of ours serves. Not sent.
  case other = "OTHER"
}

/// A header field of a request or a response.
public struct HTTPField: Hashable, Sendable {
  /// The field name, for example `Accept`.
  public var name: String
  public var value: String

  /// Neither text is checked.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// A request. The transport determines server, scheme and connection.
public struct HTTPRequest: Hashable, Sendable {
  public var method: HTTPMethod
  /// Path and query, starting with `/`, percent-encoded. The query may contain a signature: never log it.
  public var target: String
  /// Header fields other than `Host` and `Content-Length`. Reusing the same array for all requests costs nothing.
  public var fields: [HTTPField]
  /// The content of a POST.
  public var body: [UInt8]

  public init(method: HTTPMethod = .get, target: String, fields: [HTTPField] = [], body: [UInt8] = []) {
    self.method = method
    self.target = target
    self.fields = fields
    self.body = body
  }
}

extension HTTPRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Method and path for logs, without query, header fields and body.
  public var description: String { "\(method.rawValue) \(target.prefix { $0 != "?" })" }
  /// The same as `description`.
  public var debugDescription: String { description }
  /// Empty, so that reflection does not reveal the query.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
