// TopTests.swift -- `top` on a terminal of its own, which it restores in any case.

import Foundation
import Testing

@Suite(.blocking) struct TopTests {
  /// What the terminal was like afterwards.
  private struct Ending: Decodable {
    struct Frame: Decodable {
      let lines: Int
      let widest: Int
    }

    let status: Int
    let changed: Bool
    let asBefore: Bool
    let left: Bool
    let cursor: Bool
    let silent: Bool
    let coloured: Bool
    let stoppedAsBefore: Bool?
    let narrow: Frame?
    let error: String
  }

  private func withDaemon(_ body: (Lab, Daemon, String) throws -> Void) throws {
    try withLab { lab in
      var settings = Settings(Settings.doh(try lab.simulator().http, "name = \"first\""))
      let socket = settings.openControl(in: lab)
      try body(lab, lab.daemon(settings.text), socket)
    }
  }

  private func watch(_ socket: String, _ action: String, prefix: [String] = []) throws -> Ending {
    let script = (#filePath as NSString).deletingLastPathComponent + "/Data/terminal.py"
    let command = prefix + [Programs.daemon, "top", "--interval", "0.2", "--socket", socket]
    let (ending, text, error) = try ChildProcess.run(["python3", script, action] + command, within: .seconds(40))
    guard ending == .exited(0) else { throw Failure("\(ending) \(error)") }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(Ending.self, from: Data(text.utf8))
  }

  private func expectAsBefore(_ ending: Ending, _ location: SourceLocation = #_sourceLocation) {
    #expect(
      ending.changed && ending.asBefore && ending.left && ending.cursor && ending.silent, sourceLocation: location)
  }

  @Test func `the help of top says that --once covers only its interval`() throws {
    let help = try ChildProcess.run([Programs.daemon, "top", "--help"]).output
    let text = help.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(text.contains("On a terminal the first ones cover the time since the daemon started."), "\(text)")
    #expect(text.contains("with --once, one interval is printed as text"), "\(text)")
    #expect(text.contains("These figures cover only the interval."), "\(text)")
  }

  @Test func `q and Q end top with exit code 0`() throws {
    try withDaemon { _, _, socket in
      for key in ["q", "Q", " q"] {
        let ending = try watch(socket, "key:\(key)")
        expectAsBefore(ending)
        #expect(ending.status == 0 && ending.error.isEmpty)
      }
    }
  }

  @Test func `top colours states unless NO_COLOR is set, and keys sort and filter`() throws {
    try withDaemon { _, _, socket in
      let ending = try watch(socket, "key:f/abcq\r?nq", prefix: ["env", "--unset=NO_COLOR"])
      expectAsBefore(ending)
      #expect(ending.status == 0 && ending.coloured)
      #expect(try !watch(socket, "key:q", prefix: ["env", "NO_COLOR=1"]).coloured)
    }
  }

  @Test func `signals end top and restore the terminal`() throws {
    try withDaemon { _, _, socket in
      let actions = [
        ("key:\u{3}", SIGINT), ("key:\u{1C}", SIGQUIT), ("signal:\(SIGTERM)", SIGTERM), ("hangup", SIGHUP),
      ]
      for (action, number) in actions {
        let ending = try watch(socket, action)
        expectAsBefore(ending)
        #expect(ending.status == -Int(number) && ending.error.isEmpty, "\(action)")
      }
    }
  }

  @Test func `a daemon that is killed ends it with the reason, and the terminal is as it was`() throws {
    try withDaemon { lab, daemon, socket in
      let ending = try watch(socket, "kill:\(daemon.process.pid)")
      try daemon.kill()
      expectAsBefore(ending)
      #expect(ending.status == 1 && ending.error.contains("cannot reach the daemon at \(socket)"), "\(ending.error)")
    }
  }

  @Test func `a window of another size is filled again`() throws {
    try withDaemon { _, daemon, socket in
      for number in 0..<30 { try ask(daemon.address, "n\(number).bench.example") }
      let ending = try watch(socket, "resize")
      expectAsBefore(ending)
      #expect(ending.status == 0)
      #expect(ending.narrow?.lines == 12 && (ending.narrow?.widest ?? 99) <= 50)
    }
  }

  @Test(.looksInside) func `a silent daemon does not block top's reaction to Ctrl-C`()
    throws
  {
    try withDaemon { _, daemon, socket in
      let ending = try watch(socket, "wait:\(daemon.process.pid)")
      expectAsBefore(ending)
      #expect(ending.status == -Int(SIGINT) && ending.error.isEmpty, "\(ending)")
    }
  }

  @Test func `Ctrl-Z restores the terminal while top is stopped`() throws {
    try withDaemon { _, _, socket in
      let ending = try watch(socket, "stop")
      #expect(ending.stoppedAsBefore == true)
      expectAsBefore(ending)
      #expect(ending.status == 0)
    }
  }

  @Test func `in the background top stops and does not touch the terminal`() throws {
    struct Seen: Decodable, Equatable {
      var firstStop = SIGTTOU
      var firstSilent = true
      var shown = true
      var stopped = true
      var secondStop = SIGTTOU
      var secondSilent = true
      /// Exit code 0.
      var end: Int32 = -1
      var asBefore = true
    }
    try withDaemon { _, _, socket in
      let script = (#filePath as NSString).deletingLastPathComponent + "/Data/background.py"
      let command = [Programs.daemon, "top", "--interval", "0.2", "--socket", socket]
      let (ending, text, error) = try ChildProcess.run(["python3", script] + command, within: .seconds(50))
      guard ending == .exited(0) else { throw Failure("\(ending) \(error)") }
      let decoder = JSONDecoder()
      decoder.keyDecodingStrategy = .convertFromSnakeCase
      #expect(try decoder.decode(Seen.self, from: Data(text.utf8)) == Seen())
    }
  }

  @Test func `without a terminal one interval is printed, in JSON as many lines as there are intervals`() throws {
    try withDaemon { lab, daemon, socket in
      for _ in 0..<5 { try ask(daemon.address, "www.example.com") }
      let (ending, output, _) = try lab.run("top", "--interval", "0.1", "--socket", socket)
      #expect(ending == .exited(0) && output.hasPrefix("httpdnsd, up ") && !output.contains("\u{1B}"))
      #expect(output.contains("  A     www.example.com.\n") && output.contains("\nfirst "))
      let once = try lab.run("top", "--once", "--json", "--interval", "0.1", "--socket", socket).output
      let object = try #require(try JSONSerialization.jsonObject(with: Data(once.utf8)) as? [String: Any])
      #expect(object["queries_per_second"] as? Double == 0 && object["cache_entries"] as? Int == 1)
      #expect((object["names"] as? [[String: Any]])?.first?["hits"] as? Int == 4)
      let stream = try lab.start([Programs.daemon, "top", "--json", "--interval", "0.1", "--socket", socket])
      let lines = try stream.wait(for: "three intervals", in: .output) { text in
        text.split(separator: "\n").count >= 3 ? text.split(separator: "\n").map(String.init) : nil
      }
      for line in lines { #expect(try JSONSerialization.jsonObject(with: Data(line.utf8)) is [String: Any]) }
      stream.signal(SIGTERM)
      #expect(try stream.waitForEnd() == .killed(signal: SIGTERM))
      // Standard output is a full disk.
      for command in ["stats", "top --once --interval 0.1", "providers --json"] {
        let shell = ["sh", "-c", "exec \(Programs.daemon) \(command) --socket \(socket) >/dev/full"]
        let (ending, _, error) = try ChildProcess.run(shell, within: .seconds(10))
        #expect(ending == .exited(1) && error.contains("No space left on device"), "\(command): \(ending) \(error)")
      }
      try daemon.kill()
      #expect(try lab.run("top", "--once", "--socket", socket).ending == .exited(1))
      for interval in ["0", "0.01", "4000", "x"] {
        #expect(try lab.run("top", "--interval", interval, "--socket", socket).ending == .exited(64))
      }
    }
  }
}
