// LogTests.swift -- what the log says, in which form, what it never says, and that its reader delays no query.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct LogTests {
  /// A daemon with all kinds of answers, and LocalDNS nowhere.
  private func settings(_ simulator: Simulator, _ log: String) -> String {
    var settings = Settings(Settings.json(simulator.http))
    settings.more = "[[rule]]\nnames = [\"blocked.example\"]\nuse = \"nxdomain\""
    return settings.text.replacing("level = \"debug\"", with: log)
  }

  private func objects(_ log: String) throws -> [[String: Any]] {
    try log.split(separator: "\n").map { line in
      let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      return try #require(object, "\(line)")
    }
  }

  /// Asks for a hit, an answer of a provider, a local one, a blocked one and two refused ones, and waits for the last line.
  private func askAllKinds(_ daemon: Daemon, over transport: Transport) throws {
    let host = "127.0.0.9"
    try ask(daemon.address, TestQuery("n1.bench.example"), over: transport, from: host)
    try ask(daemon.address, TestQuery("n1.bench.example"), over: transport, from: host)
    try ask(daemon.address, TestQuery("localhost", "AAAA"), over: transport, from: host)
    try ask(daemon.address, TestQuery("blocked.example"), over: transport, from: host)
    try ask(daemon.address, TestQuery("axfr.example", "TYPE252"), over: transport, from: host)
    var strange = TestQuery("opcode.example")
    strange.flags |= 0x1000
    try ask(daemon.address, strange, over: transport, from: host)
    // Over UDP a line comes a moment after its answer.
    try daemon.waitForLog("opcode.example.")
  }

  @Test(arguments: Transport.allCases)
  func `each answered query is one line`(transport: Transport) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(settings(simulator, "format = \"json\"\nqueries = true"))
      try askAllKinds(daemon, over: transport)
      daemon.end()
      let queries = try objects(daemon.log).filter { $0["message"] as? String == "query" }
      let said = queries.map { query in
        ["name", "type", "outcome", "rcode"].map { query[$0] as? String ?? "" }.joined(separator: " ")
      }
      #expect(
        Set(said) == [
          "n1.bench.example. A provider NOERROR", "n1.bench.example. A hit NOERROR",
          "localhost. AAAA local NOERROR", "blocked.example. A blocked NXDOMAIN",
          "axfr.example. AXFR refused REFUSED", "opcode.example. A invalid NOTIMP",
        ])
      #expect(queries.count == said.count && said.count == 6)
      for query in queries {
        #expect(query["client"] as? String == "127.0.0.9")
        #expect(query["transport"] as? String == (transport == .udp ? "udp" : "tcp"))
        #expect(try #require(query["ms"] as? Double) < 5_000)
        #expect(query["provider"] as? String == (query["outcome"] as? String == "provider" ? "json" : nil))
        #expect((query["time"] as? String)?.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil)
      }
    }
  }

  @Test func `stale data and failures are distinct, and names may have any octets`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.fault("kind=status&code=500")
      let daemon = try lab.daemon(settings(simulator, "format = \"json\"\nqueries = true"))
      #expect(try ask(daemon.address, "failing.example").code == .servFail)
      var strange = TestQuery("x")
      strange.labels = [[0x22, 0x5C, 0x0A, 0x00, 0xFF, 0x7F, 0x2E], [0x61]]
      try ask(daemon.address, strange)
      try daemon.waitForLog("255")
      daemon.end()
      let queries = try objects(daemon.log).filter { $0["message"] as? String == "query" }
      #expect(queries.first { $0["name"] as? String == "failing.example." }?["outcome"] as? String == "failure")
      #expect(queries.contains { $0["name"] as? String == "\\\"\\\\\\010\\000\\255\\127\\..a." })
    }
  }

  @Test(arguments: ["format = \"json\"", "format = \"text\""])
  func `without log.queries no log line has a name or a client, at any level`(format: String) throws {
    try withLab { lab in
      let canary = "canary7f3a9"
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(settings(simulator, "level = \"trace\"\n\(format)"))
      func askAll(_ label: String) throws {
        for transport in Transport.allCases {
          let query = TestQuery("\(label).\(canary).example")
          try ask(daemon.address, query, over: transport, from: "127.0.0.9")
          try ask(daemon.address, query, over: transport, from: "127.0.0.9")
        }
      }
      try askAll("n")
      let faults = ["reset", "status&code=403", "status&code=500", "html", "cut", "wrong-question", "big"]
      for (index, fault) in faults.enumerated() {
        try simulator.clearFaults()
        try simulator.fault("kind=\(fault)")
        try askAll("f\(index)")
      }
      var strange = TestQuery("opcode.\(canary).example")
      strange.flags |= 0x1000
      try ask(daemon.address, strange, from: "127.0.0.9")
      try ask(daemon.address, TestQuery("any.\(canary).example", "TYPE252"), from: "127.0.0.9")
      // There was something to say, and the recorder says no more.
      try daemon.waitForLog("provider json: ")
      try daemon.waitForLog(" failed: ")
      daemon.process.signal(SIGUSR2)
      try daemon.waitForLog("end of dump")
      daemon.end()
      #expect(!daemon.log.lowercased().contains(canary))
      #expect(!daemon.log.contains("127.0.0.9"))
      if format.contains("json") { _ = try objects(daemon.log) }
    }
  }

  @Test func `a reload switches the query log on and off, and changes level and format`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(settings(simulator, "level = \"info\""))
      try ask(daemon.address, "n1.bench.example")
      try daemon.reload(settings(simulator, "level = \"info\"\nqueries = true"))
      // A hit of a listener's thread, and what the loop answers.
      try ask(daemon.address, "n1.bench.example")
      try daemon.waitForLog("name=n1.bench.example. type=A outcome=hit")
      try ask(daemon.address, "n2.bench.example", over: .tcp)
      try daemon.waitForLog("transport=tcp name=n2.bench.example. type=A outcome=provider")
      try daemon.reload(
        settings(simulator, "level = \"info\"\nformat = \"json\""), expecting: "configuration reloaded in ")
      try ask(daemon.address, "n1.bench.example")
      try ask(daemon.address, "n3.bench.example")
      daemon.end()
      #expect(daemon.log.matches(of: /n1\.bench/).count == 1)
      #expect(!daemon.log.contains("n3.bench"))
      #expect(daemon.log.contains("\"message\":\"stopped\"}"))
    }
  }

  @Test func `a failed start is logged in the format of the log`() throws {
    try withLab { lab in
      let taken = try Socket.pair()
      var settings = Settings(Settings.provider("doh", "url = \"https://192.0.2.1/dns-query\""))
      settings.addresses = [taken.udp.address.description]
      for (format, begin) in [("json", "{\"time\":\""), ("text", "2")] {
        let text = settings.text.replacing("level = \"debug\"", with: "format = \"\(format)\"")
        let (ending, _, error) = try lab.run("run", "--config", lab.file(text))
        #expect(ending == .exited(1) && error.contains("cannot listen on "))
        let lines = error.split(separator: "\n")
        #expect(lines.allSatisfy { $0.hasPrefix(begin) }, "\(error)")
        if format == "json" { #expect(try objects(error).last?["level"] as? String == "critical") }
      }
      withExtendedLifetime(taken) {}
    }
  }

  @Test func `SIGUSR2 dumps recent events of all levels, each time`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.fault("kind=status&code=500")
      let daemon = try lab.daemon(settings(simulator, "level = \"info\""))
      try ask(daemon.address, "a.example")
      for _ in 0..<2 {
        let before = daemon.log.count
        daemon.process.signal(SIGUSR2)
        try daemon.process.wait(for: "the recorder", in: .error) { text in
          text.dropFirst(before).contains("flight recorder: end of dump") ? true : nil
        }
        let dump = daemon.log.dropFirst(before).split(separator: "\n").filter { $0.contains("flight recorder: ") }
        #expect(dump.first?.contains(" events since 2") == true)
        #expect(dump.contains { $0.contains(" INFO ready") })
        #expect(dump.contains { $0.contains(" DEBUG answers that had to wait: 1 failed: ") })
        #expect(dump.contains { $0.contains(" WARNING provider json: ") })
        #expect(try ask(daemon.address, "localhost").code == .noError)
      }
    }
  }

  @Test func `a provider that fails for thousands takes no room from what else happened, and each failure is counted`()
    throws
  {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.fault("kind=status&code=500")
      let daemon = try lab.daemon(settings(simulator, "level = \"info\""))
      // More than the recorder holds.
      let count = 5_000
      for first in stride(from: 0, to: count, by: 100) {
        let queries = (first..<first + 100).map { TestQuery("f\($0).example") }
        for (reply, _) in try askAll(daemon.address, queries) { #expect(reply.code == .servFail) }
      }
      daemon.process.signal(SIGUSR2)
      try daemon.waitForLog("end of dump")
      let dump = daemon.log.split(separator: "\n").filter { $0.contains("flight recorder: ") }
      #expect(dump.contains { $0.contains(" INFO ready") })
      #expect(dump.contains { $0.contains(" INFO listening on ") })
      #expect(dump.count < 200)
      func sum(_ expression: Regex<(Substring, Substring)>, in lines: [Substring]) -> Int {
        lines.flatMap { $0.matches(of: expression) }.compactMap { Int($0.1) }.reduce(0, +)
      }
      #expect(sum(/(\d+) failed:/, in: dump.filter { $0.contains("DEBUG answers that had to wait: ") }) == count)
      let told = daemon.log.split(separator: "\n").filter { $0.contains(" WARNING provider json: ") }
      #expect(told.count < 20)
      // The first is a line; the others are counted, some of them in the log where a minute was over.
      #expect(
        sum(/WARNING provider json: .*HTTP status 500 \((\d+) times more since 2.*Z\)$/, in: dump) >= count - 1)
    }
  }

  @Test func `failures within a second are summed up in one line, or at once on request`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.fault("kind=status&code=500")
      let daemon = try lab.daemon(settings(simulator, "level = \"debug\""))
      func failed() -> Int {
        daemon.log.split(separator: "\n").filter {
          $0.contains("answers that had to wait: ") && !$0.contains("flight recorder")
        }.flatMap { $0.matches(of: /(\d+) failed:/) }.compactMap { Int($0.1) }.reduce(0, +)
      }
      _ = try askAll(daemon.address, (0..<30).map { TestQuery("a\($0).example") })
      try eventually("all of them") { failed() == 30 ? true : nil }
      _ = try askAll(daemon.address, (0..<30).map { TestQuery("b\($0).example") })
      daemon.process.signal(SIGUSR2)
      try daemon.waitForLog("end of dump")
      #expect(failed() == 60)
    }
  }

  @Test func `a signal during the start does no harm, and is answered when the daemon is ready`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      // The part of the start before signals are handled.
      let lines = (0..<40_000).map { "192.0.2.\($0 % 250) n\($0).hosts.example" }
      let hosts = try lab.folder.write(lines.joined(separator: "\n"), to: "hosts")
      let file = try lab.file(
        settings(simulator, "level = \"info\"").replacing("hosts_file = \"\"", with: "hosts_file = \"\(hosts)\""))
      var (process, isReady) = (try stoppedAtStart(lab, file), false)
      // The port that TCP got can be some other program's over UDP.
      for attempt in 0..<4 where !isReady {
        if attempt > 0 { process = try stoppedAtStart(lab, file) }
        for signal in [SIGHUP, SIGUSR1, SIGUSR2, SIGHUP] { process.signal(signal) }
        #expect(!process.text(.error).contains("ready"))
        process.signal(SIGCONT)
        isReady = try process.wait(for: "ready", in: .error) { text in
          text.contains(" ready\n") ? true : text.contains(": Address already in use") ? false : nil
        }
      }
      for line in ["end of dump", "configuration reloaded in "] {
        try process.wait(for: line, in: .error) { $0.contains(line) ? true : nil }
      }
      process.signal(SIGUSR1)
      process.signal(SIGTERM)
      #expect(try process.waitForEnd() == .exited(0))
    }
  }

  /// A daemon that stands still where its program has begun and it is not ready.
  private func stoppedAtStart(_ lab: Lab, _ file: String) throws -> ChildProcess {
    // Where this process has to wait so long for its turn that a daemon is ready meanwhile, another one is started.
    for _ in 0..<20 {
      let process = try lab.start([Programs.daemon, "run", "--config", file])
      let deadline = Deadline(.seconds(20))
      while try !isHolding(process) {
        guard !deadline.isOver else { throw Failure("it never holds signals: \(process.text(.error))") }
        sched_yield()
      }
      process.signal(SIGSTOP)
      try eventually("a stop") { try status(process).contains("State:\tT") ? true : nil }
      if try isHolding(process) { return process }
      process.signal(SIGKILL)
    }
    throw Failure("it was never stopped in time")
  }

  /// Whether SIGHUP, SIGUSR1 and SIGUSR2 wait.
  private func isHolding(_ process: ChildProcess) throws -> Bool {
    let mask = try status(process).firstMatch(of: /SigBlk:\s+([0-9a-f]+)/).flatMap { UInt64($0.1, radix: 16) } ?? 0
    return [SIGHUP, SIGUSR1, SIGUSR2].allSatisfy { mask >> UInt64($0 - 1) & 1 == 1 }
  }

  private func status(_ process: ChildProcess) throws -> String {
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/\(process.pid)/status"))
    return String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
  }

  @Test func `a log reader that stalls delays neither answers nor the shutdown`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let path = "\(lab.folder.path)/log"
      try #require(mkfifo(path, 0o600) == 0)
      let reader = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
      try #require(reader >= 0)
      defer { close(reader) }
      let file = try lab.file(settings(simulator, "level = \"trace\"\nqueries = true"))
      let process = try lab.start([
        "sh", "-c", "exec \"$0\" run --config \"$1\" 2> \"$2\"", Programs.daemon, file, path,
      ])
      var log = ""
      func read(until find: (String) -> Bool) throws {
        let deadline = Deadline(.seconds(20))
        var block = [UInt8](repeating: 0, count: 65_536)
        while !find(log) {
          var ready = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
          guard poll(&ready, 1, deadline.milliseconds) == 1 else {
            throw Failure("the log ends with \(log.suffix(500))")
          }
          let count = Glibc.read(reader, &block, block.count)
          if count > 0 { log += String(decoding: block[..<count], as: UTF8.self) }
        }
      }
      try read { $0.contains(" ready\n") }
      let address = try #require(log.firstMatch(of: /listening on (\S+), UDP/).flatMap { Address(text: String($0.1)) })
      // Enough lines for the pipe and all that may wait, over both transports, with misses among them.
      let padding = String(repeating: "x", count: 60)
      for number in 0..<2_500 {
        #expect(try ask(address, "\(padding).\(number % 200).bench.example").code != .refused)
      }
      #expect(try ask(address, "\(padding).1.bench.example", over: .tcp).code != .refused)
      // The loop turns, the recorder waits for its reader, and both lines arrive once the log is read.
      process.signal(SIGUSR2)
      #expect(try ask(address, "n7.bench.example").code == .noError)
      try read { $0.contains("end of dump") }
      try read { $0.contains(" queries were not logged: ") }
      let lines = log.split(separator: "\n")
      #expect(lines.dropLast().allSatisfy { $0.first == "2" })
      for _ in 0..<2_000 { try ask(address, "\(padding).0.bench.example") }
      process.signal(SIGTERM)
      #expect(try process.waitForEnd() == .exited(0))
    }
  }
}
