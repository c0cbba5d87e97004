// HMACSHA256.swift -- the code that shows who wrote a message, for whoever has the key.

import CCrypto
import Synchronization

/// HMAC with SHA-256 (RFC 2104, RFC 4231) under one key. The key is taken in once: a code costs the hashing of its message
/// and little more.
public final class HMACSHA256: Sendable {
  /// Octets of a code.
  public static let length = 32

  private let context: Mutex<Context>

  /// Codes under that key, which may have any length, none included.
  public init(key: [UInt8]) { context = Mutex(Context(key: key)) }

  /// The code of a message, `length` octets.
  ///
  /// - Complexity: O(*n*) in the octets of the message.
  public func code(of message: [UInt8]) -> [UInt8] { context.withLock { $0.code(of: message) } }
}

extension HMACSHA256: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Always `••••`.
  public var description: String { "••••" }
  /// Always `••••`.
  public var debugDescription: String { description }
  /// Nothing to look into.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// libcrypto's context with the key taken in; one message at a time. libcrypto wipes it at its end.
private struct Context: ~Copyable {
  private let context: OpaquePointer

  init(key: [UInt8]) {
    // A null pointer as the key would mean that there is none yet.
    guard let context = ccrypto_hmac_sha256(key.isEmpty ? [0] : key, key.count) else {
      preconditionFailure("libcrypto has no HMAC-SHA256")
    }
    self.context = context
  }

  deinit { EVP_MAC_CTX_free(context) }

  mutating func code(of message: [UInt8]) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: HMACSHA256.length)
    var count = 0
    let isDone =
      EVP_MAC_init(context, nil, 0, nil) == 1
      && EVP_MAC_update(context, message, message.count) == 1
      && EVP_MAC_final(context, &code, &count, code.count) == 1
    precondition(isDone && count == code.count, "libcrypto refused a code")
    return code
  }
}
