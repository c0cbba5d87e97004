// SetFillerTests.swift -- the addresses of answers are in firewall sets before a client gets the answer, or after 50 ms.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import TestSupport
import Testing

@testable import FirewallSets
@testable import ForwarderTestSupport
@testable import Resolver
@testable import Upstreams

@Suite struct `Firewall sets and answers` {
  @Test func `a reply waits until the sets have its addresses`() throws {
    let scene = SetScene()
    scene.kernel.isHeld = true
    let number = scene.resolver.ask("www.example")
    scene.loop.advance(by: .milliseconds(45))
    #expect(scene.resolver.transactions[number].replies.isEmpty)
    #expect(scene.kernel.added.isEmpty)
    scene.kernel.release()
    scene.loop.settle()
    #expect(scene.kernel.added == ["four 93.184.216.34 160"])
    let reply = try scene.resolver.reply(number)
    #expect(reply.message.addresses == ["93.184.216.34"] && reply.after == .milliseconds(45))
    #expect(scene.statuses.map(\.added) == [1, 0], "each address is counted once")
  }

  @Test func `a kernel that is silent delays a reply by 50 ms, and a hit not at all`() throws {
    let scene = SetScene()
    scene.kernel.isHeld = true
    let number = scene.resolver.ask("www.example")
    scene.loop.advance(by: .milliseconds(69))
    #expect(scene.resolver.transactions[number].replies.isEmpty)
    scene.loop.advance(by: .milliseconds(10))
    #expect(try scene.resolver.reply(number).after == .milliseconds(70))
    #expect(scene.statuses.map(\.late) == [1, 0])
    let hit = scene.resolver.ask("www.example")
    #expect(try scene.resolver.reply(hit).after == .zero)
    scene.kernel.release()
    scene.loop.settle()
    #expect(scene.kernel.added == ["four 93.184.216.34 160"] && scene.statuses.map(\.added) == [1, 0])
  }

  @Test func `a set that refuses addresses delays no reply`() throws {
    let scene = SetScene()
    scene.kernel.failure = .missing
    let number = scene.resolver.ask("www.example")
    scene.loop.advance(by: .milliseconds(25))
    #expect(try scene.resolver.reply(number).after == .milliseconds(20))
    #expect(scene.notes == 1 && scene.statuses[0].failed == 1)
  }

  @Test func `answers of other routes, and those without addresses, need no set`() throws {
    let scene = SetScene()
    scene.kernel.isHeld = true
    scene.provider.script = { question, _ in .answer(.negative(.noError, zone: name("example"))) }
    let number = scene.resolver.ask("www.example", .mx)
    scene.loop.advance(by: .milliseconds(25))
    #expect(try scene.resolver.reply(number).after == .milliseconds(20))
    scene.kernel.release()
    #expect(scene.kernel.added.isEmpty)
  }

  @Test func `an answer that is not cached has its addresses in the sets for set_keep`() throws {
    let scene = SetScene(ttl: 0)
    _ = try scene.resolver.answer("www.example")
    _ = try scene.resolver.answer("www.example")
    #expect(scene.kernel.added.first == "four 93.184.216.34 100")
  }

  @Test func `the other family of a reply is in its set before the client that waits for it gets it`() throws {
    let scene = SetScene()
    scene.provider.along = { question in
      var other = question
      other.type = .aaaa
      return [(other, .addresses(question.name, "2606:2800:220::1", ttl: 60))]
    }
    scene.kernel.isHeld = true
    let number = scene.resolver.ask("www.example")
    scene.loop.advance(by: .milliseconds(30))
    scene.kernel.release()
    scene.loop.settle()
    #expect(try scene.resolver.reply(number).after == .milliseconds(30))
    #expect(Set(scene.kernel.added) == ["four 93.184.216.34 160", "six 2606:2800:220::1 160"])
    let six = scene.resolver.ask("www.example", .aaaa)
    #expect(try scene.resolver.reply(six).message.addresses == ["2606:2800:220::1"])
    #expect(scene.provider.count == 1)
  }

  @Test func `private addresses are added for routes that include them, and loopback never`() throws {
    for includesPrivate in [false, true] {
      let scene = SetScene(includesPrivate: includesPrivate)
      scene.provider.script = { question, _ in
        .answer(.addresses(question.name, "10.0.0.1", "127.0.0.1", "93.184.216.34", ttl: 60))
      }
      #expect(try scene.resolver.answer("www.example").addresses.count == 3)
      let other = "four 93.184.216.34 160"
      #expect(Set(scene.kernel.added) == (includesPrivate ? ["four 10.0.0.1 160", other] : [other]))
    }
  }

  @Test func `a refresh adds what it brings, without a client that waits`() throws {
    let scene = SetScene(.tested(.immediate, maxAge: 1_000))
    _ = try scene.resolver.answer("www.example")
    scene.loop.advance(by: .seconds(61))
    scene.provider.script = { question, _ in .answer(.addresses(question.name, "93.184.216.35", ttl: 60)) }
    let number = scene.resolver.ask("www.example")
    // As long as expired data may be served, and set_keep.
    #expect(try scene.resolver.reply(number).message.addresses == ["93.184.216.34"])
    #expect(scene.kernel.added == ["four 93.184.216.34 1160"])
    scene.loop.advance(by: .seconds(1))
    #expect(scene.kernel.added.last == "four 93.184.216.35 1160")
  }

  @Test func `data that never expires has its addresses in the sets for good`() throws {
    let scene = SetScene(.tested(.onFailure, isImmutable: true))
    _ = try scene.resolver.answer("www.example")
    #expect(scene.kernel.added == ["four 93.184.216.34 315360000"])
  }

  @Test func `stale data waits for the sets as well`() throws {
    let scene = SetScene(.tested(.onFailure))
    _ = try scene.resolver.answer("www.example")
    scene.loop.advance(by: .seconds(1_000))
    scene.provider.script = { _, _ in .failure() }
    scene.kernel.isHeld = true
    let first = scene.resolver.ask("www.example")
    scene.loop.advance(by: .milliseconds(40))
    #expect(scene.resolver.transactions[first].replies.isEmpty)
    scene.kernel.release()
    scene.loop.settle()
    expectStale(try scene.resolver.reply(first).message, ["93.184.216.34"])
    #expect(scene.kernel.added == ["four 93.184.216.34 160", "four 93.184.216.34 130"])
    // The next ones for half a minute come from the hot path, and are in the set.
    let second = scene.resolver.ask("www.example")
    #expect(try scene.resolver.reply(second).after == .zero)
  }

  @Test func `addresses stay in the sets for as long as expired data is served`() throws {
    let scene = SetScene(.tested(.onFailure), keep: .zero)
    _ = try scene.resolver.answer("www.example")
    scene.loop.advance(by: .seconds(100))
    scene.provider.script = { _, _ in .failure() }
    for _ in 0..<200 {
      let number = scene.resolver.ask("www.example")
      scene.loop.advance(by: .seconds(1))
      let (message, delay) = try scene.resolver.reply(number)
      expectStale(message, ["93.184.216.34"])
      let asked = scene.resolver.transactions[number].askedAt
      #expect(try #require(scene.kernel.ends["93.184.216.34"]) >= asked + delay)
    }
  }

  @Test func `a daemon that stops gives answers that wait for the kernel to their clients`() throws {
    let scene = SetScene()
    scene.kernel.isHeld = true
    let number = scene.resolver.ask("www.example")
    scene.loop.advance(by: .milliseconds(30))
    scene.resolver.resolver.assumeIsolated { $0.giveUp() }
    scene.loop.settle()
    #expect(try scene.resolver.reply(number).message.addresses == ["93.184.216.34"])
    #expect(scene.resolver.inFlight == 0)
  }

  @Test func `a refill adds the addresses of all cached answers of the routes that have the set`() throws {
    let scene = SetScene()
    for host in 1...3 {
      scene.provider.script = { question, _ in .answer(.addresses(question.name, "93.184.216.\(host)", ttl: 60)) }
      _ = try scene.resolver.answer("n\(host).example")
    }
    scene.provider.script = { _, _ in .answer(.negative(.nxDomain, zone: name("example"))) }
    _ = try scene.resolver.answer("nothing.example")
    scene.loop.advance(by: .seconds(10))
    let before = scene.kernel.added.count
    scene.writer.refillAll()
    scene.loop.advance(by: .seconds(1))
    let added = scene.kernel.added.dropFirst(before).map { $0.split(separator: " ").dropLast().joined(separator: " ") }
    // Each set is refilled by itself, with addresses of both types.
    #expect(Set(added) == ["four 93.184.216.1", "four 93.184.216.2", "four 93.184.216.3"])
    #expect(scene.provider.count == 4)
  }
}

/// A resolver whose standard route has two sets, and the kernel behind them.
private final class SetScene {
  let loop: SimulatedLoop
  let provider: ScriptedUpstream
  let resolver: ResolverScene
  let kernel: ScriptedKernel
  let writer: SetWriter
  private let told: Told

  private final class Told: @unchecked Sendable {
    var notes = 0
    var refill: (FirewallSetName) -> Void = { _ in }
  }

  init(
    _ stale: StalePolicy = .tested(.onFailure), ttl: UInt32 = 60, keep: Duration = .seconds(100),
    includesPrivate: Bool = false
  ) {
    let loop = SimulatedLoop()
    provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "93.184.216.34", ttl: ttl))
    }
    let sets = ["inet#fw#four", "inet#fw#six"].map { try! FirewallSetName(text: $0) }
    resolver = ResolverScene(on: loop, [provider]) {
      $0.setStale(stale)
      $0.routes[0].sets = RouteSets(names: sets, keep: keep, includesPrivate: includesPrivate)
    }
    let (kernel, told) = (ScriptedKernel(on: loop), Told())
    writer = SetWriter(
      on: loop,
      makeLane: { (deliver) throws(SetFailure) in
        kernel.deliver = deliver
        return kernel
      }, refill: { told.refill($0) }, note: { _ in told.notes += 1 })
    (self.loop, self.kernel, self.told) = (loop, kernel, told)
    nonisolated(unsafe) let filler = SetFiller(writer)
    resolver.resolver.assumeIsolated { $0.use(filler) }
    writer.apply(sets)
    loop.advance(by: .zero)
    let actor = resolver.resolver
    told.refill = { set in
      nonisolated(unsafe) let used = filler
      loop.startTask { await actor.console { await $0.refill([set], by: used) } }
    }
  }

  var statuses: [SetStatus] { writer.statuses }
  var notes: Int { told.notes }
}

/// Sets that get every address, when the test lets them. A set is of IPv6 if its name is `six`.
private final class ScriptedKernel: ExchangeLane {
  var deliver: Deliver = { _, _ in }
  /// Whether work waits for `release`.
  var isHeld = false
  var failure: SetFailure?
  /// What was added: set, address, seconds.
  private(set) var added: [String] = []
  /// Until when an address is in its set.
  private(set) var ends: [String: BootInstant] = [:]
  private var queue: [(number: Int, work: SetWork)] = []
  private let loop: SimulatedLoop

  init(on loop: SimulatedLoop) { self.loop = loop }

  func submit(_ number: Int, _ work: SetWork) {
    queue.append((number, work))
    if !isHeld { loop.inNextTurn { [weak self] in self?.work() } }
  }

  func close() { queue = [] }

  /// Does what waits, and waits no more.
  func release() {
    isHeld = false
    work()
  }

  private func work() {
    guard !isHeld else { return }
    let waiting = queue
    queue = []
    for (number, work) in waiting {
      switch work {
      case .look(let sets): deliver(number, sets.map { report($0, []) })
      case .add(let batch): deliver(number, batch.sets.map { report($0, batch.addresses) })
      }
    }
  }

  private func report(_ set: FirewallSetName, _ addresses: [SetAddress]) -> SetReport {
    var report = SetReport(set)
    let description = SetDescription(set.set == "six" ? .ipv6 : .ipv4, hasTimeouts: true)
    let fitting = addresses.filter { description.accepts($0.address) }
    guard failure == nil else {
      (report.failure, report.failed) = (failure, fitting.count)
      return report
    }
    report.description = description
    report.added = fitting.count
    for addition in fitting {
      let end = loop.now + addition.lifetime
      ends["\(addition.address)"] = max(end, ends["\(addition.address)"] ?? end)
    }
    added += fitting.map { "\(set.set) \($0.address) \($0.lifetime.components.seconds)" }
    return report
  }
}
