// RefreshGatheringTests.swift -- which questions travel together, and when.

import TestSupport
import Testing

@testable import Refresh

@Suite struct RefreshGatheringTests {
  private let both: RefreshFamilies = [.ipv4, .ipv6]

  @Test func `a group is closed when the earliest deadline of its questions has come`() {
    var gathering = RefreshGathering<String>(mostNames: 5)
    #expect(gathering.nextClosing == nil)
    gathering.add("a", .ipv4, deadline: 200)
    gathering.add("b", .ipv4, deadline: 100)
    #expect(gathering.nextClosing == 100)
    let early = gathering.takeClosed(now: 99)
    let closed = gathering.takeClosed(now: 100)
    #expect(early.isEmpty)
    #expect(closed.map { $0.members.map(\.name) } == [["a", "b"]])
    #expect(gathering.nextClosing == nil)
    #expect(gathering.count == 0)
  }

  @Test func `a full group does not wait, and both families of a name count once`() {
    var gathering = RefreshGathering<String>(mostNames: 2)
    gathering.add("a", .ipv4, deadline: 100)
    gathering.add("a", .ipv6, deadline: 100)
    let early = gathering.takeClosed(now: 0)
    #expect(early.isEmpty)
    gathering.add("b", both, deadline: 100)
    #expect(gathering.nextClosing == .min)
    let closed = gathering.takeClosed(now: 0)
    #expect(closed.map(\.members.count) == [2])
    #expect(closed.first?.members.map(\.families) == [both, both])
  }

  @Test func `the second family joins the first in a full group that was not taken yet`() {
    var gathering = RefreshGathering<String>(mostNames: 1)
    gathering.add("a", .ipv4, deadline: 100)
    gathering.add("b", .ipv4, deadline: 100)
    gathering.add("a", .ipv6, deadline: 100)
    let closed = gathering.takeClosed(now: 0)
    #expect(closed.map { $0.members.map(\.name) } == [["a"], ["b"]])
    #expect(closed.first?.members.first?.families == both)
  }

  @Test func `a question that waits already is not added again, and its earlier deadline counts`() {
    var gathering = RefreshGathering<String>(mostNames: 3)
    gathering.add("a", .ipv4, deadline: 100)
    gathering.add("a", .ipv4, deadline: 50)
    gathering.add("a", .ipv4, deadline: 80)
    #expect(gathering.count == 1)
    #expect(gathering.nextClosing == 50)
  }

  @Test func `a group that stays keeps its names when full ones before it are taken`() {
    var gathering = RefreshGathering<String>(mostNames: 2)
    for name in ["a", "b", "c"] { gathering.add(name, .ipv4, deadline: 100) }
    let full = gathering.takeClosed(now: 0)
    gathering.add("c", .ipv6, deadline: 100)
    #expect(full.map { $0.members.map(\.name) } == [["a", "b"]])
    #expect(gathering.count == 1)
    #expect(gathering.nextClosing == 100)
    // A name that has travelled may come again.
    gathering.add("a", .ipv4, deadline: 300)
    let rest = gathering.takeClosed(now: 0)
    #expect(rest.map { $0.members.map(\.name) } == [["c", "a"]])
    #expect(rest.first?.members.map(\.families) == [both, .ipv4])
  }

  @Test func `the end of time takes everything`() {
    var gathering = RefreshGathering<Int>(mostNames: 4)
    for name in 0..<10 { gathering.add(name, both, deadline: .max) }
    let closed = gathering.takeClosed(now: .max)
    #expect(closed.map(\.members.count) == [4, 4, 2])
    #expect(gathering.count == 0)
  }

  /// A question that waits, as the test remembers it.
  private struct Waiting: Hashable {
    let name: Int
    let family: UInt8
  }

  @Test func `no question is lost, repeated, split, late or too many for any input`() {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<200 {
      let mostNames = Int.random(in: 1...6, using: &random)
      var gathering = RefreshGathering<Int>(mostNames: mostNames)
      var waiting: [Waiting: Int64] = [:]
      var now: Int64 = 0
      for step in 0..<60 {
        for _ in 0..<Int.random(in: 0...8, using: &random) {
          let families = RefreshFamilies(rawValue: UInt8.random(in: 1...3, using: &random))
          let (name, deadline) = (Int.random(in: 0..<12, using: &random), now + .random(in: 0...20, using: &random))
          gathering.add(name, families, deadline: deadline)
          for family in [1, 2] as [UInt8] where families.rawValue & family != 0 {
            let question = Waiting(name: name, family: family)
            waiting[question] = min(waiting[question] ?? .max, deadline)
          }
        }
        #expect(gathering.count == Set(waiting.keys.map(\.name)).count)
        let isLast = step == 59
        let announced = gathering.nextClosing
        let closed = gathering.takeClosed(now: isLast ? .max : now)
        #expect(closed.isEmpty == (announced.map { $0 > (isLast ? .max : now) } ?? true))
        let names = closed.flatMap { $0.members.map(\.name) }
        #expect(Set(names).count == names.count)
        for group in closed {
          #expect((1...mostNames).contains(group.members.count))
          var deadlines: [Int64] = []
          for member in group.members {
            for family in [1, 2] as [UInt8] where member.families.rawValue & family != 0 {
              let question = Waiting(name: member.name, family: family)
              guard let deadline = waiting.removeValue(forKey: question) else {
                Issue.record("\(question) was not asked, or was taken before")
                continue
              }
              deadlines.append(deadline)
            }
            // Both families travel together: no question of a name that was taken still waits.
            #expect(!waiting.keys.contains { $0.name == member.name })
          }
          #expect(deadlines.min() == group.deadline)
          #expect(isLast || group.members.count == mostNames || group.deadline <= now)
        }
        #expect(waiting.values.allSatisfy { $0 > now } || isLast)
        #expect(Set(waiting.keys.map(\.name)).count < mostNames)
        now += Int64.random(in: 0...15, using: &random)
      }
      #expect(waiting.isEmpty)
    }
  }
}
