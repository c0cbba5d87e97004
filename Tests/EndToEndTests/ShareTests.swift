// ShareTests.swift -- a client or a zone that wants everything, in the default configuration: others are served.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ShareTests {
  /// Sends `count` queries for random names of one domain in `duration`, and calls `between` all the while.
  private func flood(
    _ server: Address, _ count: Int, below domain: String, in duration: Duration, _ between: (Int) throws -> Void
  ) throws -> Duration {
    let socket = try Socket(SOCK_DGRAM)
    try socket.connect(to: server)
    let start = ContinuousClock.now
    let ticks = 50
    for tick in 0..<ticks {
      for number in 0..<count / ticks { socket.send(TestQuery("x\(tick)-\(number).\(domain)").octets) }
      while socket.receive(within: .zero) != nil {}
      try between(tick)
      let end = start + duration * (tick + 1) / ticks
      while ContinuousClock.now < end { _ = socket.receive(within: min(.milliseconds(20), max(.zero, end - .now))) }
    }
    return .now - start
  }

  @Test(arguments: ["127.0.0.1", "127.0.0.2"])
  func `10,000 random names of one domain in 5 s cost 500 billed transfers at most, and others are answered`(
    others: String
  ) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.setZone("*.flood.example. 60 A 192.0.2.1\n*.good.example. 60 A 192.0.2.2")
      var settings = Settings(AccountKind.named("tencent, aes over HTTP").provider(simulator))
      settings.shares = ""
      let daemon = try lab.daemon(settings.text)
      let time = try flood(daemon.address, 10_000, below: "flood.example", in: .seconds(5)) { tick in
        let reply = try ask(daemon.address, TestQuery("n\(tick).good.example"), from: others)
        #expect(reply.data == ["192.0.2.2"])
      }
      let transfers = try simulator.count.transfers
      // What a busy machine takes longer for is as many seconds more.
      let seconds = Double(time.components.seconds) + 1
      #expect(transfers <= 200 + Int(50 * max(5, seconds)) + 50)
      #expect(time > .seconds(6) || transfers <= 500 + 50)
      #expect(transfers >= 200)
      try daemon.waitForLog(" than listen.misses_per_domain ")
      #expect(daemon.log.split(separator: "\n").count { $0.contains(" than listen.misses_per_domain ") } == 1)
    }
  }

  @Test(arguments: ["127.0.0.1", "127.0.0.2"])
  func `1,100 slow questions leave others their answers, 20 of 20`(others: String) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.setZone("*.slow.example. 60 A 192.0.2.1\n*.good.example. 60 A 192.0.2.2")
      try simulator.fault("kind=stall&below=slow.example")
      var settings = Settings(Settings.json(simulator.http))
      settings.shares = ""
      let daemon = try lab.daemon(settings.text)
      try ask(daemon.address, "first.good.example")
      var answered = 0
      _ = try flood(daemon.address, 1_100, below: "slow.example", in: .seconds(2)) { tick in
        guard tick >= 10, tick < 30 else { return }
        let reply = try ask(daemon.address, TestQuery("n\(tick).good.example"), from: others)
        if reply.data == ["192.0.2.2"] { answered += 1 }
      }
      #expect(answered == 20, "\(daemon.log.suffix(2000))")
    }
  }

  @Test func `beyond rate_limit a client gets TC over UDP and its answer over TCP, and another one all of them`() throws
  {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      settings.listen = "rate_limit = 20\nworkers = 2"
      let daemon = try lab.daemon(settings.text)
      try ask(daemon.address, TestQuery("example.com"), from: "127.0.0.2")
      let replies = try (0..<60).map { _ in try ask(daemon.address, "example.com") }
      let cut = replies.filter { $0.message.header.tc }
      #expect(cut.count >= 10)
      #expect(cut.allSatisfy { $0.data.isEmpty && $0.code == .noError })
      #expect(replies.prefix(20).allSatisfy { $0.data == ["192.0.2.1"] })
      #expect(try ask(daemon.address, "example.com", over: .tcp).data == ["192.0.2.1"])
      #expect(try ask(daemon.address, TestQuery("example.com"), from: "127.0.0.2").data == ["192.0.2.1"])
      try daemon.waitForLog("than listen.rate_limit allows")
      #expect(daemon.log.contains("wait up to 1 s; raise the limit if this load is legitimate"))
    }
  }
}
