// CipherContext.swift -- libcrypto's cipher context for one direction, with its key schedule.

import CCrypto

/// A cipher that encrypts or decrypts one text after another. Each text starts with its own initialisation vector, so no state
/// carries over, also not from a refused text. libcrypto wipes the context when it is freed.
struct CipherContext: ~Copyable {
  private static let tagLength = 16

  private let context: OpaquePointer
  private let hasTag: Bool

  /// The key must have the mode's length.
  init(_ mode: BlockCipher.Mode, key: [UInt8], encrypts: Bool) {
    let algorithm = EVP_CIPHER_fetch(nil, mode.algorithm, nil)
    defer { EVP_CIPHER_free(algorithm) }
    guard let context = EVP_CIPHER_CTX_new() else { preconditionFailure("libcrypto has no memory") }
    self.context = context
    hasTag = mode == .aesGCM
    // libcrypto's default provider has no single DES; triple DES with the same key three times is equivalent.
    let key = mode == .desECB ? key + key + key : key
    let isKeyed = EVP_CipherInit_ex2(context, algorithm, key, nil, encrypts ? 1 : 0, nil) == 1
    precondition(isKeyed, "libcrypto has no \(mode.algorithm)")
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  /// The ciphertext, in GCM mode followed by its tag; nil if libcrypto fails.
  mutating func encrypt(_ plaintext: [UInt8], vector: [UInt8]) -> [UInt8]? { begin(vector) ? run(plaintext[...]) : nil }

  /// The plaintext; nil if length, padding or tag is wrong.
  mutating func decrypt(_ ciphertext: ArraySlice<UInt8>, vector: [UInt8]) -> [UInt8]? {
    guard begin(vector) else { return nil }
    guard hasTag else { return run(ciphertext) }
    var tag = Array(ciphertext.suffix(CipherContext.tagLength))
    guard tag.count == CipherContext.tagLength,
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), &tag) == 1
    else { return nil }
    return run(ciphertext.dropLast(CipherContext.tagLength))
  }

  /// Starts a text with the same key and another initialisation vector.
  private func begin(_ vector: [UInt8]) -> Bool {
    EVP_CipherInit_ex2(context, nil, nil, vector.isEmpty ? [0] : vector, -1, nil) == 1
  }

  /// The whole output; nil if padding or tag is wrong.
  private func run(_ input: ArraySlice<UInt8>) -> [UInt8]? {
    // Room for a block of padding or a tag.
    var output = [UInt8](repeating: 0, count: input.count + CipherContext.tagLength)
    let written = output.withUnsafeMutableBufferPointer { output -> Int? in
      var (written, last) = (Int32(0), Int32(0))
      let isDone =
        input.withUnsafeBufferPointer {
          EVP_CipherUpdate(context, output.baseAddress, &written, $0.baseAddress, Int32($0.count)) == 1
        } && EVP_CipherFinal_ex(context, output.baseAddress! + Int(written), &last) == 1
      guard isDone else { return nil }
      let count = Int(written + last)
      guard hasTag, EVP_CIPHER_CTX_is_encrypting(context) == 1 else { return count }
      let tag = output.baseAddress! + count
      guard EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(CipherContext.tagLength), tag) == 1 else {
        return nil
      }
      return count + CipherContext.tagLength
    }
    guard let written else { return nil }
    output.removeLast(output.count - written)
    return output
  }
}

extension BlockCipher.Mode {
  /// The name in libcrypto.
  fileprivate var algorithm: String {
    switch self {
    case .aesCBC: "AES-128-CBC"
    case .aesGCM: "AES-128-GCM"
    case .desECB: "DES-EDE3-ECB"
    }
  }
}
