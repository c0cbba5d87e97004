// BlockCipher.swift -- encrypts and decrypts names and replies, including the vector and the tag.

import CCrypto

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
  private let key: [UInt8]

  /// - Parameter key: octets; padded with zeros or cut to the length of the cipher's key.
  init(_ mode: Mode, key: [UInt8]) {
    self.mode = mode
    let length = mode == .des ? 8 : 16
    let whole = Array((key + [UInt8](repeating: 0, count: length)).prefix(length))
    // libcrypto has single DES only in a provider that is not loaded. Triple DES with three equal keys is the same.
    self.key = mode == .des ? whole + whole + whole : whole
  }

  /// Only the mode, because the key is a secret.
  var description: String { mode.rawValue }
  var customMirror: Mirror { Mirror(self, children: ["mode": mode]) }

  /// Returns vector, ciphertext and tag.
  ///
  /// - Parameter vector: for test vectors; random by default.
  func seal(_ text: [UInt8], vector: [UInt8]? = nil) -> [UInt8] {
    let vector = vector ?? randomOctets(vectorLength)
    let context = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(context) }
    var tag = [UInt8](repeating: 0, count: tagLength)
    guard EVP_EncryptInit_ex(context, cipher, nil, key, vector) == 1,
      let sealed = run(text, { EVP_EncryptUpdate(context, $0, $1, $2, $3) }, { EVP_EncryptFinal_ex(context, $0, $1) }),
      tag.isEmpty || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagLength), &tag) == 1
    else { preconditionFailure("libcrypto has no \(mode)") }
    return vector + sealed + tag
  }

  /// Returns the plaintext; nil if this key did not encrypt the octets, as far as the mode detects that.
  func open(_ octets: [UInt8]) -> [UInt8]? {
    guard octets.count > vectorLength + tagLength || mode == .gcm && octets.count == vectorLength + tagLength else {
      return nil
    }
    let context = EVP_CIPHER_CTX_new()
    defer {
      EVP_CIPHER_CTX_free(context)
      // A remaining error in the thread's queue would be attributed to TLS.
      ERR_clear_error()
    }
    var tag = Array(octets.suffix(tagLength))
    let sealed = Array(octets.dropFirst(vectorLength).dropLast(tagLength))
    guard EVP_DecryptInit_ex(context, cipher, nil, key, Array(octets.prefix(vectorLength))) == 1,
      tag.isEmpty || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagLength), &tag) == 1
    else { return nil }
    return run(sealed, { EVP_DecryptUpdate(context, $0, $1, $2, $3) }, { EVP_DecryptFinal_ex(context, $0, $1) })
  }

  private var vectorLength: Int {
    switch mode {
    case .des: 0
    case .cbc: 16
    case .gcm: 12
    }
  }

  private var tagLength: Int { mode == .gcm ? 16 : 0 }

  private var cipher: OpaquePointer? {
    switch mode {
    case .des: EVP_des_ede3_ecb()
    case .cbc: EVP_aes_128_cbc()
    case .gcm: EVP_aes_128_gcm()
    }
  }

  private typealias Update = (UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>, [UInt8], Int32) -> Int32
  private typealias Finish = (UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>) -> Int32

  private func run(_ input: [UInt8], _ update: Update, _ finish: Finish) -> [UInt8]? {
    var isDone = false
    let output = [UInt8](unsafeUninitializedCapacity: input.count + 16) { buffer, count in
      var taken: Int32 = 0
      var last: Int32 = 0
      guard update(buffer.baseAddress, &taken, input, Int32(input.count)) == 1,
        finish(buffer.baseAddress?.advanced(by: Int(taken)), &last) == 1
      else { return }
      count = Int(taken + last)
      isDone = true
    }
    return isDone ? output : nil
  }
}

/// Unpredictable octets.
private func randomOctets(_ count: Int) -> [UInt8] {
  var octets = [UInt8](repeating: 0, count: count)
  guard count == 0 || RAND_bytes(&octets, Int32(count)) == 1 else { preconditionFailure("libcrypto has no randomness") }
  return octets
}
