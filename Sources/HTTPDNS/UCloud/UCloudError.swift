// UCloudError.swift -- the error codes of UCloud HTTPDNS and the failure that each of them means.

import JSON

/// `code` in the body of a refusal.
enum UCloudErrorCode: String, CaseIterable, ServiceErrorCode {
  case unauthorized = "UNAUTHORIZED"
  case hostForbidden = "HOST_FORBIDDEN"
  case failToResolve = "FAIL_TO_RESOLVE"

  init?(in reply: JSONValue) {
    guard let code = reply["code"]?.text else { return nil }
    self.init(rawValue: code)
  }

  /// Whether the service has no addresses for the name: the account does not list it, there is no record, or it could
  /// not be resolved.
  var isEmpty: Bool { self != .unauthorized }

  /// A wrong signature, and one of a minute ago, have the same code.
  var failure: HTTPDNSFailure { isEmpty ? .name : .authentication }

  /// Nil: what has status 200 is an answer, or unreadable.
  static func failure(in reply: JSONValue) -> HTTPDNSFailure? { nil }
}
