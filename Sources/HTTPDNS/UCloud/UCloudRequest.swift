// UCloudRequest.swift -- composes the signed requests of UCloud HTTPDNS.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage

/// An account's requests (github.com/UCloudDoc-Team/httpdns, sdk/api.md). The header's form, `MD5` before the digits,
/// is that of the vendor's SDKs.
struct UCloudRequest: Sendable {
  let account: Configuration.SecretAccount
  /// Bundle ID or package name.
  let appID: String?

  /// A GET of a resource of the account. `timestamp`, in seconds since 1970, is valid for a minute.
  ///
  /// - Parameter parameters: further parameters; their values need no encoding.
  func get(
    _ resource: String, _ parameters: [(name: String, value: String)] = [], unixTime: Int64
  ) -> HTTPRequest {
    var all = [(name: "timestamp", value: String(unixTime))] + parameters
    if let appID { all.append(("app_id", appID)) }
    var target = QueryTarget(path: "/\(PercentText.encode(account.id))/\(resource)")
    for parameter in all { target.add(given: parameter.name, encoding: parameter.value) }
    let field = HTTPField("Authorization", "MD5 \(signature(of: all))")
    return HTTPRequest(method: .get, target: target.text, fields: [field])
  }

  /// The lower-case hexadecimal MD5 of the values of all parameters, in the order of their names, and of the secret,
  /// joined by hyphens. Neither the path nor the names are covered.
  private func signature(of parameters: [(name: String, value: String)]) -> String {
    var message: [UInt8] = []
    message.reserveCapacity(256)
    for parameter in parameters.sorted(by: { $0.name < $1.name }) {
      message.append(parameter.value)
      message.append(UInt8(ascii: "-"))
    }
    message.append(contentsOf: account.secret.reveal)
    return Hexadecimal.encode(Digest.md5(message))
  }
}
