// DoHRefusal.swift -- the statuses of requests over HTTP that get no DNS message.

/// Why a request gets no DNS message.
package enum DoHRefusal: Error, Equatable {
  /// The message is shorter than a header, or a response.
  case noMessage
  /// A GET without `dns=`.
  case noParameter
  /// `dns=` has other characters than base64url, or padding.
  case noBase64URL
  /// `X-Forwarded-For` of a trusted proxy ends with something else than an address.
  case noForwardedClient
  /// A parameter of the JSON interface; one line for the client.
  case badParameter(String)
  /// The client that a proxy names may not ask.
  case notAllowed
  /// Another path, or no or a wrong token: a stranger cannot tell which.
  case notFound
  /// Another method, to the path of DNS messages.
  case wrongMethod
  /// Another method, to the JSON interface.
  case wrongMethodOfJSON
  /// A body without Content-Length over HTTP/1.1.
  case noLength
  /// A body that no DNS message can have.
  case tooLarge
  /// `dns=` is longer than any query needs.
  case targetTooLong
  /// A POST of something else than a DNS message.
  case wrongType
  /// The request is for another server.
  case misdirected
  /// The query would wait too long for `listen.rate_limit`.
  case tooManyQueries
  /// The head of the request exceeds its bounds.
  case headTooLarge
}

extension DoHRefusal {
  /// The status code of HTTP.
  package var status: Int {
    switch self {
    case .noMessage, .noParameter, .noBase64URL, .noForwardedClient, .badParameter: 400
    case .notAllowed: 403
    case .notFound: 404
    case .wrongMethod, .wrongMethodOfJSON: 405
    case .noLength: 411
    case .tooLarge: 413
    case .targetTooLong: 414
    case .wrongType: 415
    case .misdirected: 421
    case .tooManyQueries: 429
    case .headTooLarge: 431
    }
  }

  /// The body of the response, one line without its end.
  package var text: String {
    switch self {
    case .noMessage: "not a DNS query"
    case .noParameter: "the parameter dns is missing"
    case .noBase64URL: "the parameter dns is not base64url without padding"
    case .noForwardedClient: "the last element of X-Forwarded-For is not an address"
    case .badParameter(let text): text
    case .notAllowed: "this client is not in encrypted.allow"
    case .notFound: "not found"
    case .wrongMethod: "only GET and POST"
    case .wrongMethodOfJSON: "only GET"
    case .noLength: "a body needs Content-Length"
    case .tooLarge: "a DNS message has at most 65535 octets"
    case .targetTooLong: "the parameter dns has more than 2731 characters; use POST"
    case .wrongType: "only application/dns-message"
    case .misdirected: "this server has another name"
    case .tooManyQueries: "more queries than listen.rate_limit allows"
    case .headTooLarge: "the header section is too large"
    }
  }

  /// A field that only this response has.
  package var field: (name: String, value: String)? {
    switch self {
    case .wrongMethod: ("Allow", "GET, POST")
    case .wrongMethodOfJSON: ("Allow", "GET")
    case .tooManyQueries: ("Retry-After", "1")
    default: nil
    }
  }
}
