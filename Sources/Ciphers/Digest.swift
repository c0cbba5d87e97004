// Digest.swift -- the digests for providers' signatures: SHA-256 and MD5.

import CCrypto

/// One-shot digests. Any thread.
public enum Digest {
  /// SHA-256 (FIPS 180-4), 32 octets.
  ///
  /// - Complexity: O(*n*) in the octets of the message.
  public static func sha256(_ message: [UInt8]) -> [UInt8] { digest(message, Algorithm.sha256) }

  /// MD5 (RFC 1321), 16 octets. Broken: only for signatures that providers require.
  ///
  /// - Complexity: O(*n*) in the octets of the message.
  public static func md5(_ message: [UInt8]) -> [UInt8] { digest(message, Algorithm.md5) }

  /// Whether two digests are the same. The time does not depend on where they differ.
  public static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && zip(left, right).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }

  private static func digest(_ message: [UInt8], _ algorithm: Algorithm) -> [UInt8] {
    var octets = [UInt8](repeating: 0, count: algorithm.size)
    var length: UInt32 = 0
    let done = EVP_Digest(message, message.count, &octets, &length, algorithm.pointer, nil)
    precondition(done == 1 && Int(length) == octets.count, "libcrypto refused a digest")
    return octets
  }
}

/// A digest of libcrypto's default provider, fetched once: a fetch by name costs more than hashing a domain name.
private struct Algorithm: @unchecked Sendable {
  // Immutable after the fetch and never freed; libcrypto lets any thread use it.
  let pointer: OpaquePointer
  let size: Int

  static let sha256 = Algorithm(fetching: "SHA2-256")
  static let md5 = Algorithm(fetching: "MD5")

  init(fetching name: String) {
    guard let pointer = EVP_MD_fetch(nil, name, nil) else { preconditionFailure("libcrypto has no \(name)") }
    self.pointer = pointer
    size = Int(EVP_MD_get_size(pointer))
  }
}
