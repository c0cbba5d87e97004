// BlockCipher.swift -- the ciphers that providers encrypt names and answers with: AES-128 in CBC and GCM, DES in ECB.

import CCrypto
import Synchronization

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
  private let contexts: Contexts

  /// A cipher with that key.
  ///
  /// - Precondition: the key has `mode.keyLength` octets.
  public init(_ mode: Mode, key: [UInt8]) {
    precondition(key.count == mode.keyLength)
    self.mode = mode
    contexts = Contexts(mode, key: key)
  }

  /// The ciphertext, in GCM with its tag behind it.
  ///
  /// - Precondition: the vector has `mode.vectorLength` octets.
  /// - Complexity: O(*n*) in the octets.
  public func encrypt(_ plaintext: [UInt8], vector: [UInt8]) -> [UInt8] {
    precondition(vector.count == mode.vectorLength)
    let ciphertext = contexts.encrypting.withLock { $0.encrypt(plaintext, vector: vector) }
    guard let ciphertext else { preconditionFailure("libcrypto refused to encrypt") }
    return ciphertext
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
    return contexts.decrypting.withLock { $0.decrypt(ciphertext, vector: vector) }
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

/// What the copies of a cipher share: a context for each direction, so that the key is taken in only once.
private final class Contexts: Sendable {
  let encrypting: Mutex<CipherContext>
  let decrypting: Mutex<CipherContext>

  init(_ mode: BlockCipher.Mode, key: [UInt8]) {
    encrypting = Mutex(CipherContext(mode, key: key, encrypts: true))
    decrypting = Mutex(CipherContext(mode, key: key, encrypts: false))
  }
}
