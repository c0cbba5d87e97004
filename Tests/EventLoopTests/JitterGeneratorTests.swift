// JitterGeneratorTests.swift -- random numbers for jitter.

import Testing

@testable import EventLoop

@Suite struct JitterGeneratorTests {
  @Test func `the generator is SplitMix64`() {
    // The first outputs of the reference implementation for the seed 1234567.
    var generator = JitterGenerator(seed: 1_234_567)
    let first = (0..<3).map { _ in generator.next() }
    #expect(first == [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423])
  }
}
