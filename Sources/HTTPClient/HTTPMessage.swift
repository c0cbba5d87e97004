// HTTPMessage.swift -- requests, responses, and the protocol of a transport that carries them.

/// A header field of a request.
public struct HTTPField: Hashable, Sendable {
  /// The field name, for example `Accept`.
  public var name: String
  /// The field value.
  public var value: String

  /// Creates a field. Characters other than printable ASCII make the request fail when it is sent.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// A request. The origin determines the server.
public struct HTTPRequest: Hashable, Sendable {
  /// The supported request methods.
  public enum Method: Hashable, Sendable {
    /// RFC 9110 section 9.3.1; the body is not sent.
    case get
    /// RFC 9110 section 9.3.3.
    case post
  }

  /// GET or POST.
  public var method: Method
  /// Path and query, starting with `/`, percent-encoded.
  public var target: String
  /// Header fields other than `Host` and `Content-Length`. Reusing the same array for all requests costs nothing.
  public var headers: [HTTPField]
  /// The content of a POST.
  public var body: [UInt8]
  /// The key of a fair share: transfers of one key cannot take all connections while transfers of another wait. 0 is
  /// not limited.
  public var share: UInt64 = 0

  /// Creates a request with share 0.
  public init(method: Method = .get, target: String, headers: [HTTPField] = [], body: [UInt8] = []) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
  }
}

/// A response with the header fields that the daemon uses.
public struct HTTPResponse: Hashable, Sendable {
  /// The status code; redirections are not followed.
  public var status: Int
  /// The `Content-Type` field without leading and trailing white space; empty if there was none.
  public var contentType: String
  /// `Age` in seconds (RFC 9111 section 5.1).
  public var age: Int64?
  /// `max-age` of `Cache-Control` in seconds (RFC 9111 section 5.2.2.1).
  public var maxAge: Int64?
  /// `Retry-After` in seconds from now (RFC 9110 section 10.2.3). A date is relative to the response's own `Date`.
  public var retryAfter: Int64?
  /// `Date` in seconds since 1970 (RFC 9110 section 6.6.1), in the preferred form only.
  public var date: Int64?
  /// `ETag` as received (RFC 9110 section 8.8.3).
  public var entityTag: String?
  /// The content.
  public var body: [UInt8]
  /// The major version: 1 or 2.
  public var httpVersion: Int
  /// The peer's address as text without the port; with a proxy, the proxy's address.
  public var remoteAddress: String

  /// Creates a response, by default without header fields and content.
  public init(
    status: Int, contentType: String = "", age: Int64? = nil, maxAge: Int64? = nil, retryAfter: Int64? = nil,
    date: Int64? = nil, entityTag: String? = nil, body: [UInt8] = [], httpVersion: Int = 1, remoteAddress: String = ""
  ) {
    self.status = status
    self.contentType = contentType
    self.age = age
    self.maxAge = maxAge
    self.retryAfter = retryAfter
    self.date = date
    self.entityTag = entityTag
    self.body = body
    self.httpVersion = httpVersion
    self.remoteAddress = remoteAddress
  }
}

/// The outcome of a transfer.
public enum HTTPResult: Hashable, Sendable {
  /// The server responded, with any status.
  case response(HTTPResponse)
  /// There is no response.
  case failure(HTTPFailure)
}

/// Carries requests to one server: `HTTPOrigin`, or a script in a test.
public protocol HTTPTransport: AnyObject, Sendable {
  /// Sends a request and waits until the transfer ends, at the latest after `timeout`.
  nonisolated(nonsending) func send(_ request: HTTPRequest, timeout: Duration) async -> HTTPResult
  /// Makes later requests open new connections; transfers in flight continue on the old ones.
  func renewConnections()
}
