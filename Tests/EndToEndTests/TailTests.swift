// TailTests.swift -- `tail`: queries as they are answered, for those who may see them, and only while they look.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct TailTests {
  private func withDaemon(_ control: String = "", _ body: (Lab, Simulator, Daemon, String) throws -> Void) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      let socket = settings.openControl(in: lab)
      settings.control += "\n\(control)"
      try body(lab, simulator, lab.daemon(settings.text), socket)
    }
  }

  /// A tail of the daemon's queries.
  private func reader(_ lab: Lab, _ daemon: Daemon, _ arguments: [String]) throws -> ChildProcess {
    let begins = daemon.log.matches(of: /watches queries \(/).count
    let process = try lab.start([Programs.daemon, "tail"] + arguments)
    try daemon.process.wait(for: "a reader", in: .error) {
      $0.matches(of: /watches queries \(/).count > begins ? true : nil
    }
    return process
  }

  @Test(arguments: Transport.allCases)
  func `tail shows queries in the order of their answers, and ends with the daemon`(transport: Transport)
    throws
  {
    try withDaemon("tail = true") { lab, _, daemon, socket in
      let all = try reader(lab, daemon, ["--socket", socket])
      for name in ["n1.bench.example", "n1.bench.example", "localhost", "n2.bench.example"] {
        try ask(daemon.address, TestQuery(name), over: transport)
      }
      let lines = try all.wait(for: "four lines", in: .output) { text in
        text.split(separator: "\n").count >= 4 ? text.split(separator: "\n").map(String.init) : nil
      }
      let word = transport == .udp ? "udp" : "tcp"
      let said = lines.map { $0.split(separator: " ").dropFirst().prefix(6).joined(separator: " ") }
      #expect(
        said == [
          "127.0.0.1 \(word) n1.bench.example. A NOERROR json", "127.0.0.1 \(word) n1.bench.example. A NOERROR hit",
          "127.0.0.1 \(word) localhost. A NOERROR local", "127.0.0.1 \(word) n2.bench.example. A NOERROR json",
        ])
      let times = lines.map { $0.prefix { $0 != " " } }
      #expect(times == times.sorted())
      daemon.end()
      #expect(try all.waitForEnd() == .exited(1))
      #expect(all.text(.error).contains("the daemon closed \(socket)"))
      #expect(!daemon.log.contains("n1.bench.example. "))
    }
  }

  @Test func `a name, --failed and --json choose what it shows, and the log has its begin and its end`() throws {
    try withDaemon("tail = true") { lab, simulator, daemon, socket in
      let below = try reader(lab, daemon, ["bench.example", "--socket", socket])
      let failed = try reader(lab, daemon, ["--failed", "--json", "--socket", socket])
      try simulator.fault("kind=status&code=503&name=bad.example")
      for name in ["example.com", "bad.example", "n1.bench.example"] { try ask(daemon.address, name) }
      let line = try below.wait(for: "a line", in: .output) { $0.hasSuffix("\n") ? $0 : nil }
      #expect(line.contains(" n1.bench.example. A NOERROR json ") && line.split(separator: "\n").count == 1)
      let object = try failed.wait(for: "an object", in: .output) { $0.hasSuffix("\n") ? $0 : nil }
      let members = try JSONSerialization.jsonObject(with: Data(object.utf8)) as? [String: Any]
      #expect(members?["name"] as? String == "bad.example." && members?["rcode"] as? String == "SERVFAIL")
      #expect((members?["reason"] as? String)?.contains("HTTP status 503") == true, "\(object)")
      let third = try lab.run("tail", "--socket", socket)
      #expect(third.ending == .exited(1) && third.error.contains("2 readers already watch queries"))
      failed.signal(SIGINT)
      #expect(try failed.waitForEnd() == .killed(signal: SIGINT))
      try daemon.waitForLog("INFO user \(geteuid()) no longer watches queries")
      _ = try reader(lab, daemon, ["--socket", socket])
    }
  }

  @Test func `a tail that does not read is cut off, and no query waits for it`() throws {
    try withDaemon("tail = true") { lab, _, daemon, socket in
      let silent = try reader(lab, daemon, ["--socket", socket])
      silent.signal(SIGSTOP)
      let padding = String(repeating: "x", count: 60)
      let deadline = Deadline(.seconds(60))
      while !daemon.log.contains("no longer watches queries: cut off because it reads too slowly") {
        guard !deadline.isOver else { throw Failure("it is never cut off") }
        let queries = (0..<100).map { TestQuery("\(padding).\(padding).\(padding).\($0).bench.example") }
        for (reply, _) in try askAll(daemon.address, queries) { #expect(reply.code != .refused) }
      }
      silent.signal(SIGCONT)
      #expect(try silent.waitForEnd() == .exited(1))
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can be another user"), arguments: [true, false])
  func `users other than root need control.tail, which a reload changes`(isOpen: Bool) throws {
    try withDaemon("tail = \(!isOpen)") { lab, _, daemon, socket in
      let text = try String(contentsOfFile: daemon.configuration, encoding: .utf8)
      try daemon.reload(text.replacing("tail = \(!isOpen)", with: "tail = \(isOpen)"))
      for path in [lab.folder.path, socket] { chmod(path, 0o777) }
      let asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", Programs.daemon]
      let process = try lab.start(asNobody + ["tail", "--socket", socket])
      if isOpen {
        try daemon.waitForLog("user 65534 watches queries")
      } else {
        #expect(try process.waitForEnd() == .exited(1))
        #expect(process.text(.error).contains("only root may watch queries; control.tail = true"))
      }
      _ = try reader(lab, daemon, ["--socket", socket])
    }
  }
}
