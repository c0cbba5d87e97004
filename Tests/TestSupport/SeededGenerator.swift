// SeededGenerator.swift -- random numbers that a printed seed brings back.

import Glibc

/// SplitMix64: small, and the same on every machine.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// The numbers that belong to a seed.
  public init(seed: UInt64) { state = seed }

  /// The next 64 bits.
  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var bits = state
    bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
    return bits ^ bits >> 31
  }

  /// True once in `count` times.
  public mutating func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

  /// Random octets.
  public mutating func octets(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }
}

/// The seed of this run: the environment's `HTTPDNSD_TEST_SEED`, or a new one. Printed, so that a failure can be
/// repeated.
public let testSeed: UInt64 = {
  let seed = getenv("HTTPDNSD_TEST_SEED").flatMap { UInt64(String(cString: $0)) } ?? UInt64.random(in: 0...UInt64.max)
  print("seed of random tests: HTTPDNSD_TEST_SEED=\(seed)")
  return seed
}()
