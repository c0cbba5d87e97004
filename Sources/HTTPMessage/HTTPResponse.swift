// HTTPResponse.swift -- the response to a transfer, with the header fields that the daemon uses.

public struct HTTPResponse: Hashable, Sendable {
  /// The status code; redirections are not followed.
  public var status: Int
  /// The `Content-Type` field without leading and trailing white space; nil if there was none.
  public var contentType: String?
  /// `Age` in seconds (RFC 9111 section 5.1).
  public var age: UInt32?
  /// `max-age` of `Cache-Control` in whole seconds (RFC 9111 section 5.2.2.1). 0 does not limit TTLs.
  public var maxAge: UInt32?
  /// `Retry-After` from now (RFC 9110 section 10.2.3). A date is relative to the response's own `Date`.
  public var retryAfter: Duration?
  /// `Date` in seconds since 1970 (RFC 9110 section 6.6.1), in the preferred form only.
  public var date: Int64?
  /// `ETag` as received (RFC 9110 section 8.8.3).
  public var entityTag: String?
  /// `Last-Modified` as received (RFC 9110 section 8.8.2).
  public var lastModified: String?
  /// `Location` as received (RFC 9110 section 10.2.2).
  public var location: String?
  /// The content after removal of transfer and content codings.
  public var body: [UInt8]
  /// The major version: 1 or 2.
  public var httpVersion: Int
  /// The peer's address as text without the port; with a proxy, the proxy's address.
  public var remoteAddress: String
  /// How often the request was put on the wire, repeats by the client included.
  public var timesSent: Int

  public init(
    status: Int, contentType: String? = nil, age: UInt32? = nil, maxAge: UInt32? = nil, retryAfter: Duration? = nil,
    date: Int64? = nil, entityTag: String? = nil, lastModified: String? = nil, location: String? = nil,
    body: [UInt8] = [],
    httpVersion: Int = 1, remoteAddress: String = "", timesSent: Int = 1
  ) {
    self.status = status
    self.contentType = contentType
    self.age = age
    self.maxAge = maxAge
    self.retryAfter = retryAfter
    self.date = date
    self.entityTag = entityTag
    self.lastModified = lastModified
    self.location = location
    self.body = body
    self.httpVersion = httpVersion
    self.remoteAddress = remoteAddress
    self.timesSent = timesSent
  }
}
