// EMAS.swift -- what both versions of the EMAS API share: limits, the parameters of a batch, the price.

import DNSWire

/// Facts of the service that hold for every version of its API.
enum EMAS {
  /// Maximum names in one request.
  static let mostNames = 5

  /// Lifetime of a signature in seconds, as in the provider's mobile SDKs; the service accepts up to a day.
  static let signatureLifetime: Int64 = 600

  /// A parameter before any encoding.
  typealias Parameter = (name: String, value: String)

  /// Parameters in the order in which they are sent.
  static func sorted(_ parameters: [String: String]) -> [Parameter] {
    parameters.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  /// The price: per name and family that addresses were returned for, and higher with each kind of encryption.
  ///
  /// - Parameters:
  ///   - isEncrypted: whether transfers use HTTPS.
  ///   - hasCipher: whether names and answers are encrypted within the transfer.
  static func billing(isEncrypted: Bool, hasCipher: Bool = false) -> Billing {
    let units = isEncrypted ? (hasCipher ? 8 : 5) : (hasCipher ? 3 : 1)
    return Billing(
      unitsPerTransfer: 0, unitsPerAnswer: units,
      source: "alibabacloud.com/help/en/httpdns/latest/billing: HTTP 1, with AES 3, HTTPS 5, with AES 8, for each "
        + "name and address family that addresses came back for")
  }
}

extension QuestionBatch {
  /// The families: `4`, `6` or `4,6`.
  var emasFamilies: String { types.count > 1 ? "4,6" : types[0] == .a ? "4" : "6" }
}
