// NumberRegistryTests.swift -- what keeps its number over reloads, and that no number means two things at a time.

import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `Numbers of meanings` {
  private func kin(_ text: String) -> Character { text.first ?? " " }

  @Test func `numbers stay with their meanings, are assigned in order, and are equal for equals`() throws {
    var numbers = NumberRegistry<String>(4...20)
    #expect(numbers.assign(["a", "b", "a", "c"], kin: { $0 }) == [4, 5, 4, 6])
    #expect(numbers.assign(["c", "d", "a"], kin: { $0 }) == [6, 7, 4])
    #expect(numbers.retired == [5])
    #expect(numbers.assign(["b", "c"], kin: { $0 }) == [8, 6])
    #expect(numbers.retired == [4, 5, 7])
  }

  @Test func `a number of a removed meaning is reassigned only when it is free`() {
    var numbers = NumberRegistry<Int>(0...3)
    #expect(numbers.assign([1, 2], kin: { $0 }) == [0, 1])
    #expect(numbers.assign([3, 4], kin: { $0 }) == [2, 3])
    let before = numbers.numbers
    #expect(numbers.assign([5], kin: { $0 }) == nil)
    #expect(numbers.numbers == before)
    numbers.release([1])
    #expect(numbers.assign([5, 3], kin: { $0 }) == [1, 2])
    #expect(numbers.retired == [0, 3])
  }

  @Test func `a number passes to a related meaning, unless that has its own`() {
    var numbers = NumberRegistry<String>(0...20)
    #expect(numbers.assign(["a1", "a2", "b1"], kin: kin) == [0, 1, 2])
    #expect(numbers.assign(["a3", "a2", "b2", "c1"], kin: kin) == [0, 1, 2, 3])
    #expect(numbers.retired.isEmpty)
    #expect(numbers.assign(["a4", "a5", "a6"], kin: kin) == [0, 1, 4])
    #expect(numbers.retired == [2, 3])
  }

  @Test func `no number has two meanings while entries may carry it, for random changes`() {
    var generator = SeededGenerator(seed: 7)
    var numbers = NumberRegistry<Int>(0...1000)
    /// What entries with a number are about.
    var carried: [Int: Int] = [:]
    for _ in 0..<500 {
      let meanings = (0..<Int.random(in: 0...20, using: &generator)).map { _ in
        Int.random(in: 0...40, using: &generator)
      }
      let assigned = numbers.assign(meanings, kin: { $0 }) ?? []
      #expect(assigned.count == meanings.count)
      for (meaning, number) in zip(meanings, assigned) {
        #expect(carried[number, default: meaning] == meaning)
        carried[number] = meaning
      }
      if Bool.random(using: &generator) {
        for number in numbers.retired { carried[number] = nil }
        numbers.release(numbers.retired)
      }
    }
  }
}
