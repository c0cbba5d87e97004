// UCloudRequest.swift -- composes the signed requests of UCloud HTTPDNS.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage

/// An account's requests (github.com/UCloudDoc-Team/httpdns, sdk/api.md). The header's form, `MD5` before the digits,
/// is that of the vendor's SDKs.
struct UCloudRequest: Sendable {
  private let secret: Secret
  private let path: String
  /// Bundle ID or package name.
  private let appID: String?

  init(account: Configuration.SecretAccount, appID: String?) {
    secret = account.secret
    path = "/\(PercentText.encode(account.id))/"
    self.appID = appID
  }

  /// A GET of a resource of the account. `timestamp`, in seconds since 1970, is valid for a minute.
  ///
  /// - Parameters:
  ///   - host: a plain name.
  ///   - type: 4 or 6.
  func get(_ resource: String, host: String? = nil, type: String? = nil, unixTime: Int64) -> HTTPRequest {
    let timestamp = String(unixTime)
    var target = QueryTarget(path: path + resource)
    target.add("timestamp", plain: timestamp)
    if let host { target.add("host", plain: host) }
    if let type { target.add("type", plain: type) }
    if let appID { target.add("app_id", encoding: appID) }
    let field = HTTPField("Authorization", "MD5 \(signature(of: [appID, host, timestamp, type]))")
    return HTTPRequest(method: .get, target: target.text, fields: [field])
  }

  /// The lower-case hexadecimal MD5 of the values of all parameters, in the order of their names, and of the secret,
  /// joined by hyphens. Neither the path nor the names are covered.
  func signature(of values: [String?]) -> String {
    var message: [UInt8] = []
    message.reserveCapacity(256)
    for case let value? in values {
      message.append(value)
      message.append(UInt8(ascii: "-"))
    }
    message.append(contentsOf: secret.reveal)
    return Hexadecimal.encode(Digest.md5(message))
  }
}
