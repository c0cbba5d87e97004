// Transfer.swift -- an HTTP exchange as values: the request of a dialect and the response to it.

/// The request of a dialect. The HTTP client determines host, scheme and connection.
public struct TransferRequest: Sendable {
  /// The HTTP methods that dialects use.
  public enum Method: String, Sendable {
    /// A GET, without a body.
    case get = "GET"
    /// A POST.
    case post = "POST"
  }

  /// GET or POST.
  public var method: Method
  /// Path and query, percent-encoded. The query may contain a signature: never log it.
  public var target: String
  /// Header fields that the dialect needs in addition to those of the HTTP client.
  public var headers: [(name: String, value: String)]
  /// The body; empty with GET.
  public var body: [UInt8]

  /// Creates a request, by default without header fields and without a body.
  public init(method: Method, target: String, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
  }
}

extension TransferRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Method and path for logs, without query, headers and body.
  public var description: String { "\(method.rawValue) \(target.prefix { $0 != "?" })" }
  /// The same as `description`.
  public var debugDescription: String { description }
  /// Empty, so that reflection does not reveal the query.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The response to a transfer.
public struct TransferResponse: Sendable {
  /// The HTTP status code.
  public var status: Int
  /// The `Content-Type` field as the server sent it.
  public var contentType: String?
  /// The `Age` field (RFC 9111 section 5.1), seconds.
  public var age: UInt32?
  /// `max-age` of the `Cache-Control` field (RFC 9111 section 5.2.2.1), seconds. 0 does not limit TTLs.
  public var maxAge: UInt32?
  /// The `Retry-After` field (RFC 9110 section 10.2.3).
  public var retryAfter: Duration?
  /// The body after removal of transfer and content codings.
  public var body: [UInt8]

  /// Creates a response, by default without header fields and with an empty body.
  public init(
    status: Int, contentType: String? = nil, age: UInt32? = nil, maxAge: UInt32? = nil, retryAfter: Duration? = nil,
    body: [UInt8] = []
  ) {
    self.status = status
    self.contentType = contentType
    self.age = age
    self.maxAge = maxAge
    self.retryAfter = retryAfter
    self.body = body
  }
}
