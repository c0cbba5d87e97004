// FaultTable.swift -- the active faults; the first one that matches applies.

import DNSWire

/// The active faults. The random numbers have a seed, so that the same requests get the same faults in every run.
struct FaultTable {
  private(set) var faults: [Fault] = []
  private var dice: SplitMix64

  init(_ faults: [Fault] = [], seed: UInt64 = 1) {
    self.faults = faults
    dice = SplitMix64(state: seed)
  }

  /// Adds a fault after the others.
  mutating func add(_ fault: Fault) { faults.append(fault) }

  mutating func clear() { faults = [] }

  /// Returns the fault for a request and decrements its count; nil for none.
  mutating func take(path: String, dialect: String, questions: [Question]) -> Fault? {
    for index in faults.indices
    where faults[index].matches(path: path, dialect: dialect, questions: questions) {
      let fault = faults[index]
      if fault.probability < 1, Double.random(in: 0..<1, using: &dice) >= fault.probability { continue }
      if let remaining = fault.remaining {
        if remaining > 1 { faults[index].remaining = remaining - 1 } else { faults.remove(at: index) }
      }
      return fault
    }
    return nil
  }
}

/// SplitMix64 by Steele, Lea and Flood: small, and equal on every machine.
private struct SplitMix64: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
