// ControlCommandTests.swift -- what all commands that talk to a running daemon have in common: help, JSON, exit codes.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ControlCommandTests {
  /// Every such command, with what it needs.
  private static let commands = [
    ["stats"], ["flush"], ["cache", "www.example.com"], ["providers"], ["refresh", "www.example.com"],
    ["report", "www.example.com", "192.0.2.1", "--failed"], ["report-bad", "www.example.com", "192.0.2.1"], ["top"],
    ["reload"], ["cache"],
  ]

  @Test(arguments: Set(commands.map { $0[0] } + ["healthcheck", "tail"]).sorted())
  func `the help of each control command has working examples, exit codes and --json`(command: String) throws {
    try withLab { lab in
      let (ending, help, _) = try lab.run(command, "--help")
      #expect(ending == .exited(0))
      #expect(help.contains("--json") && help.contains(/USAGE:\shttpdnsd\s[a-z-]+/))
      for code in [0, 1, 64] { #expect(help.contains(try Regex("\\b\(code):\\s")), "\(code)") }
      let canFindNothing = ["flush", "cache", "refresh", "report", "report-bad", "reload"].contains(command)
      #expect(help.contains("Exit code 0: ") && help.contains(/\b2:\s/) == canFindNothing)
      let examples = help.matches(of: /Example:\shttpdnsd\s(.*)/).map { $0.1.split(separator: " ").map(String.init) }
      #expect(!examples.isEmpty && examples.allSatisfy { $0[0] == command })
      // A missing daemon is not a mistake on the command line.
      let noSocket = command == "healthcheck" ? [] : ["--socket", "\(lab.folder.path)/none.sock"]
      for example in examples {
        let file = try lab.file("listen.addresses = [\"127.0.0.1:1\"]")
        let (ending, _, error) = try lab.run(example + noSocket, environment: ["HTTPDNSD_CONFIG": file])
        #expect(ending == .exited(1), "\(example): \(error)")
      }
    }
  }

  @Test func `without a daemon a control command exits with 1 and one line`() throws {
    try withLab { lab in
      for command in ControlCommandTests.commands + [["tail"]] {
        let (ending, output, error) = try lab.run(command + ["--socket", "\(lab.folder.path)/none.sock"])
        #expect(ending == .exited(1) && output.isEmpty, "\(command)")
        #expect(error.contains("is it running") && error.split(separator: "\n").count == 1, "\(command): \(error)")
      }
    }
  }

  @Test func `without a configuration the default socket is used`() throws {
    try withLab { lab in
      var settings = Settings(Settings.doh(Address("127.0.0.1", 1)))
      settings.openControl(in: lab)
      let none = "\(lab.folder.path)/none.toml"
      let environment = ["HTTPDNSD_CONFIG": none, "RUNTIME_DIRECTORY": lab.folder.path]
      let noDaemon = try lab.run("stats", environment: environment)
      #expect(noDaemon.ending == .exited(1))
      let message =
        "httpdnsd: no daemon at \(lab.folder.path)/control.sock; if yours was started with another configuration, "
        + "give --config FILE, or --socket PATH\n"
      #expect(noDaemon.error == message)
      let reload = try lab.run("reload", environment: environment)
      #expect(reload.ending == .exited(1))
      #expect(reload.error == message)
      for command in ["top", "tail"] { #expect(try lab.run(command, environment: environment).error == message) }
      for command in ["stats", "reload"] {
        let given = try lab.run(command, "--config", none)
        #expect(given.ending == .exited(1))
        #expect(
          given.error
            == "httpdnsd: \(none): no such file; give --config FILE as the daemon was started with it, or --socket PATH\n"
        )
      }
      _ = try lab.daemon(settings.text)
      #expect(try lab.run("stats", environment: environment).ending == .exited(0))
    }
  }

  @Test func `a mistake on the command line is exit code 64, and nothing is asked`() throws {
    try withLab { lab in
      for arguments in [
        ["cache", "--limit", "1001"], ["cache", "--limit", "1", "a.example"], ["cache", "a..b"], ["tail", "a..b"],
        ["refresh"], ["refresh", "--type", "ANY", "a.example"],
        ["refresh", "--type", "x", "a.example"], ["report-bad", "a.example"], ["report-bad", "a.example", "192.0.2"],
        ["report-bad", "a..b", "192.0.2.1"], ["report", "a.example", "192.0.2.1"],
        ["report", "a.example", "192.0.2.1", "--ok", "--failed"], ["report", "a.example", "192.0.2", "--ok"],
        ["report", "a.example", "192.0.2.1", "--failed", "--ms", "3"], ["stats", "name"], ["top", "name"],
        ["top", "--interval", "x"],
        ["flush", "bad..name"], ["flush", "--below"], ["flush", "--all"], ["providers", "name"],
        ["healthcheck", "name"], ["reload", "name"],
        ["healthcheck", "--address", "localhost"],
      ] {
        let (ending, output, error) = try lab.run(arguments)
        #expect(ending == .exited(64) && output.isEmpty && error.contains("Error: "), "\(arguments)")
      }
    }
  }

  @Test func `with --json each control command prints one object on one line`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.doh(simulator.http))
      let socket = settings.openControl(in: lab)
      let daemon = try lab.daemon(settings.text)
      for command in ControlCommandTests.commands.map({ $0 == ["top"] ? ["top", "--once"] : $0 }) + [
        ["stats", "--by-name"]
      ] {
        try ask(daemon.address, "www.example.com")
        let (ending, output, error) = try lab.run(command + ["--json", "--socket", socket])
        #expect(ending == .exited(0) && error.isEmpty, "\(command): \(error)")
        #expect(output.split(separator: "\n").count == 1)
        #expect(try JSONSerialization.jsonObject(with: Data(output.utf8)) is [String: Any], "\(command): \(output)")
      }
    }
  }

  @Test(.enabled(if: geteuid() == 0)) func `every command reports that the user may not use the socket`() throws {
    try withLab { lab in
      var settings = Settings(Settings.doh(Address("127.0.0.1", 1)))
      let socket = settings.openControl(in: lab)
      _ = try lab.daemon(settings.text)
      chmod(lab.folder.path, 0o755)
      let asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", Programs.daemon]
      for command in ControlCommandTests.commands {
        let (ending, _, error) = try ChildProcess.run(asNobody + command + ["--socket", socket])
        #expect(ending == .exited(1) && error.contains("no permission to use \(socket)"), "\(command)")
      }
    }
  }

  /// Half done is not done: what is flushed from the memory would come back out of the file.
  @Test func `flush exits with 2 if the cache file cannot be replaced`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let folder = "\(lab.folder.path)/state"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
      var settings = Settings(Settings.doh(simulator.http))
      settings.openControl(in: lab)
      settings.more = "[cache]\npersist = \"\(folder)/cache\""
      let daemon = try lab.daemon(settings.text)
      try daemon.waitForLog("no cache file yet")
      try ask(daemon.address, "www.example.com")
      try FileManager.default.removeItem(atPath: folder)
      for form in [[], ["--json"]] {
        try ask(daemon.address, "www.example.com")
        let (ending, output, _) = try lab.run(["flush", "--socket", "\(lab.folder.path)/control.sock"] + form)
        #expect(ending == .exited(2), "\(output)")
        #expect(output.contains(form.isEmpty ? "a crash would bring them back" : "\"save_problem\":\""), "\(output)")
      }
    }
  }
}
