// UCloudError.swift -- the error codes of UCloud HTTPDNS.

import HTTPMessage

/// `code` in the body of a refusal.
enum UCloudErrorCode: String, CaseIterable {
  /// A wrong signature, or one of a minute ago.
  case unauthorized = "UNAUTHORIZED"
  case hostForbidden = "HOST_FORBIDDEN"
  case failToResolve = "FAIL_TO_RESOLVE"

  /// The documented code of a refusal; nil with a status that is not that of a refusal.
  init?(of response: HTTPResponse) {
    guard response.mayExplainRefusal, let code = response.word("code") else { return nil }
    self.init(rawValue: code)
  }

  /// Whether the service has no addresses for the name: the account does not list it, there is no record, or it could
  /// not be resolved.
  var isEmpty: Bool { self != .unauthorized }
}
