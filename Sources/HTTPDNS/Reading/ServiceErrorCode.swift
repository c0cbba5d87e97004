// ServiceErrorCode.swift -- the error code that a provider's service puts into the JSON of a refusal.

import HTTPMessage
import JSON

/// What a service says in place of an answer, by a code in its reply.
protocol ServiceErrorCode: RawRepresentable<String> {
  /// The code in a reply; nil without a code or with an undocumented one.
  init?(in reply: JSONValue)

  /// What the code means.
  var failure: HTTPDNSFailure { get }

  /// The failure that a reply with status 200 reports; nil if it is no refusal.
  static func failure(in reply: JSONValue) -> HTTPDNSFailure?
}

extension ServiceErrorCode {
  static func failure(in reply: JSONValue) -> HTTPDNSFailure? { Self(in: reply)?.failure }

  /// The text of the code in a body, if it is a documented one.
  static func text(in response: HTTPResponse) -> String? {
    response.inJSON(Self.init(in:))?.rawValue
  }

  /// Passes the root of a reply's body to `read`, unless the reply is a refusal. The error code takes precedence over the
  /// status.
  static func withReply<Value>(
    _ response: HTTPResponse, _ read: (JSONValue) throws(HTTPDNSFailure) -> Value
  ) throws(HTTPDNSFailure) -> Value {
    if response.status != 200, let code = response.inJSON(Self.init(in:)) { throw code.failure }
    return try response.withAnswer { root throws(HTTPDNSFailure) in
      if let failure = failure(in: root) { throw failure }
      return try read(root)
    }
  }
}
