// Transfer.swift -- an HTTP exchange as values: what a dialect wants sent, and what came back of it.

/// What to send. The host, the scheme and the connection are the HTTP client's business.
public struct TransferRequest: Sendable {
  /// The HTTP methods that dialects use.
  public enum Method: String, Sendable {
    /// A GET, without a body.
    case get = "GET"
    /// A POST.
    case post = "POST"
  }

  /// The method.
  public var method: Method
  /// Path and query, percent-encoded. The query may hold a signature: never log it.
  public var target: String
  /// Header fields that the dialect needs beside those that every HTTP client sends.
  public var headers: [(name: String, value: String)]
  /// The body; empty with GET.
  public var body: [UInt8]

  /// A request of those parts.
  public init(method: Method, target: String, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
  }
}

extension TransferRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Method and path, for logs: without the query, the headers and the body.
  public var description: String { "\(method.rawValue) \(target.prefix { $0 != "?" })" }
  /// The same as `description`.
  public var debugDescription: String { description }
  /// Nothing to look into.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// What came back.
public struct TransferResponse: Sendable {
  /// The HTTP status code.
  public var status: Int
  /// The `Content-Type` field as it was sent.
  public var contentType: String?
  /// The `Age` field (RFC 9111 section 5.1), seconds.
  public var age: UInt32?
  /// `max-age` of the `Cache-Control` field (RFC 9111 section 5.2.2.1), seconds; 0 bounds nothing.
  public var maxAge: UInt32?
  /// The `Retry-After` field (RFC 9110 section 10.2.3).
  public var retryAfter: Duration?
  /// The body, without any transfer or content coding.
  public var body: [UInt8]

  /// A response of those parts.
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
