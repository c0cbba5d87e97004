// DescriptorTests.swift -- how many descriptors the daemon may open, and what happens when they run out.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct DescriptorTests {
  @Test(arguments: [(inFlight: 100, isEnough: true), (inFlight: 1000, isEnough: false)])
  func `the soft limit is raised, and a low hard limit is logged in one line`(
    load: (inFlight: Int, isEnough: Bool)
  ) throws {
    try withLab { lab in
      var settings = Settings(Settings.provider("doh", "url = \"https://192.0.2.1/dns-query\""))
      settings.listen = "tcp_connections = 10\nmax_in_flight = \(load.inFlight)"
      let process = try lab.start(
        ["prlimit", "--nofile=200:600", Programs.daemon, "run", "--config", lab.file(settings.text)])
      try process.wait(for: "ready", in: .error) { $0.contains(" ready\n") ? true : nil }
      let limits = try String(contentsOfFile: "/proc/\(process.pid)/limits", encoding: .utf8)
      #expect(limits.firstMatch(of: /Max open files\s+600\s+600\s/) != nil)
      let warnings = process.text(.error).split(separator: "\n").filter { $0.contains("descriptors") }
      #expect(warnings.count == (load.isEnough ? 0 : 1))
      #expect(warnings.allSatisfy { $0.contains("WARNING") && $0.contains("the limit is 600:") })
    }
  }

  @Test(.looksInside) func `standard descriptors that are closed at the start go to nothing else`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let sockets = try HeldSockets()
      let process = try lab.start(
        HeldSockets.launcher + [
          "sh", "-c", "exec \"$0\" run --config \"$1\" <&- >&- 2>&-", Programs.daemon,
          try lab.file(Settings(Settings.json(simulator.http)).text),
        ], environment: HeldSockets.variables(sockets.descriptors, []), descriptors: sockets.descriptors)
      #expect(try ask(sockets.address, "example.com").data == ["192.0.2.1"])
      for descriptor in 0...2 {
        let target = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process.pid)/fd/\(descriptor)")
        #expect(target == "/dev/null")
      }
      process.signal(SIGTERM)
      #expect(try process.waitForEnd() == .exited(0))
    }
  }

  @Test func `a command whose output is closed fails`() throws {
    try withLab { lab in
      let file = try lab.file("")
      let process = try lab.start(["sh", "-c", "exec \"$0\" check \"$1\" >&-", Programs.daemon, file])
      #expect(try process.waitForEnd() == .exited(1))
      #expect(process.text(.error).contains("cannot write to standard output"))
    }
  }

  @Test(arguments: ["--help", "run --help", "--help-hidden", "--experimental-dump-help"])
  func `a command whose output does not fit on the disk fails, however long it is`(words: String) throws {
    try withLab { lab in
      let process = try lab.start(["sh", "-c", "exec \"$0\" \(words) > /dev/full", Programs.daemon])
      #expect(try process.waitForEnd() == .exited(1))
      #expect(process.text(.error).contains("cannot write to standard output"))
    }
  }

  @Test(.looksInside)
  func `a question that gets no socket fails at once, and may be asked again as soon as there is one`() throws {
    try withLab { lab in
      let network = try Socket.pair().udp
      var settings = Settings(Settings.provider("doh", "url = \"https://192.0.2.1/dns-query\""))
      settings.localServers = [network.address]
      settings.more = "[[rule]]\nnames = [\"corp.example\"]\nuse = \"localdns\""
      let daemon = try lab.daemon(settings.text)
      // It asks whether the server leads back to it.
      let (probe, prober) = try #require(network.receiveFrom())
      network.send(try Message.parse(probe).reply(.nxDomain).compose(), to: prober)
      let free = 3
      try daemon.settle()
      try daemon.limitDescriptors(toMore: free)

      let client = try Socket(SOCK_DGRAM)
      try client.connect(to: daemon.address)
      var waiting: [(octets: [UInt8], sender: Address)] = []
      for number in 0..<free {
        client.send(TestQuery("a\(number).corp.example").octets)
        waiting.append(try #require(network.receiveFrom()))
      }
      for _ in 0..<2 {
        let (reply, duration) = try timed { try ask(daemon.address, "b.corp.example") }
        #expect(reply.code == .servFail)
        // A network error, not one that is remembered.
        #expect(reply.errors == [23])
        #expect(duration < .seconds(1))
      }
      for (octets, sender) in waiting { network.send(try Message.parse(octets).reply(.nxDomain).compose(), to: sender) }
      for _ in 0..<free { #expect(client.receive() != nil) }

      let query = TestQuery("b.corp.example")
      client.send(query.octets)
      let (octets, sender) = try #require(network.receiveFrom())
      network.send(try Message.parse(octets).reply(.nxDomain).compose(), to: sender)
      #expect(try Reply(#require(client.receive()), to: query).code == .nxDomain)
    }
  }

  @Test(.looksInside) func `a transfer that gets no socket is not the provider's failure`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.json(simulator.http)).text)
      try daemon.settle()
      try daemon.limitDescriptors(toMore: 0)
      for _ in 0..<2 {
        let reply = try ask(daemon.address, "example.com")
        #expect(reply.code == .servFail)
        // Not remembered.
        #expect(reply.errors == [0], "\(daemon.log)")
      }
      try daemon.limitDescriptors(toMore: 10)
      let reply = try ask(daemon.address, "example.com")
      #expect(reply.data == ["192.0.2.1"], "\(reply.errors) \(daemon.log)")
    }
  }

  @Test(.looksInside) func `without descriptors a client over TCP is turned away at once, and the log says so once`()
    throws
  {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.json(simulator.http)).text)
      try daemon.settle()
      try daemon.limitDescriptors(toMore: 0)
      for _ in 0..<20 {
        let client = try Socket.stream(to: daemon.address)
        #expect(client.receive() == [])
      }
      // Nor do questions that need one fill the log.
      for number in 0..<20 { #expect(try ask(daemon.address, "n\(number).bench.example").code == .servFail) }
      try daemon.limitDescriptors(toMore: 10)
      #expect(try ask(daemon.address, "example.com", over: .tcp).data == ["192.0.2.1"])
      try daemon.waitForLog("a TCP connection is not accepted: ")
      try daemon.waitForLog("WARNING provider json: ")
      let lines = daemon.log.split(separator: "\n").filter {
        $0.contains("Too many open files") && !$0.contains(" DEBUG ")
      }
      #expect(lines.filter { $0.contains("a TCP connection is not accepted") }.count == 1, "\(lines)")
      #expect(lines.count == 2, "\(lines)")
    }
  }

  @Test(.looksInside) func `a connection that cannot even be dropped waits, and costs no time until it can be taken`()
    throws
  {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.json(simulator.http)).text)
      try daemon.settle()
      // Below what is open: also the reserve cannot be had again.
      try daemon.limitDescriptors(to: 3)
      let client = try Socket.stream(to: daemon.address)
      let query = TestQuery("localhost")
      client.send(framed(query.octets))
      try daemon.waitForLog("a TCP connection is not accepted: Too many open files")
      let before = try daemon.processorTicks
      #expect(client.receive(within: .milliseconds(500)) == nil)
      // Hundredths of a second.
      #expect(try daemon.processorTicks - before < 10)
      try daemon.limitDescriptors(to: 1_000)
      #expect(try Reply(#require(receiveFramed(client)), to: query).data == ["127.0.0.1"])
    }
  }

  /// A daemon with a control socket and a web server, and how to connect to either.
  private func withServers(_ body: (Daemon, [() throws -> Socket]) throws -> Void) throws {
    try withLab { lab in
      let path = "\(lab.folder.path)/control.sock"
      var settings = Settings(Settings.doh(Address("127.0.0.1", 1)))
      settings.control = "socket = \"\(path)\""
      settings.more = "[web]\naddress = \"127.0.0.1:0\""
      let daemon = try lab.daemon(settings.text)
      try daemon.settle()
      let line = try #require(daemon.log.firstMatch(of: /metrics at http:\/\/([^\/\s]+)\/metrics/))
      let web = try #require(Address(text: String(line.1)))
      try body(daemon, [{ try Socket.stream(to: web) }, { try Socket.stream(toPath: path) }])
    }
  }

  @Test(.looksInside)
  func `without descriptors scrapes and commands are turned away at once, and the log says so once`() throws {
    try withServers { daemon, servers in
      try daemon.limitDescriptors(toMore: 0)
      for connect in servers {
        for _ in 0..<20 { #expect(try connect().receive() == []) }
      }
      try daemon.limitDescriptors(toMore: 10)
      for connect in servers {
        let client = try connect()
        client.send(Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
        #expect(String(decoding: try #require(client.receive()), as: UTF8.self).hasPrefix("HTTP/1.1 404 "))
      }
      for server in ["the control socket", "web.address"] {
        try daemon.waitForLog(" WARNING cannot accept a connection to \(server): ")
      }
      let lines = daemon.log.split(separator: "\n").filter { $0.contains("Too many open files") }
      #expect(lines.count == 2, "\(lines)")
      #expect(lines.count { $0.contains(" WARNING cannot accept a connection to the control socket: ") } == 1)
      #expect(lines.count { $0.contains(" WARNING cannot accept a connection to web.address: ") } == 1)
      #expect(!daemon.log.contains("[warn]"))
      // The flight recorder has the count of the others.
      daemon.process.signal(SIGUSR2)
      try daemon.waitForLog("flight recorder: end of dump")
      let recorded = daemon.log.split(separator: "\n").filter { $0.contains(" flight recorder: ") }
      for server in ["the control socket", "web.address"] {
        let told = recorded.filter { $0.contains(" WARNING cannot accept a connection to \(server): ") }
        #expect(told.count == 2 && told.last?.contains("Too many open files (19 times more since ") == true, "\(told)")
      }
    }
  }

  @Test(.looksInside) func `without any descriptor scrapes and commands wait without using CPU time`() throws {
    try withServers { daemon, servers in
      try daemon.limitDescriptors(to: 3)
      let clients = try servers.map { try $0() }
      for client in clients { client.send(Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)) }
      try daemon.waitForLog("Too many open files")
      let before = try daemon.processorTicks
      #expect(clients[0].receive(within: .milliseconds(500)) == nil)
      // Hundredths of a second.
      #expect(try daemon.processorTicks - before < 10)
      #expect(daemon.log.split(separator: "\n").count { $0.contains("Too many open files") } <= 2)
      try daemon.limitDescriptors(to: 1_000)
      for client in clients {
        #expect(String(decoding: try #require(client.receive()), as: UTF8.self).hasPrefix("HTTP/1.1 404 "))
      }
    }
  }
}

extension Daemon {
  /// Clock ticks that its threads have run.
  fileprivate var processorTicks: Int {
    get throws {
      let fields = try kernelFile("stat").split(separator: ")").last?.split(separator: " ") ?? []
      return fields[11...12].compactMap { Int($0) }.reduce(0, +)
    }
  }

  /// Waits until its start is over: then it takes a query over TCP, and lets go of what it needed.
  fileprivate func settle() throws {
    _ = try ask(address, "localhost", over: .tcp)
    var seen: [Set<Int>] = []
    try eventually("no descriptors come and go") { () -> Bool? in
      seen.append(descriptors)
      return seen.count > 5 && Set(seen.suffix(5)).count == 1 ? true : nil
    }
  }

  /// Lets it open `free` more from now on: a limit says which numbers are allowed, and low ones may be free.
  fileprivate func limitDescriptors(toMore free: Int) throws {
    let taken = descriptors
    var left = free
    var limit = 0
    while left > 0 || taken.contains(limit) {
      if !taken.contains(limit) { left -= 1 }
      limit += 1
    }
    try limitDescriptors(to: limit)
  }

  /// Lets it have no more than that many descriptors from now on.
  fileprivate func limitDescriptors(to count: Int) throws {
    var limit = rlimit(rlim_cur: rlim_t(count), rlim_max: 4096)
    guard prlimit(process.pid, RLIMIT_NOFILE, &limit, nil) == 0 else {
      throw Failure("no limit: \(String(cString: strerror(errno)))")
    }
  }
}
