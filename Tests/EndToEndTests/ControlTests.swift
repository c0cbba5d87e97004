// ControlTests.swift -- `flush` and `providers` against a running daemon, and its control socket.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ControlTests {
  /// A daemon with a control socket and one provider, and the simulator behind it.
  private struct Scene {
    let lab: Lab
    let simulator: Simulator
    let daemon: Daemon
    let socket: String

    /// How often the provider was asked a question.
    func count(_ question: String) throws -> Int { try simulator.count.questions[question] ?? 0 }

    /// Asks for names, and returns how often the provider was asked for each.
    func counts(afterAsking names: [String]) throws -> [Int] {
      for name in names { try ask(daemon.address, name) }
      var counts: [Int] = []
      for name in names { counts.append(try count("\(name). A")) }
      return counts
    }

    /// Runs a command, which must do what it is for, and returns what it prints.
    @discardableResult
    func control(_ arguments: String...) throws -> String {
      let (ending, output, error) = try lab.run(arguments + ["--socket", socket])
      guard ending == .exited(0), error.isEmpty else { throw Failure("\(arguments): \(ending) \(error)") }
      return output
    }
  }

  private func withScene(_ more: String = "", _ body: (Scene) throws -> Void) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.doh(simulator.http, "name = \"first\""))
      let socket = settings.openControl(in: lab)
      settings.more = more
      try body(Scene(lab: lab, simulator: simulator, daemon: lab.daemon(settings.text), socket: socket))
    }
  }

  @Test func `flush without names removes all answers`() throws {
    try withScene { scene in
      let names = ["www.example.com", "nowhere.example.com", "n1.bench.example"]
      for _ in 0..<2 { for name in names { try ask(scene.daemon.address, name) } }
      #expect(try scene.simulator.count.transfers == 3)
      #expect(try scene.control("flush").hasPrefix("removed: 3 cached answers, 0 remembered failures, "))
      for name in names { try ask(scene.daemon.address, name) }
      #expect(try scene.simulator.count.transfers == 6)
      #expect(try scene.control("flush", "--json") == "{\"entries\":3,\"failures\":0,\"not_listed\":0}\n")
    }
  }

  @Test func `flush with names removes theirs, with --below those below as well`() throws {
    try withScene { scene in
      let names = ["n1.bench.example", "n2.bench.example", "www.example.com"]
      let counts = try scene.counts(afterAsking: names)
      #expect(counts == [1, 1, 1])
      #expect(try scene.control("flush", "N1.Bench.Example").hasPrefix("removed: 1 cached answer,"))
      #expect(try scene.counts(afterAsking: names) == [2, 1, 1])
      #expect(try scene.control("flush", "bench.example").hasPrefix("removed: 0 cached answers,"))
      #expect(try scene.counts(afterAsking: names) == [2, 1, 1])
      #expect(try scene.control("flush", "--below", "bench.example").hasPrefix("removed: 2 cached answers,"))
      #expect(try scene.counts(afterAsking: names) == [3, 2, 1])
    }
  }

  @Test func `flush of a name removes the NXDOMAIN that covers it`() throws {
    try withScene { scene in
      try ask(scene.daemon.address, "nowhere.example.com")
      #expect(try ask(scene.daemon.address, "below.nowhere.example.com").code == .nxDomain)
      #expect(try scene.simulator.count.transfers == 1)
      try scene.control("flush", "below.nowhere.example.com")
      try ask(scene.daemon.address, "below.nowhere.example.com")
      #expect(try scene.simulator.count.transfers == 2)
    }
  }

  @Test func `flush lets a question that failed be asked again at once`() throws {
    try withScene { scene in
      try scene.simulator.fault("kind=status&code=503")
      #expect(try ask(scene.daemon.address, "www.example.com").code == .servFail)
      try scene.simulator.clearFaults()
      #expect(try scene.control("flush").hasPrefix("removed: 0 cached answers, 1 remembered failure,"))
      #expect(try ask(scene.daemon.address, "www.example.com").code == .noError)
    }
  }

  @Test func `cache shows why a question failed, and when it is asked again`() throws {
    try withScene { scene in
      try scene.simulator.fault("kind=status&code=503")
      let line = try eventually("the failure") {
        try ask(scene.daemon.address, "www.example.com")
        let output = try scene.lab.run("cache", "www.example.com", "--socket", scene.socket).output
        return output.contains(": failed") ? output : nil
      }
      let server = try Regex(NSRegularExpression.escapedPattern(for: "\(scene.simulator.http)"))
      #expect(line.contains(server), "\(line)")
      #expect(
        line.wholeMatch(of: /www\.example\.com\. A: failed: \S+: \S+: HTTP status 503; not retried for [1-9]\d* s\n/)
          != nil)
    }
  }

  @Test func `after flush a provider is asked again for a name that it did not list`() throws {
    try withLab { lab in
      let simulator = try lab.simulator("--setting", "not-listed=ttl-0.example,n1.bench.example")
      let network = try PlainServer(
        addresses: ["ttl-0.example.": "10.1.1.1", "n1.bench.example.": "10.1.1.2"], ttl: 0)
      let socket = "\(lab.folder.path)/control.sock"
      var settings = Settings(AccountKind.named("emas, v1 over HTTP").provider(simulator))
      settings.localServers = [network.address]
      settings.control = "socket = \"\(socket)\""
      let daemon = try lab.daemon(settings.text)
      func asked() throws -> [Int] {
        for name in ["ttl-0.example", "n1.bench.example"] { try ask(daemon.address, name) }
        let count = try simulator.count.questions
        return [count["ttl-0.example. A"] ?? 0, count["n1.bench.example. A"] ?? 0]
      }
      for _ in 0..<2 { #expect(try asked() == [1, 1]) }
      try simulator.set("not-listed=")
      let (_, output, _) = try lab.run("flush", "--json", "--socket", socket, "ttl-0.example")
      #expect(output == "{\"entries\":0,\"failures\":0,\"not_listed\":1}\n")
      #expect(try ask(daemon.address, "ttl-0.example").data == ["198.18.0.0"])
      #expect(try asked()[1] == 1)
      _ = try lab.run("flush", "--socket", socket)
      #expect(try asked()[1] == 2)
    }
  }

  @Test func `a name of refresh.keep is fetched again at once`() throws {
    try withScene("[refresh]\nkeep = [\"www.example.com\"]\ntypes = [\"A\"]") { scene in
      try scene.daemon.waitForLog("resolved at start")
      #expect(try scene.control("flush").hasPrefix("removed: 1 cached answer,"))
      try scene.daemon.waitForLog("1 of 1 names and types resolved after a flush")
      #expect(try scene.count("www.example.com. A") == 2)
      try ask(scene.daemon.address, "www.example.com")
      #expect(try scene.count("www.example.com. A") == 2)
    }
  }

  @Test func `providers shows the counters of each, and why one is not used`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let socket = "\(lab.folder.path)/control.sock"
      var settings = Settings(
        Settings.json(simulator.http, "name = \"first\"\nunits_per_day = 1000"),
        Settings.doh(simulator.http, "name = \"second\""))
      settings.control = "socket = \"\(socket)\""
      let daemon = try lab.daemon(settings.text)
      try simulator.fault("kind=status&code=429&retry-after=600&path=/resolve")
      for domain in ["a.example", "b.example", "c.example"] { try ask(daemon.address, domain) }
      let (ending, output, _) = try lab.run("providers", "--socket", socket)
      #expect(ending == .exited(0))
      let lines = output.split(separator: "\n").map(String.init)
      try #require(lines.count == 4)
      let first = /^first +pausing +\S+ +[\d.]+ ms +0 +1000 +3 +3$/
      let reason = /^first: pausing for another \d+ min( \d+ s)?: too many requests;/
      #expect(lines[3].firstMatch(of: reason) != nil, "\(lines)")
      #expect(lines[3].contains(/requests; set requests_per_second; last failure \d s ago:/), "\(lines)")
      #expect(lines[1].firstMatch(of: first) != nil)
      #expect(lines[2].firstMatch(of: /^second +up +\S+ +[\d.]+ ms +\d+ +- +3 +0$/) != nil)
      let json = try lab.run("providers", "--json", "--socket", socket).output
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: [[String: Any]]])
      #expect(object["providers"]?.map { $0["state"] as? String } == ["aside", "up"])
      #expect(object["providers"]?[1]["transfers"] as? Int == 3)
    }
  }

  @Test func `the socket is found by the configuration, valid or not, and removed with the daemon`() throws {
    try withScene { scene in
      var status = stat()
      #expect(lstat(scene.socket, &status) == 0 && status.st_mode == S_IFSOCK | 0o660)
      let file = try scene.lab.file(
        "[control]\nsocket = \"\(scene.socket)\"\n[[provider]]\nkind = \"tencent\"\ntoken_file = \"/nonexistent\"")
      let found = try scene.lab.run("flush", "--config", file)
      #expect(found.ending == .exited(0), "\(found.error)")
      scene.daemon.end()
      #expect(lstat(scene.socket, &status) != 0)
      let (ending, output, error) = try scene.lab.run("flush", "--config", file)
      #expect(ending == .exited(1) && output.isEmpty)
      #expect(error.contains(scene.socket) && error.contains("is it running"))
    }
  }

  @Test func `a second daemon leaves the socket to the first and serves all the same`() throws {
    try withScene { scene in
      var settings = Settings(Settings.doh(scene.simulator.http))
      settings.control = "socket = \"\(scene.socket)\""
      let second = try scene.lab.daemon(settings.text)
      #expect(second.log.contains("WARNING no control socket"))
      #expect(second.log.contains("another process listens on \(scene.socket)"))
      #expect(try ask(second.address, "www.example.com").code == .noError)
      second.end()
      // It has not taken the path away with it.
      #expect(try scene.control("flush").hasPrefix("removed: 0 cached answers"))
    }
  }

  @Test func `a file at the socket's path is reported and stays, and queries are answered`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let path = try lab.folder.write("a letter home", to: "letter")
      var settings = Settings(Settings.doh(simulator.http))
      settings.control = "socket = \"\(path)\""
      let daemon = try lab.daemon(settings.text)
      #expect(
        daemon.log.contains("there is a plain file at \(path), which is not removed; move it away, or set control."))
      #expect(try ask(daemon.address, "www.example.com").code == .noError)
      daemon.end()
      #expect(try String(contentsOfFile: path, encoding: .utf8) == "a letter home")
    }
  }

  @Test func `the socket of a dead daemon is replaced`() throws {
    try withScene { scene in
      var settings = Settings(Settings.doh(scene.simulator.http))
      let socket = "\(scene.lab.folder.path)/other.sock"
      settings.control = "socket = \"\(socket)\""
      let first = try ChildProcess([Programs.daemon, "run", "--config", scene.lab.file(settings.text)])
      try first.wait(for: "ready", in: .error) { $0.contains(" ready\n") ? true : nil }
      first.signal(SIGKILL)
      #expect(try first.waitForEnd() == .killed(signal: SIGKILL))
      #expect(access(socket, F_OK) == 0)
      let second = try scene.lab.daemon(settings.text)
      #expect(!second.log.contains("WARNING no control socket"))
      #expect(try scene.lab.run("providers", "--socket", socket).ending == .exited(0))
    }
  }

  @Test func `a path that cannot be used is a warning, and RUNTIME_DIRECTORY takes the usual folder's place`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.doh(simulator.http))
      settings.control = "socket = \"/nonexistent/control.sock\"\ngroup = \"no-such-group\""
      let daemon = try lab.daemon(settings.text)
      #expect(daemon.log.contains("WARNING no control socket") && daemon.log.contains("create its folder"))
      #expect(try ask(daemon.address, "www.example.com").code == .noError)
      settings.control = "group = \"no-such-group\""
      let other = try lab.daemon(settings.text, environment: ["RUNTIME_DIRECTORY": lab.folder.path])
      #expect(other.log.contains("WARNING control.group: no group no-such-group"))
      #expect(try lab.run("flush", "--socket", "\(lab.folder.path)/control.sock").ending == .exited(0))
    }
  }

  @Test(.enabled(if: geteuid() == 0)) func `a user that is neither root nor in the group gets no permission`() throws {
    try withScene { scene in
      chmod(scene.lab.folder.path, 0o755)
      let command = [Programs.daemon, "flush", "--socket", scene.socket]
      let asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
      let (ending, _, error) = try ChildProcess.run(asNobody + command)
      #expect(ending == .exited(1))
      #expect(error.contains("no permission to use \(scene.socket)") && error.contains("control.group"))
      let group = ["setpriv", "--reuid=65534", "--regid=\(getegid())", "--clear-groups"]
      #expect(try ChildProcess.run(group + command).ending == .exited(0))
    }
  }

  @Test(.enabled(if: geteuid() == 0))
  func `a daemon that may give no file away lets control.group in all the same`() throws {
    try withLab { lab in
      chmod(lab.folder.path, 0o755)
      var settings = Settings(Settings.doh(try lab.simulator().http))
      let socket = "\(lab.folder.path)/group.sock"
      settings.control = "socket = \"\(socket)\"\ngroup = \"4711\""
      let daemon = try lab.daemon(settings.text, prefix: ["setpriv", "--bounding-set=-chown", "--inh-caps=-all"])
      #expect(!daemon.log.contains("cannot be given"), "\(daemon.log)")
      let asNobody = ["setpriv", "--reuid=65534", "--regid=65534"]
      let command = [Programs.daemon, "providers", "--socket", socket]
      #expect(try ChildProcess.run(asNobody + ["--groups=4711"] + command).ending == .exited(0))
      #expect(try ChildProcess.run(asNobody + ["--groups=4712"] + command).ending == .exited(1))
    }
  }

  @Test func `a socket that is switched off is reported`() throws {
    try withLab { lab in
      let off = try lab.file("[control]\nsocket = \"\"")
      let (ending, _, error) = try lab.run("providers", "--config", off)
      #expect(ending == .exited(1) && error.contains("the control socket is switched off"))
    }
  }
}
