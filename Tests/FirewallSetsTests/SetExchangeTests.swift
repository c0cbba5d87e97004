// SetExchangeTests.swift -- what is asked of the kernel and changed in it, against sets in memory.

import Configuration
import DNSWire
import EventLoop
@testable import FirewallSets
import TestSupport
import Testing

/// An exchange with a kernel that has `four` and `six`.
private struct Scene {
  let loop = SimulatedLoop()
  let kernel: FakeSetKernel
  let exchange: SetExchange

  init(timeouts: Bool = true) {
    let loop = loop
    kernel = FakeSetKernel(clock: { loop.now })
    exchange = SetExchange(kernel, clock: { loop.now })
    kernel.create(.four, .ipv4, timeouts: timeouts)
    kernel.create(.six, .ipv6, timeouts: timeouts)
  }

  @discardableResult
  func add(_ addresses: [SetAddress], to sets: FirewallSetName...) -> [SetReport] {
    exchange.add(SetBatch(addresses: addresses, sets: sets))
  }

  func lost(_ sets: FirewallSetName...) -> [Bool] { exchange.look(sets).map(\.isLost) }
}

@Suite struct `An exchange with the kernel` {
  @Test func `all addresses of an answer are one batch, each in the sets of its type`() {
    let scene = Scene()
    scene.kernel.create(.other, .ipv4)
    let reports = scene.add(addresses("192.0.2.1", "192.0.2.2", "2001:db8::1"), to: .four, .six, .other)
    #expect(reports.map(\.added) == [2, 1, 2])
    #expect(reports.allSatisfy { $0.failure == nil && $0.failed == 0 && !$0.isLost })
    #expect(scene.kernel.commits.count == 1)
    #expect(scene.kernel.contents(of: .four) == ["192.0.2.1": "100", "192.0.2.2": "100"])
    #expect(scene.kernel.contents(of: .six) == ["2001:db8::1": "100"])
    #expect(scene.kernel.contents(of: .other).count == 2)
  }

  @Test func `a large answer is several batches`() {
    let scene = Scene()
    let many = (0..<300).map {
      SetAddress(IPAddress(octets: [192, 0, UInt8($0 / 256), UInt8($0 % 256)])!, lifetime: .seconds(9))
    }
    #expect(scene.add(many, to: .four).first?.added == 300)
    #expect(scene.kernel.commits.map { $0[0].elements.count } == [128, 128, 44])
  }

  @Test func `a set without timeouts keeps its elements for good`() {
    let scene = Scene(timeouts: false)
    scene.add(addresses("192.0.2.1"), to: .four)
    #expect(scene.kernel.contents(of: .four) == ["192.0.2.1": "forever"])
    scene.add(addresses("192.0.2.1", for: 500), to: .four)
    #expect(scene.kernel.commits.count == 1)
  }

  @Test func `a later answer prolongs an element`() {
    let scene = Scene()
    scene.add(addresses("192.0.2.1"), to: .four)
    scene.loop.advance(by: .seconds(40))
    scene.add(addresses("192.0.2.1"), to: .four)
    #expect(scene.kernel.contents(of: .four) == ["192.0.2.1": "100"])
  }

  @Test func `no answer shortens an element, and one that changes nothing costs no commit`() {
    let scene = Scene()
    scene.add(addresses("192.0.2.1", for: 1000), to: .four)
    let report = scene.add(addresses("192.0.2.1", for: 30), to: .four)[0]
    #expect(report.added == 1 && report.failure == nil)
    #expect(scene.kernel.contents(of: .four) == ["192.0.2.1": "1000"])
    #expect(scene.kernel.commits.count == 1)
  }

  @Test func `what others have put into a set is neither shortened nor made to expire`() {
    let scene = Scene()
    scene.kernel.put("192.0.2.1", in: .four, for: nil)
    scene.kernel.put("192.0.2.2", in: .four, for: .seconds(5000))
    scene.kernel.put("192.0.2.3", in: .four, for: .seconds(5))
    let report = scene.add(addresses("192.0.2.1", "192.0.2.2", "192.0.2.3"), to: .four)[0]
    #expect(report.added == 3)
    #expect(
      scene.kernel.contents(of: .four) == ["192.0.2.1": "forever", "192.0.2.2": "5000", "192.0.2.3": "100"])
  }

  @Test func `sets are described again only if the rule set has changed`() {
    let scene = Scene()
    for seconds in [100, 200, 300] { scene.add(addresses("192.0.2.1", "2001:db8::1", for: seconds), to: .four, .six) }
    #expect(scene.kernel.describes == 2)
    scene.kernel.change()
    scene.add(addresses("192.0.2.1", for: 400), to: .four)
    #expect(scene.kernel.describes == 3)
  }

  @Test func `a set that was created again with other flags gets elements of these flags`() {
    let scene = Scene()
    scene.add(addresses("192.0.2.1"), to: .four)
    scene.kernel.create(.four, .ipv4, timeouts: false, interval: true)
    scene.add(addresses("192.0.2.2"), to: .four)
    #expect(scene.kernel.contents(of: .four) == ["192.0.2.2": "forever"])
    #expect(scene.kernel.commits.last?[0].description.isInterval == true)
  }
}

@Suite struct `An exchange with a kernel that refuses` {
  @Test func `a missing set does not keep addresses out of the others`() {
    let scene = Scene()
    let reports = scene.add(addresses("192.0.2.1"), to: .other, .four)
    #expect(reports.map(\.failure) == [.missing, nil])
    #expect(reports.map(\.failed) == [1, 0])
    #expect(reports.map(\.added) == [0, 1])
    #expect(scene.kernel.commits.count == 1)
  }

  @Test(arguments: [SetFailure.otherKey("ether_addr"), .map, .constant])
  func `a set that is no set of addresses fails for its reason`(failure: SetFailure) {
    let scene = Scene()
    scene.kernel.createUnusable(.other, failure)
    let reports = scene.add(addresses("192.0.2.1"), to: .other, .four)
    #expect(reports.map(\.failure) == [failure, nil])
  }

  @Test func `a full set does not keep addresses out of the others`() {
    let scene = Scene()
    scene.kernel.create(.other, .ipv4, size: 1)
    scene.add(addresses("192.0.2.1"), to: .other)
    let reports = scene.add(addresses("192.0.2.2", "192.0.2.3"), to: .other, .four)
    #expect(reports.map(\.failure) == [.full, nil])
    #expect(reports.map(\.failed) == [2, 0])
    #expect(scene.kernel.contents(of: .four).count == 2)
    #expect(scene.kernel.contents(of: .other).count == 1)
  }

  @Test func `a batch that others overtake is made again from what they left`() {
    let scene = Scene()
    var isFirst = true
    scene.kernel.beforeCommit = { [kernel = scene.kernel] in
      if isFirst { kernel.put("192.0.2.1", in: .four, for: .seconds(7777)) }
      isFirst = false
    }
    let report = scene.add(addresses("192.0.2.1", "192.0.2.2"), to: .four)[0]
    #expect(report.added == 2 && report.failure == nil)
    #expect(scene.kernel.contents(of: .four) == ["192.0.2.1": "7777", "192.0.2.2": "100"])
  }

  @Test func `a set that vanishes before the commit is missing`() {
    let scene = Scene()
    scene.kernel.beforeCommit = { [kernel = scene.kernel] in kernel.delete(.four) }
    #expect(scene.add(addresses("192.0.2.1"), to: .four)[0].failure == .missing)
  }

  @Test func `a rule set that changes all the time is given up`() {
    let scene = Scene()
    var attempts = 0
    scene.kernel.beforeCommit = { [kernel = scene.kernel] in
      kernel.change()
      attempts += 1
    }
    #expect(scene.add(addresses("192.0.2.1"), to: .four)[0].failure == .contended)
    #expect(attempts == SetExchange.attempts)
  }

  @Test(arguments: [SetFailure.notPermitted, .unsupported, .noReply, .error("Cannot allocate memory")])
  func `what the kernel refuses altogether fails in every set`(failure: SetFailure) {
    let scene = Scene()
    scene.add(addresses("192.0.2.1"), to: .four)
    scene.kernel.failure = failure
    let reports = scene.add(addresses("192.0.2.2", "2001:db8::1"), to: .four, .six)
    #expect(reports.map(\.failure) == [failure, failure])
    scene.kernel.failure = nil
    #expect(scene.add(addresses("192.0.2.2"), to: .four)[0].added == 1)
  }

  @Test func `a commit that fails as a whole fails in every set`() {
    let scene = Scene()
    scene.kernel.beforeCommit = { [kernel = scene.kernel] in kernel.failure = .error("Cannot allocate memory") }
    let reports = scene.add(addresses("192.0.2.2", "2001:db8::1"), to: .four, .six)
    #expect(reports.map(\.failed) == [1, 1])
    #expect(scene.kernel.commits.isEmpty)
  }
}

@Suite struct `A set that loses its addresses` {
  @Test func `an emptied set is noticed by a look`() {
    let scene = Scene()
    scene.add(addresses("192.0.2.1", "2001:db8::1"), to: .four, .six)
    #expect(scene.lost(.four, .six) == [false, false])
    scene.kernel.flush(.four)
    #expect(scene.lost(.four, .six) == [true, false])
    #expect(scene.lost(.four, .six) == [false, false])
  }

  @Test func `an emptied set is noticed by an addition, even of the address that is missed`() {
    let scene = Scene()
    scene.add(addresses("192.0.2.1"), to: .four)
    scene.kernel.flush(.four)
    let report = scene.add(addresses("192.0.2.1"), to: .four)[0]
    #expect(report.isLost && report.added == 1)
    #expect(scene.lost(.four) == [false])
  }

  @Test func `a set that was deleted and created again is noticed`() {
    let scene = Scene()
    scene.add(addresses("192.0.2.1"), to: .four)
    scene.kernel.delete(.four)
    #expect(scene.exchange.look([.four]).map(\.failure) == [.missing])
    scene.kernel.create(.four, .ipv4)
    #expect(scene.lost(.four) == [true])
  }

  @Test func `a set that was created again for the other family is noticed`() {
    let scene = Scene()
    scene.add(addresses("192.0.2.1"), to: .four)
    scene.kernel.create(.four, .ipv6)
    let report = scene.exchange.look([.four])[0]
    #expect(report.isLost && report.description?.key == .ipv6)
  }

  @Test func `an element that has expired is not missed`() {
    let scene = Scene()
    scene.add(addresses("192.0.2.1", for: 10), to: .four)
    scene.loop.advance(by: .seconds(11))
    scene.kernel.change()
    #expect(scene.lost(.four) == [false])
  }

  @Test func `the element that ends last is the one that is looked up`() {
    let scene = Scene()
    scene.add(addresses("192.0.2.1", for: 10) + addresses("192.0.2.2", for: 300), to: .four)
    scene.add(addresses("192.0.2.3", for: 20), to: .four)
    scene.loop.advance(by: .seconds(200))
    scene.kernel.flush(.four)
    #expect(scene.lost(.four) == [true])
  }

  @Test func `nothing is looked up while no other process changes the rule set`() {
    let scene = Scene()
    scene.add(addresses("192.0.2.1"), to: .four)
    let lookUps = scene.kernel.lookUps
    for _ in 0..<5 { _ = scene.exchange.look([.four, .six]) }
    #expect(scene.kernel.lookUps == lookUps)
  }
}
