// SetWriterTests.swift -- additions on the resolver's loop: waiting, counting, bounds, other sets, the end.

import DNSWire
import EventLoop
@testable import FirewallSets
import TestSupport
import Testing

@Suite struct `Additions to firewall sets` {
  @Test func `an answer waits until its addresses are in the sets`() {
    let scene = WriterScene(.four, .six)
    scene.add(addresses("192.0.2.1", "192.0.2.2", "2001:db8::1"), to: .four, .six, as: "a")
    #expect(scene.completed == [])
    scene.run()
    #expect(scene.completed == ["a"])
    #expect(scene.kernel.commits.count == 1)
    #expect(scene.status(.four).added == 2 && scene.status(.six).added == 1)
    #expect(scene.status(.four).state == "ok")
    scene.loop.advance(by: .seconds(1))
    #expect(scene.status(.four).late == 0)
  }

  @Test func `an answer waits 50 ms at most, is counted late, and is added later`() {
    let scene = WriterScene(.four)
    scene.add(addresses("192.0.2.1", "192.0.2.2"), to: .four, as: "a")
    scene.loop.advance(by: .milliseconds(20))
    scene.add(addresses("192.0.2.3"), to: .four, as: "b")
    scene.loop.advance(by: .milliseconds(29))
    #expect(scene.completed == [])
    scene.loop.advance(by: .milliseconds(1))
    #expect(scene.completed == ["a"])
    #expect(scene.status(.four).late == 2 && scene.status(.four).added == 0)
    scene.run()
    #expect(scene.completed == ["a", "b"])
    #expect(scene.status(.four).late == 2 && scene.status(.four).added == 3)
    scene.loop.advance(by: .seconds(5))
    #expect(scene.completed == ["a", "b"])
  }

  @Test func `completions come in the order of the additions`() {
    let scene = WriterScene(.four)
    for index in 0..<5 { scene.add(addresses("192.0.2.\(index + 1)"), to: .four, as: "\(index)") }
    scene.lane.run(2)
    scene.loop.advance(by: .milliseconds(50))
    scene.run()
    #expect(scene.completed == ["0", "1", "2", "3", "4"])
    #expect(scene.status(.four).late == 3)
  }

  @Test func `an addition for which there is nothing to do completes at once`() {
    let scene = WriterScene(.four)
    scene.add([], to: .four, as: "no addresses")
    scene.add(addresses("192.0.2.1"), as: "no sets")
    scene.add(addresses("192.0.2.1"), to: .other, as: "a set of no rule")
    scene.add(addresses("2001:db8::1"), to: .four, as: "the other family")
    scene.add(addresses("192.168.1.1", "127.0.0.1"), to: .four, as: "private")
    #expect(scene.completed == ["no addresses", "no sets", "a set of no rule", "the other family", "private"])
    #expect(scene.lane.queue.isEmpty)
  }

  @Test func `private addresses are added if the caller says so`() {
    let scene = WriterScene(.four)
    scene.add(addresses("192.168.1.1", "127.0.0.1"), to: .four, includingPrivate: true)
    scene.run()
    #expect(scene.kernel.contents(of: .four) == ["192.168.1.1": "100"])
  }

  @Test func `a shorter answer does not shorten, a longer one prolongs`() {
    let scene = WriterScene(.four)
    for seconds in [1000, 30] {
      scene.add(addresses("192.0.2.1", for: seconds), to: .four)
      scene.run()
    }
    #expect(scene.kernel.contents(of: .four) == ["192.0.2.1": "1000"])
    scene.add(addresses("192.0.2.1", for: 2000), to: .four)
    scene.run()
    #expect(scene.kernel.contents(of: .four) == ["192.0.2.1": "2000"])
    #expect(scene.status(.four).added == 3)
  }

  @Test func `the queue is bounded, and what exceeds it completes at once and is counted as failed`() {
    let scene = WriterScene(.four)
    for _ in 0..<SetWriter.mostAdditions { scene.add(addresses("192.0.2.1"), to: .four) }
    #expect(scene.completed == [])
    scene.add(addresses("192.0.2.2", "192.0.2.3"), to: .four, as: "one more")
    #expect(scene.completed == ["one more"])
    #expect(scene.status(.four).failed == 2)
    #expect(scene.status(.four).state == "too many additions wait")
    scene.run()
    #expect(scene.completed.count == SetWriter.mostAdditions + 1)
    #expect(scene.status(.four).state == "ok")
    #expect(scene.refills == [])
    // What was dropped is in no set until the owner adds it again.
    scene.pass(11)
    #expect(scene.refills == [.four])
  }

  @Test func `a task waits for an addition`() {
    let scene = WriterScene(.four)
    nonisolated(unsafe) let unsafeScene = scene
    var isAdded = false
    scene.loop.startTask {
      await unsafeScene.writer.add(addresses("192.0.2.1"), to: [.four])
      isAdded = true
    }
    scene.loop.settle()
    #expect(!isAdded)
    scene.run()
    #expect(isAdded)
  }
}

@Suite struct `The thread of firewall sets` {
  @Test func `there is a thread and a timer only while there are sets`() {
    let scene = WriterScene()
    #expect(scene.lanes.isEmpty)
    scene.add(addresses("192.0.2.1"), to: .four, as: "a")
    #expect(scene.completed == ["a"] && scene.lanes.isEmpty)
    scene.kernel.create(.four, .ipv4)
    scene.writer.apply([.four])
    #expect(scene.lanes.count == 1)
    scene.run()
    #expect(scene.loop.timers.earliest == nil)
    scene.add(addresses("192.0.2.1"), to: .four, as: "b")
    scene.writer.apply([])
    #expect(scene.lane.isClosed)
    #expect(scene.completed == ["a", "b"])
    #expect(scene.loop.timers.earliest == nil)
  }

  @Test func `closing calls all completions once and ends the thread`() {
    let scene = WriterScene(.four)
    for name in ["a", "b", "c"] { scene.add(addresses("192.0.2.1"), to: .four, as: name) }
    let lane = scene.lane
    scene.writer.close()
    #expect(scene.completed == ["a", "b", "c"])
    #expect(lane.isClosed)
    lane.deliver(1, [SetReport(.four)])
    scene.loop.advance(by: .seconds(60))
    #expect(scene.completed == ["a", "b", "c"])
    scene.add(addresses("192.0.2.1"), to: .four, as: "d")
    #expect(scene.completed == ["a", "b", "c", "d"])
    #expect(scene.lanes.count == 1)
    scene.writer.apply([.four])
    scene.add(addresses("192.0.2.1"), to: .four, as: "e")
    scene.run()
    #expect(scene.lanes.count == 2 && scene.status(.four).added == 1)
  }

  @Test func `a writer that is released closes its thread`() {
    let loop = SimulatedLoop()
    var lane: HeldLane?
    var writer: SetWriter? = SetWriter(
      on: loop,
      makeLane: { deliver throws(SetFailure) in
        let made = HeldLane(SetExchange(FakeSetKernel(clock: { loop.now }), clock: { loop.now }), deliver)
        lane = made
        return made
      }, refill: { _ in }, note: { _ in })
    writer?.apply([.four])
    #expect(lane?.isClosed == false)
    writer = nil
    #expect(lane?.isClosed == true)
  }

  @Test func `without a thread additions fail, and the next one tries again`() {
    let scene = WriterScene()
    scene.kernel.create(.four, .ipv4)
    scene.laneFailure = .error("no thread: Resource temporarily unavailable")
    scene.writer.apply([.four])
    scene.add(addresses("192.0.2.1"), to: .four, as: "a")
    #expect(scene.completed == ["a"])
    #expect(scene.status(.four).failed == 1)
    #expect(scene.status(.four).state == "no thread: Resource temporarily unavailable")
    scene.laneFailure = nil
    scene.add(addresses("192.0.2.1"), to: .four)
    scene.run()
    #expect(scene.status(.four).added == 1 && scene.status(.four).state == "ok")
  }

  @Test func `on a simulated loop a writer of its own works without a thread`() {
    let loop = SimulatedLoop()
    nonisolated(unsafe) let kernel = FakeSetKernel(clock: { loop.now })
    kernel.create(.four, .ipv4)
    let writer = SetWriter(on: loop, makeKernel: { kernel }, refill: { _ in }, note: { _ in })
    writer.apply([.four])
    var isCompleted = false
    writer.add(addresses("192.0.2.1"), to: [.four]) { isCompleted = true }
    #expect(!isCompleted)
    loop.advance(by: .zero)
    #expect(isCompleted)
    #expect(kernel.contents(of: .four) == ["192.0.2.1": "100"])
  }
}

@Suite struct `Another configuration of firewall sets` {
  @Test func `sets that remain keep counters and state, new ones are looked at`() {
    let scene = WriterScene(.four, .six)
    scene.add(addresses("192.0.2.1", "2001:db8::1"), to: .four, .six)
    scene.run()
    scene.kernel.create(.other, .ipv4)
    scene.writer.apply([.other, .four, .four])
    #expect(scene.writer.statuses.map(\.name) == [.other, .four])
    #expect(scene.status(.other).state == "waiting")
    #expect(scene.status(.four).added == 1)
    scene.run()
    #expect(scene.status(.other).state == "ok")
    #expect(scene.status(.other).description == SetDescription(.ipv4, hasTimeouts: true))
    // Cached addresses are not in the new set yet.
    #expect(scene.refills == [.other])
    #expect(scene.lanes.count == 1)
  }

  @Test func `an addition to a set that is removed meanwhile still completes`() {
    let scene = WriterScene(.four, .six)
    scene.add(addresses("192.0.2.1"), to: .four, as: "a")
    scene.writer.apply([.six])
    scene.run()
    #expect(scene.completed == ["a"])
    #expect(scene.writer.statuses.map(\.name) == [.six])
  }

  @Test func `sets that are applied while there is a look are looked at too`() {
    let scene = WriterScene(.four)
    scene.kernel.create(.six, .ipv6)
    scene.kernel.create(.other, .ipv4)
    scene.writer.apply([.four, .six])
    scene.writer.apply([.four, .six, .other])
    scene.run()
    #expect(scene.writer.statuses.map(\.state) == ["ok", "ok", "ok"])
  }
}
