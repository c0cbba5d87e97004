// HMACSHA256.swift -- message authentication codes with HMAC-SHA256.

import CCrypto
import Synchronization

/// HMAC with SHA-256 (RFC 2104, RFC 4231) for one key. The key is processed once, so a code costs little more than hashing
/// its message. Any thread; one message at a time.
public final class HMACSHA256: Concealed, Sendable {
  /// The length of a code in octets.
  public static let length = 32

  private let context: Mutex<Context>

  /// The key may have any length, including 0.
  public init(key: [UInt8]) { context = Mutex(Context(key: key)) }

  /// The code of a message, `length` octets.
  ///
  /// - Complexity: O(*n*) in the octets of the message.
  public func code(of message: [UInt8]) -> [UInt8] { context.withLock { $0.code(of: message) } }
}

/// libcrypto's context with the key; one message at a time. libcrypto wipes it when it is freed.
private struct Context: ~Copyable {
  private let context: OpaquePointer

  init(key: [UInt8]) {
    // A null pointer would mean that the key is not set yet.
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
