// FleetTests.swift -- daemons that share a real store: what they save, what a flush reaches, and what a bad store costs.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct FleetTests {
  private static let secret = "0123456789abcdef0123456789abcdef"

  private static let sealed = "secret = \"\(secret)\""
  /// Where answers are to come from the store, also on a machine that is busy.
  private static let patient = "\(sealed)\ntimeout = \"500ms\"\nwait = \"2s\""

  /// A configuration with a control socket of its own.
  private func settings(
    _ lab: Lab, _ number: Int, _ provider: String, redis: String, _ fleet: String = FleetTests.patient
  ) -> String {
    var settings = Settings(provider)
    settings.control = "socket = \"\(lab.folder.path)/control-\(number)\""
    settings.more = "[cache]\nredis = \"\(redis)\"\n[fleet]\n\(fleet)\n"
    return settings.text
  }

  private func control(_ lab: Lab, _ number: Int, _ arguments: String...) throws -> String {
    let (_, output, error) = try lab.run(arguments + ["--socket", "\(lab.folder.path)/control-\(number)"])
    guard error.isEmpty else { throw Failure("\(arguments): \(error)") }
    return output
  }

  /// Waits until a daemon uses the store.
  private func join(_ lab: Lab, _ number: Int) throws {
    try eventually("daemon \(number) uses the store", within: .seconds(20)) {
      let fleet = try control(lab, number, "fleet", "--json")
      return fleet.contains("\"is_used\":true") ? true : nil
    }
  }

  /// Asks a daemon for a name that no store knows, and waits until the store has the answer, which comes to it later than to us.
  private func share(_ lab: Lab, _ number: Int, _ daemon: Daemon, _ name: String) throws {
    func writes() throws -> Int? {
      try control(lab, number, "fleet").firstMatch(of: /(\d+) written/).flatMap { Int($0.1) }
    }
    let before = try writes()
    try ask(daemon.address, name)
    try eventually("the store has the answer") { try writes() == before ? nil : true }
  }

  @Test(arguments: StoreServer.installed)
  func `a URL alone is enough: the second daemon gets the first one's answer, and both are members`(server: StoreServer)
    throws
  {
    try withLab { lab in
      let simulator = try lab.simulator()
      let store = try RedisServer(server, in: lab)
      let daemons = try (0..<2).map { number in
        try lab.daemon(settings(lab, number, Settings.json(simulator.http), redis: "unix://\(store.socket)", ""))
      }
      for number in 0..<2 { try join(lab, number) }
      // On a busy machine a look may be late, as the store may.
      var number = 0
      try eventually("an answer of the first daemon") { () -> Bool? in
        number += 1
        let name = "n\(number).bench.example"
        let values = try store.command("KEYS", "httpdnsd:1:c:*")
        let first = try ask(daemons[0].address, name)
        guard try store.command("KEYS", "httpdnsd:1:c:*") != values else { return nil }
        let transfers = try simulator.count.transfers
        #expect(try ask(daemons[1].address, name).data == first.data)
        return try simulator.count.transfers == transfers ? true : nil
      }
      try eventually("both are members") {
        try control(lab, 1, "fleet").components(separatedBy: "the same").count == 3 ? true : nil
      }
      let fleet = try control(lab, 1, "fleet")
      #expect(fleet.contains("unix://") && fleet.contains(/[1-9]\d* % hits/), "\(fleet)")
      #expect(fleet.contains("not sealed: fleet.secret_file is not set"))
      #expect(try control(lab, 1, "stats").contains("1 answer of other daemons"))
      let doctor = try lab.run(["doctor", "--config", daemons[1].configuration]).output
      #expect(doctor.contains("store unix://\(store.socket)") && doctor.contains("fleet"), "\(doctor)")
      store.process.signal(SIGKILL)
      try eventually("doctor says that the store is gone") {
        try ask(daemons[1].address, "n9.bench.example")
        let doctor = try lab.run(["doctor", "--config", daemons[1].configuration]).output
        return doctor.contains("not used") || doctor.contains("refused") ? true : nil
      }
      // The command reports why the other daemons are not notified.
      let flush = try lab.run(["flush", "--socket", "\(lab.folder.path)/control-1"])
      #expect(flush.ending == .exited(2) && flush.output.contains("were not notified: the store is "), "\(flush)")
      #expect(flush.output.contains("cannot connect") || flush.output.contains("connection lost"), "\(flush)")
    }
  }

  @Test func `ten daemons that are asked for a cold name at once need at most two transfers`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let store = try RedisServer(in: lab)
      let daemons = try (0..<10).map { number in
        try lab.daemon(settings(lab, number, Settings.json(simulator.http), redis: store.url))
      }
      for number in 0..<10 { try join(lab, number) }
      try simulator.fault("kind=delay&ms=100")
      let query = TestQuery("n7.bench.example")
      let sockets = try daemons.map { daemon in
        let socket = try Socket(SOCK_DGRAM, family: daemon.address.family)
        try socket.connect(to: daemon.address)
        return socket
      }
      for socket in sockets { socket.send(query.octets) }
      for socket in sockets {
        #expect(try Reply(try #require(socket.receive()), to: query).data == ["198.18.0.7"])
      }
      #expect(try simulator.count.transfers <= 2)
      // Nothing of the name can be read in the store.
      let keys = try store.command("KEYS", "*").split(separator: "\n").filter { $0.contains(":c:") }
      let key = try #require(keys.first)
      #expect(try !store.command("GET", String(key)).contains("bench"))
    }
  }

  @Test(arguments: StoreServer.installed)
  func `a flush reaches every daemon, and nothing of it comes back from the store`(server: StoreServer) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let store = try RedisServer(server, in: lab)
      let daemons = try (0..<3).map { number in
        try lab.daemon(settings(lab, number, Settings.json(simulator.http), redis: store.url))
      }
      for number in 0..<3 { try join(lab, number) }
      try share(lab, 0, daemons[0], "n1.bench.example")
      try share(lab, 2, daemons[2], "n2.bench.example")
      for daemon in daemons { try ask(daemon.address, "n1.bench.example") }
      for daemon in daemons { try ask(daemon.address, "n2.bench.example") }
      let output = try control(lab, 0, "flush", "n1.bench.example")
      #expect(output.contains("notified: 2 other daemons of the fleet"), "\(output)")
      for number in 1..<3 {
        let content = try eventually("daemon \(number) has flushed") {
          let content = try control(lab, number, "cache", "n1.bench.example")
          return content.contains("198.18.0.1") ? nil : content
        }
        #expect(!content.contains("198.18.0.1"))
        #expect(try control(lab, number, "cache", "n2.bench.example").contains("198.18.0.2"))
      }
      let before = try simulator.count.transfers
      try share(lab, 0, daemons[0], "n1.bench.example")
      for daemon in daemons { try ask(daemon.address, "n1.bench.example") }
      let shown = try (0..<3).map { try control(lab, $0, "fleet") }
      #expect(try simulator.count.transfers == before + 1, "\(shown)")
      // To this machine alone.
      #expect(try !control(lab, 0, "flush", "--local", "n2.bench.example").contains("notified"))
      #expect(try control(lab, 1, "cache", "n2.bench.example").contains("198.18.0.2"))
    }
  }

  @Test(arguments: StoreServer.installed)
  func `a store that stands still costs the first misses its timeout, and hits nothing`(server: StoreServer) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let store = try RedisServer(server, in: lab)
      let daemon = try lab.daemon(settings(lab, 0, Settings.json(simulator.http), redis: store.url, FleetTests.sealed))
      try join(lab, 0)
      try ask(daemon.address, "n0.bench.example")
      store.process.signal(SIGSTOP)
      for number in 1..<20 {
        #expect(try ask(daemon.address, "n\(number).bench.example").data == ["198.18.0.\(number)"])
      }
      #expect(try control(lab, 0, "fleet", "--json").contains("\"is_up\":false"))
      let (_, took) = try timed { for _ in 0..<50 { try ask(daemon.address, "n0.bench.example") } }
      #expect(took < .seconds(1))
      store.process.signal(SIGCONT)
      try join(lab, 0)
    }
  }

  @Test func `a daemon starts without its store, and uses it when it comes`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let reserved = try Socket(SOCK_STREAM, boundTo: Address("127.0.0.1", 0), reusing: true)
      let port = reserved.address.port
      let daemon = try lab.daemon(
        settings(lab, 0, Settings.json(simulator.http), redis: "redis://127.0.0.1:\(port)"))
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      try daemon.waitForLog("store")
      _ = try RedisServer(in: lab, port: port)
      var number = 2
      try eventually("the store is used", within: .seconds(30)) {
        try ask(daemon.address, "n\(number).bench.example")
        number += 1
        return try control(lab, 0, "fleet", "--json").contains("\"is_up\":true") ? true : nil
      }
    }
  }

  @Test(arguments: StoreServer.installed)
  func `units_per_day is the fleet's`(server: StoreServer) throws {
    try withLab { lab in
      let kind = AccountKind.named("tencent, aes over HTTP")
      let simulator = try lab.simulator()
      let store = try RedisServer(server, in: lab)
      let daemons = try (0..<2).map { number in
        let provider = kind.provider(simulator, "units_per_day = 6\nunits_reserve = 0")
        return try lab.daemon(
          settings(lab, number, provider, redis: store.url),
          environment: ["STATE_DIRECTORY": "\(lab.folder.path)/state-\(number)"])
      }
      for number in 0..<2 { try join(lab, number) }
      for number in 0..<5 {
        for (index, daemon) in daemons.enumerated() {
          try ask(daemon.address, "n\(10 * index + number).bench.example")
          try eventually("what was spent is in the store") {
            let spent = try store.command("GET", store.command("KEYS", "httpdnsd:1:u:*"))
            return spent == "\(try simulator.count.transfers * kind.price)" ? true : nil
          }
        }
      }
      #expect(try simulator.count.transfers == 6)
      let fleet = try control(lab, 0, "fleet")
      #expect(fleet.contains("6 of 6 today, by all daemons of the fleet"), "\(fleet)")
    }
  }

  @Test(arguments: StoreServer.installed)
  func `the documented user may do all that a daemon does, and a wrong password is one error line`(server: StoreServer)
    throws
  {
    try withLab { lab in
      let simulator = try lab.simulator()
      let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../docs/fleet.md")
      let line = try #require(
        String(contentsOf: page, encoding: .utf8).split(separator: "\n").first { $0.hasPrefix("user httpdnsd on ") })
      let rights = line.split(separator: " ").dropFirst(2).map { $0 == ">PASSWORD" ? ">pw" : String($0) }
      let store = try RedisServer(server, in: lab)
      try store.command("ACL", "SETUSER", "httpdnsd")
      for right in rights { try store.command("ACL", "SETUSER", "httpdnsd", right) }
      let fleet = "user = \"httpdnsd\"\npassword = \"pw\"\nsecret = \"\(FleetTests.secret)\""
      let daemon = try lab.daemon(settings(lab, 0, Settings.json(simulator.http), redis: store.url, fleet))
      try join(lab, 0)
      try ask(daemon.address, "n1.bench.example")
      #expect(try control(lab, 0, "flush").contains("notified: 0 other daemons"))
      try eventually("the daemon is a member") { try control(lab, 0, "fleet").contains("this one") ? true : nil }
      #expect(try store.command("ACL", "LOG").isEmpty || !store.command("ACL", "LOG").contains("httpdnsd"))
      #expect(!daemon.log.contains("NOPERM"))

      let wrong = try lab.daemon(
        settings(lab, 1, Settings.json(simulator.http), redis: store.url, "user = \"httpdnsd\"\npassword = \"no\""))
      try wrong.waitForLog("WRONGPASS")
      #expect(try ask(wrong.address, "n2.bench.example").data == ["198.18.0.2"])
      // A reload retries the repaired user at once, and not after a minute.
      try store.command("ACL", "SETUSER", "httpdnsd", ">no")
      _ = try control(lab, 1, "reload")
      try join(lab, 1)
    }
  }

  @Test func `a reload takes another store, and none`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let stores = try (0..<2).map { try RedisServer(in: lab, number: $0) }
      let daemon = try lab.daemon(settings(lab, 0, Settings.json(simulator.http), redis: stores[0].url))
      try join(lab, 0)
      for redis in [stores[1].url, ""] {
        try settings(lab, 0, Settings.json(simulator.http), redis: redis).write(
          toFile: daemon.configuration, atomically: true, encoding: .utf8)
        _ = try control(lab, 0, "reload")
        if redis.isEmpty {
          #expect(try control(lab, 0, "fleet").hasPrefix("no store"))
        } else {
          try join(lab, 0)
          #expect(try control(lab, 0, "fleet").contains(redis))
        }
      }
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
    }
  }
}
