// BlockCipher.swift -- encrypts and decrypts names and replies, including the vector and the tag.

import Ciphers

/// A cipher with its key. Text has PKCS #7 padding, except with GCM, which needs none.
struct BlockCipher: Sendable, CustomStringConvertible, CustomReflectable {
  enum Mode: String, Sendable {
    /// DES in ECB mode.
    case des
    /// AES-128 in CBC mode: preceded by a 16-octet initialization vector.
    case cbc
    /// AES-128 in GCM mode: preceded by a 12-octet initialization vector, followed by a 16-octet tag.
    case gcm
  }

  let mode: Mode
  private let cipher: Ciphers.BlockCipher

  /// - Parameter key: octets; padded with zeros or cut to the length of the cipher's key.
  init(_ mode: Mode, key: [UInt8]) {
    self.mode = mode
    let kind: Ciphers.BlockCipher.Mode =
      switch mode {
      case .des: .desECB
      case .cbc: .aesCBC
      case .gcm: .aesGCM
      }
    let length = kind.keyLength
    cipher = Ciphers.BlockCipher(kind, key: Array((key + [UInt8](repeating: 0, count: length)).prefix(length)))
  }

  /// Only the mode, because the key is a secret.
  var description: String { mode.rawValue }
  var customMirror: Mirror { Mirror(self, children: ["mode": mode]) }

  /// Returns vector, ciphertext and tag.
  ///
  /// - Parameter vector: for test vectors; random by default.
  func seal(_ text: [UInt8], vector: [UInt8]? = nil) -> [UInt8] {
    let vector = vector ?? RandomOctets.generate(count: cipher.mode.vectorLength)
    return vector + cipher.encrypt(text, vector: vector)
  }

  /// Returns the plaintext; nil if this key did not encrypt the octets, as far as the mode detects that.
  func open(_ octets: [UInt8]) -> [UInt8]? {
    let length = cipher.mode.vectorLength
    guard octets.count > length else { return nil }
    return cipher.decrypt(octets[length...], vector: Array(octets[..<length]))
  }
}
