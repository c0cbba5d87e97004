// EMASError.swift -- the error codes of EMAS and the failure that each of them means.

import JSON

/// `code` in the body of an error. Both versions of the API share this list: the provider's clients understand every
/// code in both, and the tables in the documents are incomplete.
enum EMASErrorCode: String, ServiceErrorCode {
  case missingArgument = "MissingArgument"
  case tooManyHosts = "TooManyHosts"
  case sdnsNotSupported = "SdnsNotSupported"
  case serviceLevelDeny = "ServiceLevelDeny"
  case internalError = "InternalError"
  case invalidHost = "InvalidHost"
  case signatureExpired = "SignatureExpired"
  case invalidSignature = "InvalidSignature"
  case invalidDuration = "InvalidDuration"
  case unsignedInterfaceDisabled = "UnsignedInterfaceDisabled"
  case invalidAccount = "InvalidAccount"
  case accountNotExists = "AccountNotExists"
  case methodNotAllowed = "MethodNotAllowed"

  /// The code in a reply; nil without a code or with an undocumented one.
  init?(in reply: JSONValue) {
    // Nearly every reply of version 2 has this code; it is not an error.
    guard let code = reply["code"]?.text, code != "success" else { return nil }
    self.init(rawValue: code)
  }

  /// The failure that gives the same reaction as the provider's own SDK
  /// (github.com/aliyun/alibabacloud-httpdns-android-sdk).
  var failure: HTTPDNSFailure {
    switch self {
    // The SDK tries another server: this one may have another service level or another release.
    case .missingArgument, .tooManyHosts, .sdnsNotSupported, .serviceLevelDeny, .internalError: .fault
    case .invalidHost: .name
    // The expiry is too far ahead. Ours is always ten minutes ahead, so the clocks differ.
    case .signatureExpired, .invalidDuration: .expired
    case .invalidSignature: .authentication
    case .unsignedInterfaceDisabled: .unsigned
    case .invalidAccount, .accountNotExists: .account
    case .methodNotAllowed: .status(405)
    }
  }
}
