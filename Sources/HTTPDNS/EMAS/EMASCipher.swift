// EMASCipher.swift -- how version 2 of the EMAS API encrypts names in requests and answers in replies.

import Ciphers

/// Why a key of an EMAS account cannot be used. Neither case carries any of the key.
public enum EMASKeyError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The secret key is not a text of pairs of hexadecimal digits.
  case secretKey
  /// The AES secret key is not 32 hexadecimal digits.
  case aesSecretKey

  /// One line: what is allowed.
  public var description: String {
    switch self {
    case .secretKey: "the secret key must consist of hexadecimal digits, an even number of them"
    case .aesSecretKey: "the AES secret key must be 32 hexadecimal digits"
    }
  }
}

/// AES-128 around the part of a request that says what is asked, and around the part of a reply that answers.
struct EMASCipher: Sendable {
  /// `m` and `mode` where nothing is encrypted.
  static let none: UInt32 = 0

  /// `m` in a request and `mode` in a reply.
  var number: UInt32 { cipher.mode == .aesGCM ? 2 : 1 }

  private let cipher: BlockCipher
  private let random: @Sendable (Int) -> [UInt8]

  /// A cipher with a key of 32 hexadecimal digits.
  init(_ mode: BlockCipher.Mode, key: Secret, random: @escaping @Sendable (Int) -> [UInt8]) throws(EMASKeyError) {
    guard let octets = Hexadecimal.decode(key.reveal), octets.count == mode.keyLength else { throw .aesSecretKey }
    cipher = BlockCipher(mode, key: octets)
    self.random = random
  }

  /// `enc`: hexadecimal of a new initialisation vector and the ciphertext.
  func seal(_ text: [UInt8]) -> String {
    let vector = random(cipher.mode.vectorLength)
    return Hexadecimal.encode(vector + cipher.encrypt(text, vector: vector))
  }

  /// The plaintext of `data`: Base 64 of an initialisation vector and the ciphertext.
  ///
  /// - Throws: `.unreadable(.cipher)` where it is anything else, or was made with another key.
  func open(_ data: JSONValue) throws(HTTPDNSFailure) -> [UInt8] {
    guard let text = data.octets else { throw .unreadable(.shape) }
    let length = cipher.mode.vectorLength
    guard let octets = Base64.decode(text), octets.count > length,
      let plaintext = cipher.decrypt(octets[length...], vector: Array(octets[..<length]))
    else { throw .unreadable(.cipher) }
    return plaintext
  }
}
