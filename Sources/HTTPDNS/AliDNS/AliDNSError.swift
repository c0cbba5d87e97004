// AliDNSError.swift -- the error codes of Alibaba Cloud DNS and the failure that each of them means.

import HTTPMessage
import JSON

/// `code` in the body of a refusal. The provider's client looks at that alone, whatever the status
/// (github.com/aliyun/alibaba-pdns-sdk-c); the codes are those of all APIs of Alibaba Cloud
/// (alibabacloud.com/help/en/sdk/developer-reference/common-error-codes). What follows a full stop says more of the same.
enum AliDNSErrorCode: String, CaseIterable {
  case invalidAccessKeyID = "InvalidAccessKeyId"
  case signatureDoesNotMatch = "SignatureDoesNotMatch"
  case incompleteSignature = "IncompleteSignature"
  case invalidTimestamp = "InvalidTimeStamp"
  case forbidden = "Forbidden"
  case throttling = "Throttling"

  /// The code in a reply; nil without one, and with one that is not known. An answer has a status, and no code.
  init?(in reply: JSONValue) {
    guard let code = AliDNSErrorCode.text(in: reply) else { return nil }
    self.init(rawValue: String(code.prefix { $0 != "." }))
  }

  /// The text of the code; nil if the reply is no refusal.
  static func text(in reply: JSONValue) -> String? { reply["Status"] == nil ? reply["code"]?.text : nil }

  /// The failure. No name can provoke these codes.
  var failure: HTTPDNSFailure {
    switch self {
    case .invalidAccessKeyID, .signatureDoesNotMatch, .incompleteSignature: .authentication
    case .invalidTimestamp: .expired
    case .forbidden: .account
    case .throttling: .quota
    }
  }
}

/// The code in the body of a refusal, if it is a known one.
func aliDNSErrorCode(_ response: HTTPResponse) -> String? {
  guard response.body.count <= JSONLimit.octets else { return nil }
  return (try? withJSON(response.body, AliDNSErrorCode.init(in:)))?.rawValue
}

/// Passes the root of a reply's body to `read`, unless the reply is a refusal. The error code takes precedence over the
/// status; one that is not known concerns the question, since a name may have provoked it.
func withAliDNSReply<Value>(
  _ response: HTTPResponse, _ read: (JSONValue) throws(HTTPDNSFailure) -> Value
) throws(HTTPDNSFailure) -> Value {
  if response.status != 200, let code = try? withJSON(response.body, AliDNSErrorCode.init(in:)) { throw code.failure }
  try response.requireStatus(in: 200...200)
  try response.requireBody(.undocumentedJSON, limit: JSONLimit.octets)
  return try withJSON(response.body) { root throws(HTTPDNSFailure) in
    if AliDNSErrorCode.text(in: root) != nil { throw AliDNSErrorCode(in: root)?.failure ?? .name }
    return try read(root)
  }
}
