// Seal.swift -- AES-256-GCM with associated data, for values that leave the machine.

import CCrypto

/// Seals octets with a key: an attacker without the key can neither read or change them, nor use them with other
/// associated data (AES-256-GCM, NIST SP 800-38D). Stateless; any thread.
public enum Seal {
  /// The length of a key in octets.
  public static let keyLength = 32
  /// The octets that sealing adds: the nonce before the ciphertext and the tag after it.
  public static let overhead = nonceLength + tagLength

  private static let nonceLength = 12
  private static let tagLength = 16

  /// Returns a random nonce, the ciphertext and its tag.
  ///
  /// A key may seal 2³² texts: beyond that two of them may get the same nonce.
  ///
  /// - Precondition: the key has `keyLength` octets.
  /// - Complexity: O(*n*) in the octets.
  public static func seal(_ plaintext: [UInt8], key: [UInt8], associated: [UInt8]) -> [UInt8] {
    precondition(key.count == keyLength)
    let nonce = RandomOctets.generate(count: nonceLength)
    var tag = [UInt8](repeating: 0, count: tagLength)
    let context = Context(key: key, nonce: nonce, seals: true)
    guard let ciphertext = context.run(plaintext[...], associated: associated, tag: &tag) else {
      preconditionFailure("libcrypto refused to encrypt")
    }
    return nonce + ciphertext + tag
  }

  /// Returns the plaintext; nil if it was not sealed with this key and these associated data.
  ///
  /// - Precondition: the key has `keyLength` octets.
  /// - Complexity: O(*n*) in the octets.
  public static func open(_ sealed: ArraySlice<UInt8>, key: [UInt8], associated: [UInt8]) -> [UInt8]? {
    precondition(key.count == keyLength)
    guard sealed.count >= overhead else { return nil }
    var tag = Array(sealed.suffix(tagLength))
    // Otherwise the next TLS operation on this thread would report libcrypto's queued error as its own.
    ERR_set_mark()
    defer { ERR_pop_to_mark() }
    let context = Context(key: key, nonce: Array(sealed.prefix(nonceLength)), seals: false)
    return context.run(sealed.dropFirst(nonceLength).dropLast(tagLength), associated: associated, tag: &tag)
  }
}

/// libcrypto's context for one text, which it wipes when it is freed.
private struct Context: ~Copyable {
  private let context: OpaquePointer
  private let seals: Bool

  init(key: [UInt8], nonce: [UInt8], seals: Bool) {
    guard let context = EVP_CIPHER_CTX_new() else { preconditionFailure("libcrypto has no memory") }
    self.context = context
    self.seals = seals
    let isReady = EVP_CipherInit_ex2(context, EVP_aes_256_gcm(), key, nonce, seals ? 1 : 0, nil) == 1
    precondition(isReady, "libcrypto has no AES-256-GCM")
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  /// The other text; nil if the tag is wrong. Sealing sets the tag.
  func run(_ input: ArraySlice<UInt8>, associated: [UInt8], tag: inout [UInt8]) -> [UInt8]? {
    var count: Int32 = 0
    guard EVP_CipherUpdate(context, nil, &count, associated, Int32(associated.count)) == 1 else { return nil }
    if !seals, EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), &tag) != 1 { return nil }
    var output = [UInt8](repeating: 0, count: input.count)
    let isDone = output.withUnsafeMutableBufferPointer { output in
      var none: UInt8 = 0
      return input.withUnsafeBufferPointer { input in
        // A null pointer in the place of the output would mean associated data.
        withUnsafeMutablePointer(to: &none) { none in
          EVP_CipherUpdate(context, output.baseAddress ?? none, &count, input.baseAddress, Int32(input.count)) == 1
            && EVP_CipherFinal_ex(context, none, &count) == 1
        }
      }
    }
    guard isDone else { return nil }
    if seals, EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tag.count), &tag) != 1 { return nil }
    return output
  }
}
