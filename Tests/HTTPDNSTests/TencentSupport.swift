// TencentSupport.swift -- the vectors of Tencent's dialect, and short ways to ask it.

import Ciphers
import DNSWire
import HTTPDNS
import HTTPMessage

/// What the vectors' file has for Tencent Cloud HTTPDNS.
struct TencentVectors: Decodable {
  struct Request: Decodable {
    let `case`, path: String
  }
  struct Reply: Decodable {
    let `case`, plain, des_hex, aes_hex: String
  }
  struct Tencent: Decodable {
    let requests: [Request]
    let response_plaintexts: [Reply]
  }
  let tencent: Tencent

  static let all = vectors(TencentVectors.self, in: "provider_vectors.json").tencent
}

/// The vectors' accounts.
enum Tencent {
  static let https = TencentDialect(account: .https(token: Secret("123456789"), id: "1234"))
  /// Its initialisation vectors are the vectors' `00..0f`.
  static let aes = TencentDialect(account: .aes(id: "1234", key: Secret("AesKey0123456789"))) { count in
    Array(0..<UInt8(count))
  }
  static let des = TencentDialect(account: .des(id: "1234", key: Secret("DesKey01")))

  static let desCipher = BlockCipher(.desECB, key: Array("DesKey01".utf8))
  static let aesCipher = BlockCipher(.aesCBC, key: Array("AesKey0123456789".utf8))

  static func batch(_ names: [String], _ types: [RecordType] = [.a], subnet: String? = nil) -> QuestionBatch {
    QuestionBatch(
      names: names.map { DomainName(text: $0)! }, types: types, clientSubnet: subnet.map { IPPrefix(text: $0)! })
  }

  /// What a reply in clear text says to a batch.
  static func read(
    _ text: String, to batch: QuestionBatch
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    try https.answers(to: batch, from: body(text))
  }

  static func body(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, body: Array(text.utf8))
  }
}

extension Result where Success == HTTPDNSAnswer, Failure == HTTPDNSFailure {
  /// The records; nil for a failure.
  var records: [ResourceRecord]? { try? get().answers }

  /// The failure; nil for an answer.
  var refusal: HTTPDNSFailure? {
    if case .failure(let failure) = self { failure } else { nil }
  }

  /// Whether this is an answer without records that may mean anything.
  var isAmbiguouslyEmpty: Bool {
    guard case .success(let answer) = self else { return false }
    return answer.responseCode == .noError && answer.isNegative && answer.isEmptyAmbiguous && answer.answers.isEmpty
      && answer.authorities.isEmpty
  }
}
