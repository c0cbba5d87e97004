// BlockCipher.swift -- the providers' ciphers for names and answers: AES-128 in CBC and GCM mode, DES in ECB mode.

import CCrypto
import Synchronization

/// A block cipher with a mode and a key. Any thread; calls with one key run one at a time.
public struct BlockCipher: Concealed, Sendable {
  /// The ciphers and modes that providers use. The raw values are words for logs and test vectors.
  public enum Mode: String, Hashable, Sendable {
    /// AES-128-CBC with PKCS#7 padding; initialisation vectors of 16 octets.
    case aesCBC = "cbc"
    /// AES-128-GCM with a tag of 16 octets after the ciphertext; initialisation vectors of 12 octets.
    case aesGCM = "gcm"
    /// DES-ECB with PKCS#5 padding; no initialisation vector. Broken: only for services that offer nothing else.
    case desECB = "des"

    /// The length of a key in octets.
    public var keyLength: Int { self == .desECB ? 8 : 16 }
    /// The length of an initialisation vector in octets.
    public var vectorLength: Int {
      switch self {
      case .aesCBC: 16
      case .aesGCM: 12
      case .desECB: 0
      }
    }
  }

  /// The cipher and its mode; the lengths of key and vector follow from it.
  public let mode: Mode
  private let contexts: Contexts

  /// - Precondition: the key has `mode.keyLength` octets.
  public init(_ mode: Mode, key: [UInt8]) {
    precondition(key.count == mode.keyLength)
    self.mode = mode
    contexts = Contexts(mode, key: key)
  }

  /// The ciphertext, in GCM mode followed by its tag.
  ///
  /// - Precondition: the vector has `mode.vectorLength` octets.
  /// - Complexity: O(*n*) in the octets.
  public func encrypt(_ plaintext: [UInt8], vector: [UInt8]) -> [UInt8] {
    precondition(vector.count == mode.vectorLength)
    let ciphertext = contexts.encrypting.withLock { $0.encrypt(plaintext, vector: vector) }
    guard let ciphertext else { preconditionFailure("libcrypto refused to encrypt") }
    return ciphertext
  }

  /// The plaintext; nil if length, padding or tag is wrong.
  ///
  /// - Precondition: the vector has `mode.vectorLength` octets.
  /// - Complexity: O(*n*) in the octets.
  public func decrypt(_ ciphertext: ArraySlice<UInt8>, vector: [UInt8]) -> [UInt8]? {
    precondition(vector.count == mode.vectorLength)
    // Otherwise the next TLS operation on this thread would report libcrypto's queued error as its own.
    ERR_set_mark()
    defer { ERR_pop_to_mark() }
    return contexts.decrypting.withLock { $0.decrypt(ciphertext, vector: vector) }
  }

  /// The vector and the ciphertext.
  ///
  /// - Parameter vector: random by default.
  /// - Precondition: the vector has `mode.vectorLength` octets.
  /// - Complexity: O(*n*) in the octets.
  public func seal(_ plaintext: [UInt8], vector: [UInt8]? = nil) -> [UInt8] {
    let vector = vector ?? RandomOctets.generate(count: mode.vectorLength)
    return vector + encrypt(plaintext, vector: vector)
  }

  /// The plaintext of a vector and a ciphertext; nil if length, padding or tag is wrong.
  ///
  /// - Complexity: O(*n*) in the octets.
  public func open(_ sealed: [UInt8]) -> [UInt8]? {
    guard sealed.count > mode.vectorLength else { return nil }
    return decrypt(sealed[mode.vectorLength...], vector: Array(sealed[..<mode.vectorLength]))
  }
}

/// The contexts that copies of a cipher share, one per direction, so that the key schedule is computed once.
private final class Contexts: Sendable {
  let encrypting: Mutex<CipherContext>
  let decrypting: Mutex<CipherContext>

  init(_ mode: BlockCipher.Mode, key: [UInt8]) {
    encrypting = Mutex(CipherContext(mode, key: key, encrypts: true))
    decrypting = Mutex(CipherContext(mode, key: key, encrypts: false))
  }
}
