// BlockCipher.swift -- the ciphers that providers encrypt names and answers with: AES-128 in CBC and GCM, DES in ECB.

import CCrypto

/// A block cipher in the mode that a provider's document names, with a key.
public struct BlockCipher: Sendable {
  /// What providers use.
  public enum Mode: Hashable, Sendable {
    /// AES-128-CBC with PKCS#7 padding; initialisation vectors of 16 octets.
    case aesCBC
    /// AES-128-GCM with a tag of 16 octets behind the ciphertext; initialisation vectors of 12 octets.
    case aesGCM
    /// DES-ECB with PKCS#5 padding; no initialisation vector. Broken: only for a service that offers nothing else.
    case desECB

    /// Octets of a key.
    public var keyLength: Int { self == .desECB ? 8 : 16 }
    /// Octets of an initialisation vector.
    public var vectorLength: Int {
      switch self {
      case .aesCBC: 16
      case .aesGCM: 12
      case .desECB: 0
      }
    }
  }

  /// The mode.
  public let mode: Mode
  private let key: [UInt8]

  /// A cipher with that key.
  ///
  /// - Precondition: the key has `mode.keyLength` octets.
  public init(_ mode: Mode, key: [UInt8]) {
    precondition(key.count == mode.keyLength)
    self.mode = mode
    // libcrypto's default provider has no single DES; triple DES with one key three times is the same function.
    self.key = mode == .desECB ? key + key + key : key
  }

  /// The ciphertext, in GCM with its tag behind it.
  ///
  /// - Precondition: the vector has `mode.vectorLength` octets.
  /// - Complexity: O(*n*) in the octets.
  public func encrypt(_ plaintext: [UInt8], vector: [UInt8]) -> [UInt8] {
    precondition(vector.count == mode.vectorLength)
    guard let context = Context(mode, key: key, vector: vector, encrypts: true),
      let ciphertext = context.run(plaintext[...])
    else { preconditionFailure("libcrypto refused to encrypt") }
    return mode == .aesGCM ? ciphertext + context.tag : ciphertext
  }

  /// The plaintext; nil where length, padding or tag are wrong.
  ///
  /// - Precondition: the vector has `mode.vectorLength` octets.
  /// - Complexity: O(*n*) in the octets.
  public func decrypt(_ ciphertext: ArraySlice<UInt8>, vector: [UInt8]) -> [UInt8]? {
    precondition(vector.count == mode.vectorLength)
    // Whoever uses TLS on this thread next would take libcrypto's note of a refusal for a fault of the connection.
    ERR_set_mark()
    defer { ERR_pop_to_mark() }
    guard let context = Context(mode, key: key, vector: vector, encrypts: false) else { return nil }
    guard mode == .aesGCM else { return context.run(ciphertext) }
    guard ciphertext.count >= Context.tagLength else { return nil }
    guard context.expect(tag: Array(ciphertext.suffix(Context.tagLength))) else { return nil }
    return context.run(ciphertext.dropLast(Context.tagLength))
  }
}

extension BlockCipher: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Always `••••`.
  public var description: String { "••••" }
  /// Always `••••`.
  public var debugDescription: String { description }
  /// Nothing to look into.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// One run of a cipher.
private final class Context {
  static let tagLength = 16

  private let context: OpaquePointer

  init?(_ mode: BlockCipher.Mode, key: [UInt8], vector: [UInt8], encrypts: Bool) {
    guard let context = EVP_CIPHER_CTX_new() else { return nil }
    self.context = context
    let vector = vector.isEmpty ? [0] : vector
    guard EVP_CipherInit_ex2(context, Algorithm.of(mode).pointer, key, vector, encrypts ? 1 : 0, nil) == 1 else {
      return nil
    }
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  /// The whole output; nil where the padding or the tag is wrong.
  func run(_ input: ArraySlice<UInt8>) -> [UInt8]? {
    var isGood = true
    let output = [UInt8](unsafeUninitializedCapacity: input.count + 16) { output, count in
      var (written, last) = (Int32(0), Int32(0))
      isGood = input.withUnsafeBufferPointer {
        EVP_CipherUpdate(context, output.baseAddress, &written, $0.baseAddress, Int32($0.count)) == 1
      }
      guard isGood, EVP_CipherFinal_ex(context, output.baseAddress! + Int(written), &last) == 1 else {
        isGood = false
        return
      }
      count = Int(written + last)
    }
    return isGood ? output : nil
  }

  /// The tag of what was encrypted.
  var tag: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Context.tagLength) { output, count in
      let done = EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Context.tagLength), output.baseAddress)
      precondition(done == 1, "libcrypto has no tag")
      count = Context.tagLength
    }
  }

  /// Sets the tag that what is decrypted must have.
  func expect(tag: [UInt8]) -> Bool {
    var tag = tag
    return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), &tag) == 1
  }
}

/// A cipher of libcrypto's default provider, fetched once.
private struct Algorithm: @unchecked Sendable {
  // Immutable after the fetch and never freed; libcrypto lets any thread use it.
  let pointer: OpaquePointer

  private static let aesCBC = Algorithm(fetching: "AES-128-CBC")
  private static let aesGCM = Algorithm(fetching: "AES-128-GCM")
  private static let tripleDES = Algorithm(fetching: "DES-EDE3-ECB")

  private init(fetching name: String) {
    guard let pointer = EVP_CIPHER_fetch(nil, name, nil) else { preconditionFailure("libcrypto has no \(name)") }
    self.pointer = pointer
  }

  static func of(_ mode: BlockCipher.Mode) -> Algorithm {
    switch mode {
    case .aesCBC: aesCBC
    case .aesGCM: aesGCM
    case .desECB: tripleDES
    }
  }
}
