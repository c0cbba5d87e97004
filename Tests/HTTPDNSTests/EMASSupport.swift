// EMASSupport.swift -- dialects, vectors and replies that the tests of EMAS share.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage

@testable import HTTPDNS

/// The parts of Data/provider_vectors.json that these tests read.
struct EMASVectors: Decodable {
  struct V1Signature: Decodable {
    let host, secret, t, s, path: String
  }
  struct Published: Decodable {
    let string, s: String
  }
  struct V1Signatures: Decodable {
    let vectors: [V1Signature]
    let published: [Published]
  }
  struct V2Signature: Decodable {
    let `case`: String
    let secret_key_hex, string_to_sign, s, path: String
    let params: [String: String]?
    let aes_secret_key_hex, iv_hex, plain_json, enc_hex: String?
  }
  struct V2Signatures: Decodable {
    let vectors: [V2Signature]
  }
  struct Body: Decodable {
    let `case`: String
    let http: Int
    let body: String
    let aes_secret_key_hex: String?
    let plain_data: String?
  }
  struct ScheduleBody: Decodable {
    let http: Int
    let body: String
  }
  struct EMAS: Decodable {
    let v1_sign: V1Signatures
    let v2_sign: V2Signatures
    let v1_responses, v2_responses: [Body]
    let ss_response: ScheduleBody
  }
  struct SelfBuilt: Decodable {
    let body, disabled_body: String
  }
  let emas: EMAS
  let selfbuilt: SelfBuilt

  static let all = vectors(EMASVectors.self, in: "provider_vectors.json")
}

let emas = EMASDialect(accountID: "100000", secretKey: Secret("EmasSecret01"), isEncrypted: true)
let emasKey = Secret("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
let emasAESKey = Secret("00112233445566778899aabbccddeeff")
let emasV2 = emasV2Dialect()

/// A dialect of version 2 whose initialisation vectors count from 0.
func emasV2Dialect(
  aes: Configuration.AESMode? = nil, secretKey: Secret? = emasKey, isEncrypted: Bool = true
) -> EMASv2Dialect {
  try! EMASv2Dialect(
    accountID: "100000", secretKey: secretKey, aesSecretKey: aes.map { _ in emasAESKey }, aesMode: aes ?? .cbc,
    isEncrypted: isEncrypted, random: { (0..<$0).map { UInt8($0) } })
}

func batch(_ names: [String], _ types: [RecordType] = [.a], subnet: String? = nil) -> QuestionBatch {
  QuestionBatch(
    names: names.map { DomainName(text: $0)! }, types: types, clientSubnet: subnet.map { IPPrefix(text: $0)! })
}

/// What a reply says to each question of a batch; a failure of the whole is that of each.
func outcomes(
  _ batch: QuestionBatch, _ response: HTTPResponse, _ dialect: any BatchDialect = emas
) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
  do throws(HTTPDNSFailure) {
    return try dialect.answers(to: batch, from: response)
  } catch {
    return batch.questions.map { _ in .failure(error) }
  }
}

/// A positive answer.
func positive(_ records: ResourceRecord...) -> Result<HTTPDNSAnswer, HTTPDNSFailure> {
  .success(HTTPDNSAnswer(responseCode: .noError, answers: records))
}

/// An answer without records.
func noData(isAmbiguous: Bool = true) -> Result<HTTPDNSAnswer, HTTPDNSFailure> {
  .success(HTTPDNSAnswer(responseCode: .noError, isNegative: true, isEmptyAmbiguous: isAmbiguous))
}

/// A body of version 2 with those answers, encrypted where there is a mode.
func v2Body(_ answers: String, aes: Configuration.AESMode? = nil) -> String {
  let data = #"{"cip":"203.0.113.9","answers":[\#(answers)]}"#
  guard let aes else { return #"{"code":"success","mode":"0","data":\#(data)}"# }
  let mode: BlockCipher.Mode = aes == .gcm ? .aesGCM : .aesCBC
  let vector = RandomOctets.generate(count: mode.vectorLength)
  let cipher = BlockCipher(mode, key: Hexadecimal.decode(emasAESKey.reveal)!)
  let sealed = Base64.encode(vector + cipher.encrypt(Array(data.utf8), vector: vector))
  return #"{"code":"success","mode":"\#(aes == .gcm ? 2 : 1)","data":"\#(sealed)"}"#
}

/// The parameters of a request target in any order.
func parameters(_ target: String) -> Set<Substring> {
  Set(target.drop { $0 != "?" }.dropFirst().split(separator: "&"))
}
