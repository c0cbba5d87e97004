// HTTPMessage.swift -- what is sent to a server, what comes back, and who can carry it.

/// A header field of a request.
public struct HTTPField: Hashable, Sendable {
  /// The field name, `Accept` say.
  public var name: String
  /// The field value.
  public var value: String

  /// A field of that name and value.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// A request; where it goes is the origin's business.
public struct HTTPRequest: Hashable, Sendable {
  /// The request methods that are used.
  public enum Method: Hashable, Sendable {
    /// RFC 9110 section 9.3.1; the body is not sent.
    case get
    /// RFC 9110 section 9.3.3.
    case post
  }

  /// The method.
  public var method: Method
  /// Path and query, from the first `/` on, percent-encoded.
  public var target: String
  /// Header fields besides `Host` and `Content-Length`. The same array in every request costs nothing.
  public var headers: [HTTPField]
  /// The content of a POST.
  public var body: [UInt8]
  /// Whose transfer it is: none takes all connections while another one waits. 0 for nobody's.
  public var share: UInt64 = 0

  /// A request.
  public init(method: Method = .get, target: String, headers: [HTTPField] = [], body: [UInt8] = []) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
  }
}

/// A response with those header fields that somebody reads.
public struct HTTPResponse: Hashable, Sendable {
  /// The status code; redirections are not followed.
  public var status: Int
  /// The `Content-Type` field as it came, without white space at its ends; empty when there was none.
  public var contentType: String
  /// `Age` in seconds (RFC 9111 section 5.1).
  public var age: Int64?
  /// `max-age` of `Cache-Control` in seconds (RFC 9111 section 5.2.2.1).
  public var maxAge: Int64?
  /// `Retry-After` in seconds from now (RFC 9110 section 10.2.3); a date counts from the response's own `Date`.
  public var retryAfter: Int64?
  /// `Date` in seconds since 1970 (RFC 9110 section 6.6.1), in the preferred form only.
  public var date: Int64?
  /// `ETag` as it came (RFC 9110 section 8.8.3).
  public var entityTag: String?
  /// The content.
  public var body: [UInt8]
  /// The major version: 1 or 2.
  public var httpVersion: Int
  /// The address that answered, as text without the port; of the proxy where there is one.
  public var remoteAddress: String

  /// A response.
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

/// How a transfer ended.
public enum HTTPResult: Hashable, Sendable {
  /// The server answered, with whatever status.
  case response(HTTPResponse)
  /// It did not.
  case failure(HTTPFailure)
}

/// Something that carries requests to one server: `HTTPOrigin`, or a script in a test.
public protocol HTTPTransport: AnyObject, Sendable {
  /// Sends a request and waits for the end of the transfer, which comes within `timeout`.
  nonisolated(nonsending) func send(_ request: HTTPRequest, timeout: Duration) async -> HTTPResult
  /// Lets later requests open new connections; those in flight go on over the old ones.
  func renewConnections()
}
