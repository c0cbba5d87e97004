// PersistenceTests.swift -- the cache outlives a restart, and no end of the program spoils its file.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct PersistenceTests {
  private func configuration(_ lab: Lab, _ simulator: Simulator) -> String {
    var settings = Settings(Settings.json(simulator.http))
    settings.more = "[cache]\npersist = \"\(path(lab))\"\n[refresh]\nhot_hits = 0"
    return settings.text
  }

  private func path(_ lab: Lab) -> String { "\(lab.folder.path)/cache" }

  /// How many entries a daemon has loaded; nil where there was no file.
  private func loaded(_ daemon: Daemon) throws -> Int? {
    try daemon.process.wait(for: "what became of the file", in: .error) { text -> Int?? in
      if text.contains("no cache file yet") { return .some(nil) }
      return text.firstMatch(of: /INFO cache: (\d+) entr(?:y|ies) loaded in \d+ ms/).map { Int($0.1) }
    }
  }

  private func queries(_ numbers: Range<Int>) -> [TestQuery] { numbers.map { TestQuery("n\($0).bench.example") } }

  /// The records' TTL is 300 s, of which 100 pass on the wall clock alone: as for a machine that was off.
  @Test func `after a restart cached answers are older by the time that passed`() throws {
    try withLab { lab in
      let (simulator, clock) = (try lab.simulator(), try ShiftedClock(in: lab))
      let first = try lab.daemon(configuration(lab, simulator), environment: clock.environment)
      #expect(try loaded(first) == nil)
      _ = try askAll(first.address, queries(0..<20))
      #expect(try ask(first.address, "nowhere.example.com").code == .nxDomain)
      first.end()
      #expect(first.log.contains(/DEBUG cache: 21 entries saved in \d+ ms, \d+ octets/))
      let attributes = try FileManager.default.attributesOfItem(atPath: path(lab))
      #expect(attributes[.posixPermissions] as? Int == 0o600)

      try clock.shift(by: 100)
      let asked = try simulator.count.transfers
      let second = try lab.daemon(configuration(lab, simulator), environment: clock.environment)
      // NXDOMAIN was cached for 30 s.
      #expect(try loaded(second) ?? 0 >= 20)
      for (index, answer) in try askAll(second.address, queries(0..<20)).enumerated() {
        #expect(answer.reply.data == ["198.18.0.\(index)"])
        #expect((150...200).contains(answer.reply.ttl ?? 0))
      }
      #expect(try simulator.count.transfers == asked)
      second.end()

      // Those 300 s are over: nothing is given as fresh.
      try clock.shift(by: 1_000)
      let third = try lab.daemon(configuration(lab, simulator), environment: clock.environment)
      _ = try loaded(third)
      for answer in try askAll(third.address, queries(0..<20)) { #expect(answer.reply.errors.isEmpty) }
      #expect(try simulator.count.transfers == asked + 20)
    }
  }

  /// Half of the ends come while the file is being written: the first of these saves is that of 12,000 names.
  @Test func `a daemon killed twenty times under load leaves a readable cache file`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var saved = 0
      var next = 0
      var cutShort = 0
      let filler = try lab.daemon(configuration(lab, simulator))
      for portion in 0..<60 {
        _ = try askAll(filler.address, queries((20_000 + portion * 200)..<(20_200 + portion * 200)))
      }
      filler.end()
      saved = try #require(filler.log.firstMatch(of: /DEBUG cache: (\d+) entries saved in/).flatMap { Int($0.1) })
      // Numbers of names that are in the file for certain, one for each save that was logged.
      var certain: [Int] = []
      for round in 0..<20 {
        let daemon = try lab.daemon(configuration(lab, simulator))
        let (reply, duration) = try timed { try ask(daemon.address, "www.example.com") }
        #expect(reply.code == .noError && duration < .seconds(2))
        let count = try loaded(daemon)
        // The name that was asked for meanwhile may have been there before its old entry.
        #expect(count ?? 0 >= saved - 1, "round \(round): \(daemon.log)")
        saved = count ?? 0
        for number in certain {
          #expect(try ask(daemon.address, "n\(number).bench.example").data == ["198.18.\(number >> 8).\(number & 255)"])
        }
        let clients = try queries(next..<next + 100).map { query in
          let socket = try Socket(SOCK_DGRAM)
          try socket.connect(to: daemon.address)
          socket.send(query.octets)
          return socket
        }
        next += 100
        if round % 2 == 0 {
          for client in clients { #expect(client.receive() != nil) }
          daemon.process.signal(SIGTERM)
          // From before the file is begun to after it is there; once surely after.
          if round == 10 {
            try daemon.waitForLog("entries saved in")
          } else {
            let deadline = Deadline(.seconds(5))
            while access("\(path(lab)).new", F_OK) != 0, !daemon.log.contains("entries saved in"), !deadline.isOver {
              usleep(100)
            }
          }
        }
        try daemon.kill()
        if access("\(path(lab)).new", F_OK) == 0 { cutShort += 1 }
        if let line = daemon.log.firstMatch(of: /DEBUG cache: (\d+) entries saved in/) {
          saved = try #require(Int(line.1))
          certain.append(next - 100)
        }
        #expect(!daemon.log.contains("the cache begins empty") && !daemon.log.contains(" invalid"))
      }
      #expect(!certain.isEmpty, "no save was ever completed")
      #expect(cutShort > 0, "no end ever came while the file was being written")
      let asked = try simulator.requests.compactMap(\.name)
      for number in certain {
        let name = "n\(number).bench.example"
        #expect(asked.filter { $0 == name || $0 == "\(name)." }.count == 1)
      }
      let files = try FileManager.default.contentsOfDirectory(atPath: lab.folder.path)
      #expect(files.allSatisfy { !$0.hasSuffix(".damaged") })
    }
  }

  @Test(arguments: ["cut", "foreign", "changed", "empty"])
  func `a file that cannot be used is set aside, and the cache begins empty`(_ damage: String) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let first = try lab.daemon(configuration(lab, simulator))
      _ = try askAll(first.address, queries(0..<20))
      first.end()
      let file = URL(fileURLWithPath: path(lab))
      var octets = try Data(contentsOf: file)
      switch damage {
      case "cut": octets.removeLast(octets.count / 2)
      case "foreign": octets = Data("a letter home".utf8)
      case "changed": octets[octets.count / 2] ^= 1
      default: octets = Data()
      }
      try octets.write(to: file)

      let second = try lab.daemon(configuration(lab, simulator))
      let aside = "\(file.path).damaged"
      try second.waitForLog("WARNING the cache begins empty: \(file.path) is now \(aside): ")
      #expect(try Data(contentsOf: URL(fileURLWithPath: aside)) == octets)
      _ = try askAll(second.address, queries(0..<20))
      #expect(try simulator.count.transfers == 40)
      second.end()

      let third = try lab.daemon(configuration(lab, simulator))
      #expect(try loaded(third) == 20)
      _ = try askAll(third.address, queries(0..<20))
      #expect(try simulator.count.transfers == 40)
    }
  }

  @Test func `a missing folder is logged at the start`() throws {
    try withLab { lab in
      var settings = Settings(Settings.json(try lab.simulator().http))
      settings.more = "[cache]\npersist = \"\(lab.folder.path)/missing/cache\""
      let daemon = try lab.daemon(settings.text)
      try daemon.waitForLog("WARNING the cache will not be saved: \(lab.folder.path)/missing/cache: No such file")
    }
  }

  @Test func `of two daemons with the same files one writes, the other logs it and serves`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let environment = ["STATE_DIRECTORY": lab.folder.path]
      let first = try lab.daemon(configuration(lab, simulator), environment: environment)
      #expect(try loaded(first) == nil)
      let second = try lab.daemon(configuration(lab, simulator), environment: environment)
      let owner = "in use by another httpdnsd (process \(first.process.pid)"
      try second.waitForLog(
        "WARNING state_directory: nothing is saved for the next start: \(lab.folder.path): \(owner)")
      try second.waitForLog("WARNING the cache is not saved: \(path(lab)): \(owner)")
      _ = try askAll(second.address, queries(0..<5))
      _ = try askAll(first.address, queries(0..<3))
      second.end()
      #expect(access(path(lab), F_OK) != 0)
      first.end()
      #expect(first.log.contains("DEBUG cache: 3 entries saved"))
      #expect(!first.log.contains("WARNING the cache") && !first.log.contains("WARNING state_directory"))
      let files = try FileManager.default.contentsOfDirectory(atPath: lab.folder.path)
      #expect(!files.contains("lock") && !files.contains("cache.lock"))
    }
  }

  @Test func `keep list names that are fresh in the cache file cost nothing at start`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      settings.more = """
        [cache]
        persist = "\(path(lab))"
        [refresh]
        keep = ["www.example.com"]
        types = ["A"]
        """
      let first = try lab.daemon(settings.text)
      try first.waitForLog("1 of 1 names and types resolved at start")
      first.end()
      #expect(try simulator.count.transfers == 1)
      let second = try lab.daemon(settings.text)
      #expect(try loaded(second) == 1)
      #expect(try ask(second.address, "www.example.com").code == .noError)
      second.end()
      #expect(!second.log.contains("resolved at start"))
      #expect(try simulator.count.transfers == 1)
    }
  }

  @Test func `files that may not be written end nothing, and are named once`() throws {
    try withLab { lab in
      let kind = AccountKind.named("tencent, aes over HTTP")
      var settings = Settings(kind.provider(try lab.simulator(), "units_per_day = 100"))
      settings.more = """
        [cache]
        persist = "\(path(lab))"
        [refresh]
        keep = ["www.example.com"]
        """
      let process = try lab.start(
        ["prlimit", "--fsize=16", Programs.daemon, "run", "--config", lab.file(settings.text)],
        environment: ["STATE_DIRECTORY": lab.folder.path])
      try process.wait(for: "the name", in: .error) { $0.contains("resolved at start") ? true : nil }
      process.signal(SIGTERM)
      #expect(try process.waitForEnd() == .exited(0))
      let log = process.text(.error)
      for line in ["the cache is not saved: \(path(lab)): File too large", "units_per_day is not saved"] {
        #expect(log.split(separator: line, omittingEmptySubsequences: false).count == 2, "\(log)")
      }
    }
  }
}
