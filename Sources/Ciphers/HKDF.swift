// HKDF.swift -- derives keys from a secret (RFC 5869).

/// HKDF with SHA-256, without salt.
public enum HKDF {
  /// Derives a key of 32 octets.
  ///
  /// - Parameters:
  ///   - secret: the input keying material; it needs the strength of a key, not its form.
  ///   - label: what the key is for. Keys of other labels say nothing about it.
  public static func sha256(_ secret: [UInt8], label: String) -> [UInt8] {
    let noSalt = [UInt8](repeating: 0, count: HMACSHA256.length)
    let extracted = HMACSHA256(key: noSalt).code(of: secret)
    return HMACSHA256(key: extracted).code(of: Array(label.utf8) + [1])
  }
}
