// EMAS.swift -- what both versions of the EMAS API have in common: limits, the words for a batch, the price.

import DNSWire

/// Facts of the service, whatever the version of its API.
enum EMAS {
  /// Names that one request may carry.
  static let mostNames = 5

  /// How long a signature holds, seconds, as in the provider's mobile programs; the service takes up to a day.
  static let signatureLifetime: Int64 = 600

  /// A and AAAA; names of letters, digits, hyphens and underscores, but not the root.
  static func serves(_ question: HTTPDNSQuestion) -> Bool {
    (question.type == .a || question.type == .aaaa) && question.name.isPlain && !question.name.isRoot
  }

  /// What is charged: each name and family to which addresses came back, more for each kind of encryption.
  ///
  /// - Parameters:
  ///   - isEncrypted: whether transfers go over HTTPS.
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

  /// The address that the answers shall suit, the first one of the subnet; nil where there is none, or none shall be
  /// revealed (RFC 7871 section 7.1.2): the service has no word for that, and sees what any server sees of its client.
  var emasClientAddress: String? {
    clientSubnet.flatMap { $0.length == 0 ? nil : $0.address.description }
  }
}
