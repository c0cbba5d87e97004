// BlockCipher.swift -- the ciphers in which names and replies travel, with what stands in front of and behind them.

import CCrypto

/// A cipher with its key. Text is padded as PKCS #7 has it, except with GCM, which pads nothing.
struct BlockCipher: Sendable, CustomStringConvertible, CustomReflectable {
  enum Mode: String, Sendable {
    /// DES, every block for itself.
    case des
    /// AES-128 in CBC mode: 16 octets of initialization vector in front.
    case cbc
    /// AES-128 in GCM mode: 12 octets of initialization vector in front, 16 of tag behind.
    case gcm
  }

  let mode: Mode
  private let key: [UInt8]

  /// A cipher.
  ///
  /// - Parameter key: octets; what is missing is zero, what is too much is left away.
  init(_ mode: Mode, key: [UInt8]) {
    self.mode = mode
    let length = mode == .des ? 8 : 16
    let whole = Array((key + [UInt8](repeating: 0, count: length)).prefix(length))
    // libcrypto keeps single DES in a provider that is not loaded; triple DES with one key three times is the same.
    self.key = mode == .des ? whole + whole + whole : whole
  }

  /// The mode alone: the key is a secret.
  var description: String { mode.rawValue }
  var customMirror: Mirror { Mirror(self, children: ["mode": mode]) }

  /// Vector, text in cipher, tag.
  ///
  /// - Parameter vector: for vectors of tests; otherwise random.
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

  /// The text; nil for octets that this key has not sealed, as far as the mode lets it be seen.
  func open(_ octets: [UInt8]) -> [UInt8]? {
    guard octets.count > vectorLength + tagLength || mode == .gcm && octets.count == vectorLength + tagLength else {
      return nil
    }
    let context = EVP_CIPHER_CTX_new()
    defer {
      EVP_CIPHER_CTX_free(context)
      // What is left in the thread's queue of errors would be taken for one of TLS.
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

/// Octets that nobody can guess.
private func randomOctets(_ count: Int) -> [UInt8] {
  var octets = [UInt8](repeating: 0, count: count)
  guard count == 0 || RAND_bytes(&octets, Int32(count)) == 1 else { preconditionFailure("libcrypto has no randomness") }
  return octets
}
