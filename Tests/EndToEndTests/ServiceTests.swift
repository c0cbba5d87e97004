// ServiceTests.swift -- under a service manager: inherited sockets, its messages, the watchdog, stuck threads.

import DNSWire
import Foundation
import Testing

extension Daemon {
  /// What it has warned of, beside plain HTTP.
  fileprivate var warnings: [String] {
    log.split(separator: "\n").compactMap { $0.firstMatch(of: /WARNING (.*)/).map { String($0.1) } }
      .filter { !$0.contains("over http ") }
  }
}

@Suite(.blocking) struct ServiceTests {
  /// Freezing a thread and large buffers need privileges.
  static let isPrivileged = geteuid() == 0

  private func settings(_ simulator: Simulator, at addresses: [String] = ["127.0.0.1:0"]) -> Settings {
    var settings = Settings(Settings.json(simulator.http))
    settings.addresses = addresses
    return settings
  }

  @Test(arguments: [1, 3])
  func `inherited sockets are served in place of listen.addresses`(workers: Int) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let sockets = try HeldSockets()
      var settings = settings(simulator)
      settings.listen = "workers = \(workers)"
      let daemon = try lab.activated(settings.text, sockets.descriptors)
      #expect(daemon.addresses == [sockets.address])
      for transport in Transport.allCases {
        #expect(try ask(sockets.address, "example.com", over: transport).data == ["192.0.2.1"])
      }
      #expect(try Dig.dig.ask(sockets.address, "example.com").data == ["192.0.2.1"])
      #expect(
        daemon.warnings == [
          "listen.addresses (127.0.0.1:0) is not used: the service manager listens on \(sockets.address)"
        ])
    }
  }

  @Test func `inherited sockets at the configured addresses cause no warning`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let sockets = try HeldSockets()
      let daemon = try lab.activated(
        settings(simulator, at: ["\(sockets.address)"]).text, sockets.descriptors, names: ["dns", "dns"])
      #expect(daemon.warnings.isEmpty)
      #expect(try ask(sockets.address, "example.com").data == ["192.0.2.1"])
      #expect(daemon.log.contains("listening on \(sockets.address), UDP and TCP\n"))
    }
  }

  @Test func `a datagram socket alone is served, with a warning`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let sockets = try HeldSockets()
      let address = sockets.address
      let daemon = try lab.activated(settings(simulator, at: ["\(address)"]).text, [sockets.udp.descriptor])
      #expect(try ask(address, "example.com").data == ["192.0.2.1"])
      #expect(daemon.log.contains("listening on \(address), UDP\n"))
      #expect(daemon.warnings == ["the service manager passed a UDP socket at \(address) but no TCP socket"])
    }
  }

  @Test(arguments: ["0.0.0.0", "::"])
  func `a wildcard socket that is handed over answers from the address that was asked`(host: String) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      // As systemd makes it: not blocking, and [::] may take IPv4 too.
      let socket = try Socket(SOCK_DGRAM, boundTo: Address(host, 0))
      var settings = settings(simulator)
      settings.listen = "allow = [\"127.0.0.0/8\", \"::1/128\"]"
      _ = try lab.activated(settings.text, [socket.descriptor])
      let port = socket.address.port
      for target in ["127.0.0.5", "127.0.0.1"] + (host == "::" ? ["::1"] : []) {
        // A connected client takes nothing from another address.
        #expect(try ask(Address(target, port), "localhost").data == ["127.0.0.1"])
        #expect(try ask(Address(target, port), "example.com").data == ["192.0.2.1"])
      }
    }
  }

  @Test func `a descriptor that cannot be served stops the start, by its number and name`() throws {
    try withLab { lab in
      let sockets = try HeldSockets()
      let stream = try Socket(SOCK_STREAM, boundTo: Address("127.0.0.1", 0))
      let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
      defer { close(file) }
      let configuration = try lab.file(Settings(Settings.provider("doh", "url = \"https://192.0.2.1/dns-query\"")).text)
      for (descriptor, reason) in [
        (file, "is not a socket"), (stream.descriptor, "is a TCP socket that does not listen"),
      ] {
        let descriptors = [sockets.udp.descriptor, descriptor]
        let process = try ChildProcess(
          HeldSockets.launcher + [Programs.daemon, "run", "--config", configuration],
          environment: HeldSockets.variables(descriptors, ["dns", "other.socket"]), descriptors: descriptors)
        #expect(try process.waitForEnd() == .exited(1))
        let lines = process.text(.error).split(separator: "\n")
        #expect(lines.count == 1)
        #expect(lines[0].contains(" CRITICAL descriptor 4 (other.socket) from the service manager \(reason);"))
      }
    }
  }

  @Test func `the daemon reports readiness, status and end to systemd in that order`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let manager = try NotifySocket(in: lab)
      let closed = try lab.closedAddress()
      var settings = settings(simulator)
      settings.providers.append(
        Settings.provider("doh", "name = \"second\"\nurl = \"http://\(closed)/dns-query\""))
      settings.more = "[[rule]]\nnames = [\"second.example\"]\nuse = \"second\""
      let daemon = try lab.daemon(settings.text, environment: ["NOTIFY_SOCKET": manager.path])
      let place = daemon.address
      #expect(manager.receive() == ["READY=1", "STATUS=serving on \(place); 2 providers"])
      // The address is closed: the provider is down after its second failure at the latest.
      for number in 0..<3 { _ = try ask(place, "n\(number).second.example") }
      #expect(manager.receive(within: .seconds(15)) == ["STATUS=serving on \(place); 2 providers, 1 down"])
      daemon.end()
      #expect(manager.receive() == ["STOPPING=1", "STATUS=answering the last queries"])
      #expect(manager.receive(within: .milliseconds(100)) == nil)
    }
  }

  @Test func `a reload is reported to systemd from start to end, with the reason of a refusal`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let manager = try NotifySocket(in: lab)
      let good = settings(simulator)
      let daemon = try lab.daemon(good.text, environment: ["NOTIFY_SOCKET": manager.path])
      let serving = "STATUS=serving on \(daemon.address); 1 provider"
      #expect(manager.receive() == ["READY=1", serving])
      func expectReload(_ text: String, _ line: String, _ status: String) throws {
        let before = monotonicMicroseconds()
        try daemon.reload(text, expecting: line)
        let began = try #require(manager.receive())
        #expect(began.count == 2 && began[0] == "RELOADING=1")
        let time = try #require(began[1].firstMatch(of: /^MONOTONIC_USEC=(\d+)$/).flatMap { Int64($0.1) })
        #expect((before...monotonicMicroseconds()).contains(time))
        #expect(manager.receive() == ["READY=1", status])
      }
      let (taken, refused) = ("INFO configuration reloaded in ", "ERROR configuration unchanged")
      var other = good
      other.more = "[cache]\nmax_ttl = \"60s\""
      try expectReload(other.text, taken, serving)
      other.more = "[cache]\nmax_ttl = \"soon\"\nstale = 7"
      let reason = try #require(
        try lab.run("check", "--config", lab.file(other.text)).error.firstMatch(of: /: (cache\.max_ttl: .*)/))
      try expectReload(
        other.text, refused, "\(serving); configuration unchanged: \(daemon.configuration): \(reason.1) (and 1 more)")
      // Still so when something else has changed, and no more with the next good file.
      try FileManager.default.removeItem(atPath: daemon.configuration)
      try expectReload(good.text, taken, serving)
      #expect(manager.receive(within: .milliseconds(100)) == nil)
    }
  }

  @Test(arguments: [[SIGHUP, SIGTERM], [SIGTERM, SIGHUP]])
  func `a reload and the end at once: nothing follows the end`(signals: [Int32]) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let manager = try NotifySocket(in: lab)
      for _ in 0..<3 {
        let daemon = try lab.daemon(settings(simulator).text, environment: ["NOTIFY_SOCKET": manager.path])
        _ = try #require(manager.receive("READY=1"))
        for signal in signals { daemon.process.signal(signal) }
        #expect(try daemon.process.waitForEnd() == .exited(0))
        #expect(manager.receive("STOPPING=1") != nil)
        #expect(manager.receive(within: .zero) == nil)
      }
    }
  }

  /// The reload waits for the listener, the end does not wait for the reload.
  @Test(.enabled(if: isPrivileged)) func `a reload interrupted by the shutdown is not reported as finished`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let manager = try NotifySocket(in: lab)
      var settings = settings(simulator)
      let daemon = try lab.daemon(settings.text, environment: ["NOTIFY_SOCKET": manager.path])
      _ = try #require(manager.receive("READY=1"))
      // A thread takes its name when it begins.
      let thread = try eventually("the listener's thread") { daemon.threads.first { $0.name == "listener" }?.id }
      let listener = try FrozenThread(thread, in: lab)
      settings.more = "[[rule]]\nnames = [\"pinned.example\"]\nuse = \"pinned\"\naddresses = [\"192.0.2.7\"]"
      try daemon.reload(settings.text, expecting: nil)
      // TCP uses the new configuration already.
      try eventually("half a reload") {
        try ask(daemon.address, "pinned.example", over: .tcp).data == ["192.0.2.7"] ? true : nil
      }
      #expect(manager.receive()?.first == "RELOADING=1")
      daemon.process.signal(SIGTERM)
      #expect(manager.receive()?.first == "STOPPING=1")
      try listener.thaw()
      #expect(try daemon.process.waitForEnd() == .exited(0))
      #expect(manager.receive(within: .zero) == nil)
    }
  }

  @Test(.enabled(if: isPrivileged), arguments: [1, 3])
  func `watchdog notifications come from idle threads, and stop if one is stuck`(workers: Int) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let manager = try NotifySocket(in: lab)
      var settings = settings(simulator, at: ["127.0.0.1:0", "[::1]:0"])
      settings.listen = "workers = \(workers)"
      let timeout = Duration.seconds(1)
      let daemon = try lab.daemon(
        settings.text, environment: ["NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1000000"])
      _ = try #require(manager.receive("READY=1"))
      for _ in 0..<3 { #expect(manager.receive("WATCHDOG=1") != nil) }
      let threads = daemon.threads
      #expect(threads.count == 1 + 2 * workers, "\(threads)")
      #expect(threads.dropFirst().allSatisfy { $0.name == "listener" }, "\(threads)")
      for thread in threads {
        let frozen = try FrozenThread(thread.id, in: lab)
        // Those from before, and one more: of threads that had gone round since the last.
        while manager.receive("WATCHDOG=1", within: .zero) != nil {}
        _ = manager.receive("WATCHDOG=1", within: timeout)
        #expect(manager.receive("WATCHDOG=1", within: timeout * 2) == nil, "\(thread)")
        try frozen.thaw()
        #expect(manager.receive("WATCHDOG=1") != nil, "\(thread)")
      }
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      #expect(
        daemon.log.contains("watchdog not notified: listener 1 of \(daemon.address) is stuck"))
    }
  }

  @Test func `received queries are answered before the end, with SERVFAIL at the latest`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let sockets = try HeldSockets()
      var slow = settings(simulator)
      slow.providers = [Settings.json(simulator.http, "timeout = \"4s\"")]
      let daemon = try lab.activated(slow.text, sockets.descriptors)
      try simulator.fault("kind=stall")
      let heard = TestQuery("n1.bench.example")
      let clients = try [Socket(SOCK_DGRAM), Socket(SOCK_STREAM)]
      for client in clients { try client.connect(to: sockets.address) }
      clients[0].send(heard.octets)
      clients[1].send(framed(heard.octets))
      try simulator.waitForTransfers(1)
      _ = try ask(sockets.address, "localhost")
      let start = ContinuousClock.now
      daemon.process.signal(SIGTERM)
      try daemon.waitForLog(" stopping\n")
      // Not read any more: it waits for the next one.
      let late = TestQuery("example.com")
      let patient = try Socket(SOCK_DGRAM)
      try patient.connect(to: sockets.address)
      try eventually("the listener's end") { daemon.threads.contains { $0.name == "listener" } ? nil : true }
      patient.send(late.octets)
      for (client, octets) in zip(clients, [clients[0].receive(), receiveFramed(clients[1])]) {
        let reply = try Reply(#require(octets), to: heard)
        #expect(reply.code == .servFail)
        #expect(reply.errors == [14])
        withExtendedLifetime(client) {}
      }
      #expect(try daemon.process.waitForEnd() == .exited(0))
      #expect(ContinuousClock.now - start < .seconds(3))
      #expect(patient.receive(within: .zero) == nil)
      try simulator.clearFaults()
      _ = try lab.activated(settings(simulator).text, sockets.descriptors)
      #expect(try Reply(#require(patient.receive()), to: late).data == ["192.0.2.1"])
    }
  }

  @Test(.enabled(if: isPrivileged))
  func `no query is lost over twenty restarts under 5,000 a second`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let sockets = try HeldSockets()
      try #require(sockets.makeRoom())
      var settings = settings(simulator)
      // A busy machine takes seconds to start a debug build; then every query that has waited comes at once.
      settings.listen = "max_in_flight = 10000"
      let configuration = settings.text
      var daemon = try lab.activated(configuration, sockets.descriptors)
      let load = try SteadyLoad(sockets.address, (0..<20).map { "n\($0).bench.example" })
      for _ in 0..<20 {
        let mark = load.sent
        try eventually("some load") { load.sent > mark + 500 ? true : nil }
        daemon.end()
        daemon = try lab.activated(configuration, sockets.descriptors)
      }
      let end = try load.end()
      #expect(end.sent > 10_000)
      #expect(end.lost == 0, "\(end)")
      #expect(end.failures.isEmpty, "\(end)")
    }
  }
}
