// EMASSignature.swift -- computes and checks the signatures of EMAS's three kinds of call.

import Ciphers
import DNSWire

extension EMASAccount {
  /// v1: the lower-case hexadecimal MD5 of the names as sent, the secret and the expiry, joined by hyphens.
  func version1Signature(host: [UInt8], expiry: [UInt8]) -> String {
    Hexadecimal.encode(Digest.md5(host + Array("-\(secret)-".utf8) + expiry))
  }

  /// The scheduling call: its older document and one SDK use MD5, the newer document uses HMAC-MD5.
  func scheduleSignatures(nonce: [UInt8], time: [UInt8]) -> [String] {
    let text = nonce + Array("-\(secret)-".utf8) + time
    return [Digest.md5(text), hmacMD5(text, key: Array(secret.utf8))].map { Hexadecimal.encode($0) }
  }

  /// v2: HMAC-SHA256 of the signed parameters that have a value, sorted by name; nil if the secret is not hexadecimal.
  func version2Signature(_ parameters: Parameters) -> String? {
    guard let key = Hexadecimal.decode(secret) else { return nil }
    let isSealed = parameters.octets("enc")?.isEmpty == false
    let outer: Set = ["id", "m", "exp", "v", "enc"]
    let inner: Set = ["dn", "q", "cip", "tags"]
    let signed = parameters.pairs.filter { pair in
      guard !pair.value.isEmpty else { return false }
      return outer.contains(pair.name) || !isSealed && (inner.contains(pair.name) || pair.name.hasPrefix("sdns-"))
    }
    let sorted = signed.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    let text = sorted.map { Array("\($0.name)=".utf8) + $0.value }.joined(separator: [UInt8(ascii: "&")])
    return Hexadecimal.encode(HMACSHA256(key: key).code(of: Array(text)))
  }
}

extension Service {
  /// Maximum time until v1's expiry, in seconds.
  static let emasLongestDuration: Int64 = 86_400
  /// Accepted seconds of a scheduling call's time relative to now: the widest range in the two documents.
  static let emasScheduleWindow: ClosedRange<Int64> = -150...300

  /// Checks `t` and `s` of v1; true if they are valid, nil if the account has no secret.
  func verifyEMASVersion1(_ parameters: Parameters, host: [UInt8], now: Int64) throws(EMASError) -> Bool? {
    guard let time = parameters.octets("t"), let signature = parameters["s"] else { throw .missingArgument }
    guard !emas.secret.isEmpty else { return nil }
    guard let expiry = secondsText(time) else { throw .invalidDuration }
    guard signature == emas.version1Signature(host: host, expiry: time) else { throw .invalidSignature }
    guard expiry >= now else { throw .signatureExpired }
    guard expiry - now <= Service.emasLongestDuration else { throw .invalidDuration }
    return true
  }

  /// Checks `exp` and `s` of v2; nil without a signature, or if the account has no secret.
  func verifyEMASVersion2(_ parameters: Parameters, now: Int64) throws(EMASError) -> Bool? {
    guard let signature = parameters["s"], !signature.isEmpty else {
      guard !options.emas.requiresSignature else { throw .unsignedInterfaceDisabled }
      return nil
    }
    guard let time = parameters.octets("exp"), !time.isEmpty else { throw .missingArgument }
    guard !emas.secret.isEmpty else { return nil }
    guard signature == emas.version2Signature(parameters), let expiry = secondsText(time) else {
      throw .invalidSignature
    }
    guard expiry >= now else { throw .signatureExpired }
    return true
  }

  /// Checks `n`, `t` and `s` of a scheduling call; nil without a signature, or if the account has no secret.
  func verifyEMASSchedule(_ parameters: Parameters, now: Int64) throws(EMASError) -> Bool? {
    guard let signature = parameters["s"], !emas.secret.isEmpty else { return nil }
    guard let nonce = parameters.octets("n"), let time = parameters.octets("t") else { throw .missingArgument }
    guard (8...16).contains(nonce.count), nonce.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
      let seconds = secondsText(time),
      emas.scheduleSignatures(nonce: nonce, time: time).contains(signature)
    else { throw .invalidSignature }
    let (ahead, isFar) = seconds.subtractingReportingOverflow(now)
    guard !isFar, Service.emasScheduleWindow.contains(ahead) else { throw .signatureExpired }
    return true
  }

  /// Throws unless the account in the path is the simulated one: `AccountNotExists` for another number,
  /// `InvalidAccount` for any other text.
  func checkEMASAccount(_ account: String) throws(EMASError) {
    guard account != emas.identifier else { return }
    throw account.utf8.allSatisfy { $0 &- 48 < 10 } ? .accountNotExists : .invalidAccount
  }
}
