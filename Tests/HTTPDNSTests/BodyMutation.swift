// BodyMutation.swift -- breaks bodies of responses where it hurts.

import TestSupport

extension SeededGenerator {
  /// A body with a few damages: bits, octets, parts that go or come twice, an early end, fragments that mean something.
  mutating func mutated(_ body: [UInt8], with fragments: [String], damages: ClosedRange<Int> = 1...4) -> [UInt8] {
    var body = body
    for _ in 0..<Int.random(in: damages, using: &self) {
      let place = Int.random(in: 0...body.count, using: &self)
      let part = place..<min(place + Int.random(in: 0...12, using: &self), body.count)
      switch Int.random(in: 0..<6, using: &self) {
      case 0 where place < body.count: body[place] ^= 1 << UInt8.random(in: 0..<8, using: &self)
      case 1 where place < body.count: body[place] = UInt8.random(in: 0...255, using: &self)
      case 2: body.removeSubrange(part)
      case 3: body.insert(contentsOf: body[part], at: Int.random(in: 0...body.count, using: &self))
      case 4: body.removeSubrange(place...)
      default: body.replaceSubrange(part, with: fragments.randomElement(using: &self)!.utf8)
      }
    }
    return body
  }
}
