// EMASCipher.swift -- encrypts names in requests and decrypts answers in replies of version 2 of the EMAS API.

import Ciphers
import DNSWire
import JSON

/// The reason why a key of an EMAS account is unusable. It contains no part of the key.
public enum EMASKeyError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The secret key does not consist of pairs of hexadecimal digits.
  case secretKey
  /// The AES secret key is not 32 hexadecimal digits.
  case aesSecretKey

  /// One line that states the allowed form.
  public var description: String {
    switch self {
    case .secretKey: "the secret key must consist of hexadecimal digits, an even number of them"
    case .aesSecretKey: "the AES secret key must be 32 hexadecimal digits"
    }
  }
}

/// AES-128 for the part of a request that has the question, and for the part of a reply that has the answer.
struct EMASCipher: Sendable {
  /// `m` and `mode` without encryption.
  static let none: UInt32 = 0

  /// `m` in a request and `mode` in a reply.
  var number: UInt32 { cipher.mode == .aesGCM ? 2 : 1 }

  private let cipher: BlockCipher
  private let random: @Sendable (Int) -> [UInt8]

  /// Creates a cipher with a key of 32 hexadecimal digits.
  init(_ mode: BlockCipher.Mode, key: Secret, random: @escaping @Sendable (Int) -> [UInt8]) throws(EMASKeyError) {
    guard let octets = Hexadecimal.decode(key.reveal), octets.count == mode.keyLength else { throw .aesSecretKey }
    cipher = BlockCipher(mode, key: octets)
    self.random = random
  }

  /// Returns `enc`: the hexadecimal text of a new initialisation vector and the ciphertext.
  func seal(_ text: [UInt8]) -> String {
    Hexadecimal.encode(cipher.seal(text, vector: random(cipher.mode.vectorLength)))
  }

  /// Returns the plaintext of `data`: the Base64 text of an initialisation vector and the ciphertext.
  ///
  /// - Throws: `.unreadable(.shape("data"))` if it is not a string, `.unreadable(.cipher)` if it is not such a text or the key
  ///   does not decrypt it.
  func open(_ data: JSONValue) throws(HTTPDNSFailure) -> [UInt8] {
    guard let text = data.octets else { throw .unreadable(.shape("data")) }
    guard let plaintext = Base64.decode(text).flatMap(cipher.open) else { throw .unreadable(.cipher) }
    return plaintext
  }
}
