// SeededGenerator.swift -- random numbers that a printed seed brings back.

import EventLoop
import Glibc

/// The same numbers for the same seed, on every machine.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var generator: JitterGenerator

  /// The numbers that belong to a seed.
  public init(seed: UInt64) { generator = JitterGenerator(seed: seed) }

  /// The next 64 bits.
  public mutating func next() -> UInt64 { generator.next() }

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
