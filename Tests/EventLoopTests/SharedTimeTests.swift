// SharedTimeTests.swift -- how much of a turn queued actions get, and in which order.

import EventLoop
import TestSupport
import Testing

@Suite struct `The time that is shared` {
  private let loop: EventLoop

  init() throws { loop = try EventLoop() }

  @Test func `many queued actions take a few milliseconds of a turn, in their order, and timers come in between`() {
    var (done, perTurn, ticks): ([Int], [UInt64: Int], Int) = ([], [:], 0)
    let timer = OwnedTimer()
    func tick() {
      ticks += 1
      timer.set(after: .zero, on: loop) { tick() }
    }
    tick()
    for number in 0..<50 {
      loop.queue { [loop] in
        spend(.milliseconds(1))
        done.append(number)
        perTurn[loop.turnCount, default: 0] += 1
        if done.count == 50 { loop.stop() }
      }
    }
    loop.run()
    #expect(done == Array(0..<50))
    #expect(perTurn.values.max()! <= 3)
    #expect(ticks >= 17)
  }

  @Test func `what a queued action resumes counts as its time`() {
    nonisolated(unsafe) var perTurn: [UInt64: Int] = [:]
    nonisolated(unsafe) var rest = 40
    for _ in 0..<40 {
      loop.startTask { [loop] in
        await loop.waitInQueue()
        spend(.milliseconds(1))
        perTurn[loop.turnCount, default: 0] += 1
        rest -= 1
        if rest == 0 { loop.stop() }
      }
    }
    loop.run()
    #expect(perTurn.values.max()! <= 3)
  }

  @Test func `an object that queues again in every turn does not starve the others`() {
    final class Reader: QueueMember {
      let place = OwnedPlace()
      let loop: EventLoop
      let hasRead: () -> Void
      var reads = 0

      init(on loop: EventLoop, hasRead: @escaping () -> Void) { (self.loop, self.hasRead) = (loop, hasRead) }

      func placeHasCome() {
        reads += 1
        hasRead()
        spend(.microseconds(500))
        place.take(on: loop, for: self)
      }
    }
    var all = 0
    let readers = (0..<10).map { _ in
      Reader(on: loop) { [loop] in
        all += 1
        if all == 60 { loop.stop() }
      }
    }
    for reader in readers { reader.place.take(on: loop, for: reader) }
    loop.run()
    let reads = readers.map(\.reads)
    #expect(reads.min()! >= 6 && reads.max()! <= 7)
  }

  @Test func `a place is taken once, may be taken back, and ends with its owner`() {
    final class Calls { var count = 0 }
    final class Owner: QueueMember {
      let place = OwnedPlace()
      let calls: Calls

      init(_ calls: Calls) { self.calls = calls }

      func placeHasCome() { calls.count += 1 }
    }
    let (ofTwice, ofTaken, ofGone) = (Calls(), Calls(), Calls())
    let (twice, taken) = (Owner(ofTwice), Owner(ofTaken))
    var gone: Owner? = Owner(ofGone)
    for _ in 0..<2 { twice.place.take(on: loop, for: twice) }
    taken.place.take(on: loop, for: taken)
    taken.place.cancel()
    gone?.place.take(on: loop, for: gone!)
    gone = nil
    loop.queue { [loop] in loop.stop() }
    loop.run()
    #expect(ofTwice.count == 1 && !twice.place.isTaken)
    #expect(ofTaken.count == 0 && ofGone.count == 0)
  }
}

private func spend(_ time: Duration) {
  let end = BootInstant.now + time
  while BootInstant.now < end {}
}
