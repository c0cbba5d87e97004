// RandomOctets.swift -- octets that nobody can foresee, for nonces and initialisation vectors.

import CCrypto

/// Octets from libcrypto's random generator, seeded by the kernel.
public enum RandomOctets {
  /// That many octets.
  ///
  /// - Precondition: the generator works; a predictable initialisation vector would be worse than no program.
  /// - Complexity: O(*n*) in the count.
  public static func generate(count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { output, initialized in
      precondition(count == 0 || RAND_bytes(output.baseAddress, Int32(count)) == 1, "libcrypto has no random octets")
      initialized = count
    }
  }
}
