// HeatTests.swift -- which entries are refreshed, and after how many fruitless refreshes that ends.

import TestSupport
import Testing

@testable import Refresh

@Suite struct HeatTests {
  /// The refreshes that one life of a name causes, with the hits of each entry one after the other.
  private func refreshes(_ policy: HeatPolicy, hits: [UInt32]) -> Int {
    var heat = Heat.inactive
    for (index, count) in hits.enumerated() {
      guard case .refresh(let next) = policy.decide(hits: count, heat: heat, isOnKeepList: false) else { return index }
      heat = next
    }
    return hits.count
  }

  @Test(arguments: [1, 2, 3, 10, 255, 256, 100_000])
  func `a name that is never queried again costs exactly its refreshes`(giveUpAfter: Int) {
    let policy = HeatPolicy(hotHits: 5, giveUpAfter: giveUpAfter)
    let hits: [UInt32] = [5] + Array(repeating: 0, count: giveUpAfter + 10)
    #expect(refreshes(policy, hits: hits) == giveUpAfter)
  }

  @Test(arguments: [0, 1, 3, 4, .max] as [UInt32])
  func `there is a decision for any stored state`(keepList: UInt32) {
    let decision = HeatPolicy(hotHits: 1, giveUpAfter: 4).decide(
      hits: 0, heat: Heat(rawValue: keepList), isOnKeepList: false)
    #expect((decision == .letExpire) == (keepList == 0 || keepList >= 4))
  }

  @Test func `one hit restarts the count, one hit is not enough to become hot`() {
    let policy = HeatPolicy(hotHits: 5, giveUpAfter: 3)
    #expect(refreshes(policy, hits: [4, 9]) == 0)
    #expect(refreshes(policy, hits: [5, 0, 0, 1, 0, 0, 0, 9]) == 6)
    #expect(refreshes(policy, hits: [5, 0, 0, 0, 9]) == 3)
    #expect(refreshes(policy, hits: [5, 1, 1, 1, 1, 1, 1]) == 7)
  }

  @Test func `an entry is hot from that many hits on`() {
    let policy = HeatPolicy(hotHits: 5, giveUpAfter: 3)
    #expect(policy.decide(hits: 4, heat: .inactive, isOnKeepList: false) == .letExpire)
    #expect(policy.decide(hits: 5, heat: .inactive, isOnKeepList: false) == .refresh(next: .active(fruitless: 0)))
    #expect(policy.decide(hits: .max, heat: .inactive, isOnKeepList: false) == .refresh(next: .active(fruitless: 0)))
  }

  @Test func `with hot_hits = 0 no name becomes hot`() {
    let policy = HeatPolicy(hotHits: 0, giveUpAfter: 3)
    #expect(policy.decide(hits: 0, heat: .inactive, isOnKeepList: false) == .letExpire)
    #expect(policy.decide(hits: .max, heat: .inactive, isOnKeepList: false) == .letExpire)
  }

  @Test func `a name on the keep list is always refreshed, and not hot for that reason`() {
    let policy = HeatPolicy(hotHits: 0, giveUpAfter: 1)
    for heat in [Heat.inactive, .active(fruitless: 0), .active(fruitless: 7)] {
      #expect(policy.decide(hits: 0, heat: heat, isOnKeepList: true) == .refresh(next: .inactive))
    }
  }

  @Test func `after a failed refresh the same entry gets the same decision`() {
    let policy = HeatPolicy(hotHits: 5, giveUpAfter: 3)
    let heat = Heat.active(fruitless: 1)
    let decisions = (0..<10).map { _ in policy.decide(hits: 0, heat: heat, isOnKeepList: false) }
    #expect(decisions.allSatisfy { $0 == .refresh(next: .active(fruitless: 2)) })
  }

  @Test func `decisions agree with the whole history for any hits`() {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<500 {
      let (hotHits, giveUpAfter) = (Int.random(in: 0...4, using: &random), Int.random(in: 1...4, using: &random))
      let policy = HeatPolicy(hotHits: hotHits, giveUpAfter: giveUpAfter)
      var heat = Heat.inactive
      // The hits of every entry since a client's question brought the first.
      var history: [UInt32] = []
      for _ in 0..<60 {
        history.append(random.oneIn(2) ? 0 : UInt32.random(in: 0...5, using: &random))
        let refreshed = history.dropFirst()
        let expected =
          refreshed.isEmpty
          ? hotHits > 0 && Int(history[0]) >= hotHits
          : refreshed.suffix(giveUpAfter).contains { $0 > 0 } || refreshed.count < giveUpAfter
        switch policy.decide(hits: history[history.count - 1], heat: heat, isOnKeepList: false) {
        case .refresh(let next):
          #expect(expected)
          #expect(next.isActive)
          heat = next
        case .letExpire:
          #expect(!expected)
          (heat, history) = (.inactive, [])
        }
      }
    }
  }
}
