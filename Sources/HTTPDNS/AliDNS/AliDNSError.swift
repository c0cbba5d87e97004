// AliDNSError.swift -- the error codes of Alibaba Cloud DNS and the failure that each of them means.

import JSON

/// `code` in the body of a refusal. The provider's client looks at that alone, whatever the status
/// (github.com/aliyun/alibaba-pdns-sdk-c); the codes are those of all APIs of Alibaba Cloud
/// (alibabacloud.com/help/en/sdk/developer-reference/common-error-codes). What follows a full stop says more of the same.
enum AliDNSErrorCode: String, CaseIterable, ServiceErrorCode {
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

  /// A code that is not known concerns the question, since a name may have provoked it.
  static func failure(in reply: JSONValue) -> HTTPDNSFailure? {
    text(in: reply).map { _ in AliDNSErrorCode(in: reply)?.failure ?? .name }
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
