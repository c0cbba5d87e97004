// SetFailureTests.swift -- sets that fail, recover, and lose their addresses: state, log, refills, on a virtual clock.

import Configuration
import EventLoop
@testable import FirewallSets
import TestSupport
import Testing

@Suite struct `A firewall set that fails` {
  @Test func `the answer goes out, and the addresses are counted as failed`() {
    let scene = WriterScene(.four, .six)
    scene.kernel.delete(.four)
    scene.add(addresses("192.0.2.1", "2001:db8::1"), to: .four, .six, as: "a")
    scene.run()
    #expect(scene.completed == ["a"])
    #expect(scene.status(.four).failed == 1 && scene.status(.four).added == 0)
    #expect(scene.status(.four).state == "missing")
    #expect(scene.status(.four).description == nil)
    #expect(scene.status(.six).added == 1 && scene.status(.six).state == "ok")
  }

  @Test func `a failure is logged at most once a minute for each set`() {
    let scene = WriterScene(.four, .other)
    scene.kernel.delete(.four)
    scene.kernel.delete(.other)
    for _ in 0..<150 {
      scene.add(addresses("192.0.2.1"), to: .four, .other)
      scene.pass(1)
    }
    #expect(scene.notes.count { $0 == .failing(.four, .missing) } == 3)
    #expect(scene.notes.count == 6)
    #expect(scene.notes.allSatisfy { $0.isProblem })
  }

  @Test func `a set that is created while it is in use is found, logged and refilled without another answer`() {
    let scene = WriterScene(.four)
    scene.kernel.delete(.four)
    scene.add(addresses("192.0.2.1"), to: .four)
    scene.run()
    scene.kernel.create(.four, .ipv4)
    scene.pass(10)
    #expect(scene.status(.four).state == "ok")
    #expect(scene.notes == [.failing(.four, .missing), .recovered(.four)])
    #expect(scene.refills == [.four])
    #expect(!scene.notes[1].isProblem)
  }

  @Test func `a set that is missing at the start is logged once and refilled when it is there`() {
    let scene = WriterScene()
    scene.writer.apply([.four])
    scene.run()
    #expect(scene.notes == [.failing(.four, .missing)])
    #expect(scene.refills == [])
    scene.kernel.create(.four, .ipv4)
    scene.add(addresses("192.0.2.1"), to: .four)
    scene.run()
    #expect(scene.status(.four).added == 1)
    #expect(scene.notes.last == .recovered(.four))
    #expect(scene.refills == [.four])
  }

  @Test func `a missing permission is told apart, and its end is found`() {
    let scene = WriterScene(.four)
    scene.kernel.failure = .notPermitted
    scene.add(addresses("192.0.2.1"), to: .four)
    scene.run()
    #expect(scene.status(.four).state == "not permitted")
    // What the set is like is still known.
    #expect(scene.status(.four).description?.key == .ipv4)
    scene.kernel.failure = nil
    scene.pass(10)
    #expect(scene.notes == [.failing(.four, .notPermitted), .recovered(.four)])
    #expect(scene.refills == [.four])
  }

  @Test func `what does not fit into a full set is not refilled`() {
    let scene = WriterScene()
    scene.kernel.create(.four, .ipv4, size: 1)
    scene.writer.apply([.four])
    scene.run()
    for index in 1...30 {
      scene.add(addresses("192.0.2.\(index % 3 + 1)"), to: .four)
      scene.pass(1)
    }
    #expect(scene.status(.four).failed == 20 && scene.status(.four).added == 10)
    // Only the first one, of a new set.
    #expect(scene.refills == [.four])
  }

  @Test func `a failure of additions ends with an addition, not with a look`() {
    let scene = WriterScene(.four)
    scene.kernel.beforeCommit = { [kernel = scene.kernel] in kernel.failure = .error("Cannot allocate memory") }
    scene.add(addresses("192.0.2.1"), to: .four)
    scene.run()
    scene.kernel.beforeCommit = {}
    scene.kernel.failure = nil
    scene.pass(20)
    #expect(scene.status(.four).state == "Cannot allocate memory")
    scene.add(addresses("192.0.2.2"), to: .four)
    scene.run()
    #expect(scene.status(.four).state == "ok")
    #expect(scene.refills == [.four])
  }
}

@Suite struct `A firewall set that is emptied` {
  @Test func `it is refilled within ten seconds, and its addresses are there again`() {
    let scene = WriterScene(.four)
    scene.whenRefilled = { [unowned scene] in
      #expect($0 == .four)
      scene.add(addresses("192.0.2.1", "192.0.2.2"), to: .four)
    }
    scene.add(addresses("192.0.2.1", for: 3600), to: .four)
    scene.run()
    scene.kernel.flush(.four)
    scene.pass(10)
    #expect(scene.refills == [.four])
    #expect(scene.notes == [.lost(.four)])
    #expect(scene.kernel.contents(of: .four).count == 2)
    scene.pass(60)
    #expect(scene.refills == [.four])
  }

  @Test func `it is refilled although answers come all the time`() {
    let scene = WriterScene(.four)
    scene.pass(10)
    scene.add(addresses("192.0.2.1", for: 3600), to: .four)
    scene.run()
    scene.kernel.flush(.four)
    scene.add(addresses("192.0.2.1", for: 3600), to: .four)
    scene.run()
    #expect(scene.refills == [.four])
  }

  @Test func `a set that is emptied again and again is refilled every ten seconds at most`() {
    let scene = WriterScene(.four)
    for _ in 0..<35 {
      scene.add(addresses("192.0.2.1", for: 3600), to: .four)
      scene.run()
      scene.kernel.flush(.four)
      scene.pass(1)
    }
    #expect((3...4).contains(scene.refills.count))
    #expect(scene.notes == scene.refills.map { .lost($0) })
    scene.pass(20)
    #expect(scene.status(.four).state == "ok")
  }

  @Test func `it is looked at while its addresses are in use, and no longer`() {
    let scene = WriterScene(.four)
    scene.add(addresses("192.0.2.1", for: 100), to: .four)
    scene.run()
    scene.pass(95)
    #expect(scene.loop.timers.earliest != nil)
    scene.pass(20)
    #expect(scene.loop.timers.earliest == nil)
    scene.add(addresses("192.0.2.1", for: 100), to: .four)
    #expect(scene.loop.timers.earliest != nil)
  }

  @Test func `a look waits for the one before it`() {
    let scene = WriterScene(.four)
    scene.add(addresses("192.0.2.1", for: 3600), to: .four)
    scene.run()
    scene.loop.advance(by: .seconds(600))
    #expect(scene.lane.queue.count == 1)
  }

  @Test func `a look for a command is at all sets, and begins after one that is in flight`() throws {
    let scene = WriterScene(.four, .six)
    let other = try FirewallSetName(text: "inet#fw#other")
    scene.writer.apply([.four, .six, other])
    #expect(scene.lane.queue.count == 1)
    nonisolated(unsafe) let unsafeScene = scene
    var hasLooked = false
    scene.loop.startTask {
      await unsafeScene.writer.look()
      hasLooked = true
    }
    scene.loop.advance(by: .zero)
    #expect(scene.lane.queue.count == 1)
    scene.lane.run(1)
    scene.loop.advance(by: .zero)
    #expect(!hasLooked)
    guard case .look(let sets)? = scene.lane.queue.first?.work else {
      Issue.record("no look")
      return
    }
    #expect(sets == [.four, .six, other])
    scene.run()
    #expect(hasLooked)
    #expect(scene.writer.statuses.map { $0.failure == nil } == [true, true, false])
  }

  @Test func `a look ends with the writer`() {
    let scene = WriterScene(.four)
    nonisolated(unsafe) let unsafeScene = scene
    var hasLooked = false
    scene.loop.startTask {
      await unsafeScene.writer.look()
      await unsafeScene.writer.look()
      hasLooked = true
    }
    scene.loop.advance(by: .zero)
    scene.writer.close()
    scene.loop.advance(by: .zero)
    #expect(hasLooked)
  }

  @Test func `a command refills every set at once`() {
    let scene = WriterScene(.four, .six)
    scene.writer.refillAll()
    #expect(scene.refills == [])
    scene.loop.advance(by: .zero)
    #expect(scene.refills == [.four, .six])
    scene.writer.refillAll()
    scene.writer.apply([.six])
    scene.loop.advance(by: .zero)
    #expect(scene.refills == [.four, .six, .six])
  }
}

@Suite struct `The log of firewall sets` {
  @Test(arguments: [
    ("inet#fw#domestic4", "nft add set inet fw domestic4 '{ type ipv4_addr; flags timeout; }'"),
    ("inet#fw#domestic6", "nft add set inet fw domestic6 '{ type ipv6_addr; flags timeout; }'"),
    ("ip#fw#x6", "nft add set ip fw x6 '{ type ipv4_addr; flags timeout; }'"),
    ("ip6#fw#x", "nft add set ip6 fw x '{ type ipv6_addr; flags timeout; }'"),
  ])
  func `a missing set comes with the command that creates it`(text: String, command: String) throws {
    let name = try FirewallSetName(text: text)
    #expect(
      SetNote.failing(name, .missing).description
        == "firewall set \(text) gets no addresses: missing; create it with: \(command)")
    #expect(SetNote.failing(name, .missingTable).description.hasSuffix("&& \(command)"))
  }

  @Test func `a set that the daemon may not change comes with the capability and the drop-in`() throws {
    let note = SetNote.failing(try FirewallSetName(text: "inet#fw#a"), .notPermitted)
    #expect(note.description.contains("CAP_NET_ADMIN") && note.description.contains("httpdnsd-sets.conf"))
  }
}
