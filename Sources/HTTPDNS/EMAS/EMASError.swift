// EMASError.swift -- the error codes of EMAS, and what is to be done about each.

/// `code` of an error's body. The sets of both versions of the API are one here: clients in the field understand every
/// code in both, and the tables in the documents are not complete.
enum EMASErrorCode: String {
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

  /// The code that a reply has; nil where it has none, or one that no document names.
  init?(in reply: JSONValue) {
    // Nearly every reply of version 2 says so, which need not be looked up among the errors.
    guard let code = reply["code"]?.text, code != "success" else { return nil }
    self.init(rawValue: code)
  }

  /// The failure with the reaction of the provider's own programs (github.com/aliyun/alibabacloud-httpdns-android-sdk).
  func failure(status: Int) -> HTTPDNSFailure {
    switch self {
    // They ask another server: this one may be of another service level, or of another release.
    case .missingArgument, .tooManyHosts, .sdnsNotSupported, .serviceLevelDeny, .internalError: .server(status: status)
    case .invalidHost: .name
    // An expiry too far ahead: ours is always ten minutes ahead, so the clocks differ.
    case .signatureExpired, .invalidDuration: .expired
    case .invalidSignature: .authentication
    case .unsignedInterfaceDisabled, .invalidAccount, .accountNotExists: .account
    case .methodNotAllowed: .badParameter
    }
  }
}

/// The code of an error's body, where a document names it.
func emasErrorCode(_ response: TransferResponse) -> String? {
  guard response.body.count <= JSONLimit.octets else { return nil }
  return (try? withJSON(response.body, EMASErrorCode.init(in:)))?.rawValue
}

/// Hands the root of a reply's body to `read`, unless the reply says that something is wrong. What the body says counts
/// before the status; a code that is not known says nothing.
func withEMASReply<Value>(
  _ response: TransferResponse, _ read: (JSONValue) throws(HTTPDNSFailure) -> Value
) throws(HTTPDNSFailure) -> Value {
  if response.status != 200, let code = try? withJSON(response.body, EMASErrorCode.init(in:)) {
    throw code.failure(status: response.status)
  }
  try response.requireStatus(in: 200...200)
  try response.requireBody(.undocumentedJSON, limit: JSONLimit.octets)
  return try withJSON(response.body) { root throws(HTTPDNSFailure) in
    if let code = EMASErrorCode(in: root) { throw code.failure(status: response.status) }
    return try read(root)
  }
}
