// TimerHeapTests.swift -- the order of timers and the effect of cancellation, against a sorted array.

import EventLoop
import TestSupport
import Testing

@Suite struct `A heap of timers` {
  private let loop = SimulatedLoop(start: 0)

  private func at(_ second: Int64) -> BootInstant { BootInstant(nanoseconds: second * 1_000_000_000) }

  @Test func `timers fire in order of deadline, in whatever order they were set`() {
    var fired: [Int64] = []
    for second: Int64 in [5, 1, 4, 2, 3] { loop.schedule(at: at(second)) { fired.append(second) } }
    #expect(loop.timers.earliest == at(1))
    loop.timers.fire(now: at(4))
    #expect(fired == [1, 2, 3, 4])
    #expect(loop.timers.earliest == at(5))
    loop.timers.fire(now: at(5))
    #expect(fired == [1, 2, 3, 4, 5])
    #expect(loop.timers.earliest == nil)
  }

  @Test func `equal deadlines fire in the order in which they were set`() {
    var fired: [Int] = []
    for number in 0..<100 { loop.schedule(at: at(7)) { fired.append(number) } }
    loop.timers.fire(now: at(7))
    #expect(fired == Array(0..<100))
  }

  @Test func `a timer is due at its deadline and not a nanosecond before`() {
    let timer = loop.schedule(at: at(1)) {}
    loop.timers.fire(now: BootInstant(nanoseconds: 999_999_999))
    #expect(timer.isSet)
    loop.timers.fire(now: at(1))
    #expect(!timer.isSet)
  }

  @Test func `a cancelled timer leaves the heap at once and releases its action`() {
    final class Witness {}
    weak var witness: Witness?
    let timer = {
      let captured = Witness()
      witness = captured
      return loop.schedule(at: at(1)) { withExtendedLifetime(captured) {} }
    }()
    #expect(witness != nil)
    timer.cancel()
    #expect(witness == nil)
    #expect(loop.timers.count == 0)
    timer.cancel()
    loop.timers.fire(now: at(2))
    #expect(loop.timers.count == 0)
  }

  @Test func `cancelling a timer that has fired does not affect others`() {
    var fired: [Int64] = []
    let first = loop.schedule(at: at(1)) { fired.append(1) }
    loop.schedule(at: at(2)) { fired.append(2) }
    loop.timers.fire(now: at(1))
    first.cancel()
    #expect(loop.timers.count == 1)
    loop.timers.fire(now: at(2))
    #expect(fired == [1, 2])
  }

  @Test func `an action may cancel its own timer, one that is due as well, and one that is not`() {
    var fired: [String] = []
    var own: OwnedTimer?
    var due: OwnedTimer?
    var later: OwnedTimer?
    own = loop.schedule(at: at(1)) {
      fired.append("own")
      own?.cancel()
      due?.cancel()
      later?.cancel()
    }
    due = loop.schedule(at: at(1)) { fired.append("due") }
    loop.schedule(at: at(1)) { fired.append("last") }
    later = loop.schedule(at: at(9)) { fired.append("later") }
    loop.timers.fire(now: at(1))
    #expect(fired == ["own", "last"])
    #expect(due?.isSet == false)
    loop.timers.fire(now: at(9))
    #expect(fired == ["own", "last"])
    #expect(loop.timers.count == 0)
  }

  @Test func `a timer set by an action fires in the next turn, even if it is due already`() {
    var fired: [String] = []
    loop.schedule(at: at(1)) {
      fired.append("first")
      loop.schedule(at: at(1)) { fired.append("new") }
    }
    loop.timers.fire(now: at(1))
    #expect(fired == ["first"])
    loop.timers.fire(now: at(1))
    #expect(fired == ["first", "new"])
  }

  @Test func `a timer that an action sets in the past does not delay due timers`() {
    var fired: [String] = []
    loop.schedule(at: at(1)) {
      fired.append("first")
      loop.schedule(at: at(0)) { fired.append("new") }
    }
    loop.schedule(at: at(2)) { fired.append("second") }
    loop.timers.fire(now: at(3))
    #expect(fired == ["first", "second"])
    loop.timers.fire(now: at(3))
    #expect(fired == ["first", "second", "new"])
  }

  @Test func `a timer that is set again takes back what was set before`() {
    var fired: [String] = []
    let timer = OwnedTimer()
    timer.set(at: at(1), on: loop) { fired.append("first") }
    timer.set(at: at(3), on: loop) { fired.append("second") }
    #expect(loop.timers.count == 1 && timer.deadline == at(3))
    loop.timers.fire(now: at(2))
    #expect(fired == [])
    loop.timers.fire(now: at(3))
    #expect(fired == ["second"] && timer.deadline == nil)
  }

  @Test func `a timer that is set again while it is due does not fire in this turn`() {
    var fired: [String] = []
    let timer = OwnedTimer()
    loop.schedule(at: at(1)) { timer.set(at: at(1), on: loop) { fired.append("again") } }
    timer.set(at: at(1), on: loop) { fired.append("due") }
    loop.timers.fire(now: at(1))
    #expect(fired == [])
    loop.timers.fire(now: at(1))
    #expect(fired == ["again"])
  }

  @Test func `a timer ends with its owner, also in the turn in which both are due`() {
    final class Owner {
      let timer = OwnedTimer()
      var fired = 0
    }
    for dies in [false, true] {
      var owner: Owner? = Owner()
      weak let witness = owner
      loop.schedule(at: at(1)) { if dies { owner = nil } }
      owner?.timer.set(at: at(1), on: loop, for: owner!) { $0.fired += 1 }
      #expect(loop.timers.count == 2)
      loop.timers.fire(now: at(1))
      #expect(owner?.fired == (dies ? nil : 1) && (witness == nil) == dies)
      #expect(loop.timers.count == 0)
    }
  }

  @Test func `a group has any number of timers, keeps none that has fired, and ends them all`() {
    var fired = 0
    var group: TimerGroup? = TimerGroup()
    for number in 0..<10_000 {
      group?.add(at: at(Int64(number)), on: loop) { fired += 1 }
      loop.timers.fire(now: at(Int64(number) - 3))
      #expect(loop.timers.count <= 4)
    }
    #expect(fired == 9_997)
    group = nil
    #expect(loop.timers.count == 0)
  }

  @Test func `deferred work runs once, in the next turn, without an owner`() {
    var fired: [Int] = []
    loop.inNextTurn {
      fired.append(1)
      loop.inNextTurn { fired.append(2) }
    }
    loop.timers.fire(now: loop.now)
    #expect(fired == [1])
    loop.timers.fire(now: loop.now)
    #expect(fired == [1, 2] && loop.timers.count == 0)
  }

  @Test func `100,000 random insertions, cancellations and firings agree with a sorted array`() {
    var random = SeededGenerator(seed: testSeed)
    var model = SortedTimers()
    var clock: Int64 = 0
    var fired: [Int] = []
    for number in 0..<100_000 {
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        // A new one, or one that is set again.
        let again = Int.random(in: 0..<5, using: &random) == 0
        let index = again ? model.waiting.indices.randomElement(using: &random) : nil
        let timer = index.map { model.waiting.remove(at: $0).timer } ?? OwnedTimer()
        let deadline = BootInstant(nanoseconds: clock + Int64.random(in: -3...40, using: &random))
        timer.set(at: deadline, on: loop) { fired.append(number) }
        model.insert(number, timer, deadline)
      case 5..<9:
        guard let index = model.waiting.indices.randomElement(using: &random) else { continue }
        // Released, or cancelled first.
        if Bool.random(using: &random) { model.waiting[index].timer.cancel() }
        model.waiting.remove(at: index)
      default:
        clock += Int64.random(in: 0...12, using: &random)
        loop.timers.fire(now: BootInstant(nanoseconds: clock))
        guard fired == model.takeDue(BootInstant(nanoseconds: clock)) else {
          Issue.record("other timers fired in step \(number)")
          return
        }
        fired.removeAll()
      }
      guard loop.timers.count == model.waiting.count, loop.timers.earliest == model.waiting.first?.deadline else {
        Issue.record("heap and array differ in step \(number)")
        return
      }
    }
    #expect(model.mostWaiting > 20)
  }
}

/// The model: timers in the order in which they are to fire.
private struct SortedTimers {
  var waiting: [(number: Int, timer: OwnedTimer, deadline: BootInstant)] = []
  private(set) var mostWaiting = 0

  /// After all timers with the same deadline, because numbers only grow.
  mutating func insert(_ number: Int, _ timer: OwnedTimer, _ deadline: BootInstant) {
    let index = waiting.firstIndex { $0.deadline > deadline } ?? waiting.count
    waiting.insert((number, timer, deadline), at: index)
    mostWaiting = max(mostWaiting, waiting.count)
  }

  mutating func takeDue(_ now: BootInstant) -> [Int] {
    let count = waiting.firstIndex { $0.deadline > now } ?? waiting.count
    defer { waiting.removeFirst(count) }
    return waiting[..<count].map(\.number)
  }
}
