// DoctorTests.swift -- `doctor` for a name and for the machine, and `query` of one provider.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct DoctorTests {
  /// What is printed for a program, as far as tests look.
  private struct Report: Decodable {
    struct Finding: Decodable {
      let who: String
      let type: String
      let addresses: [String]
      let verdict: String
      let suspicious: Bool
      let answer: String
      let ttl: Int?
      let failure: String?
    }

    let name: String
    let findings: [Finding]

    func finding(_ who: String, _ type: String) -> Finding? { findings.first { $0.who == who && $0.type == type } }
  }

  /// A configuration with a provider of each new kind, and a resolver of the network.
  private func file(_ lab: Lab, _ simulator: Simulator, _ network: PlainServer) throws -> String {
    let table = try lab.folder.write(
      "{\"enable\":1,\"domainlist\":[{\"domain\":\"example.com\",\"ips\":[\"192.0.2.1\"]}]}", to: "table.json")
    var settings = Settings(
      AccountKind.named("tencent, aes over HTTP").provider(simulator),
      AccountKind.named("emas, v2 gcm over HTTP").provider(simulator),
      Settings.provider("table", "file = \"\(table)\""))
    settings.localServers = [network.address]
    return try lab.file(settings.text)
  }

  /// The JSON as another program reads it.
  private func report(_ output: String) throws -> Report {
    let python = ProcessInfo.processInfo.environment["HTTPDNSD_TEST_PYTHON"] ?? "python3"
    let program = "import json, sys; print(json.dumps(json.loads(sys.argv[1])))"
    let (ending, text, error) = try ChildProcess.run([python, "-c", program, output])
    guard ending == .exited(0) else { throw Failure("no JSON: \(error)") }
    return try JSONDecoder().decode(Report.self, from: Data(text.utf8))
  }

  @Test func `a resolver that lies is reported in a plain sentence`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let network = try PlainServer(addresses: ["example.com.": "10.0.0.1"])
      let file = try file(lab, simulator, network)
      let (ending, output, error) = try lab.run("doctor", "--config", file, "example.com")
      #expect(ending == .exited(2), "\(error)")
      let lines = output.split(separator: "\n")
      #expect(lines[0].wholeMatch(of: /upstream +type +TTL +ms +verdict +answer/) != nil)
      for provider in ["tencent", "emas", "table"] {
        let row = lines.first { $0.hasPrefix("\(provider) ") && $0.contains(" A ") }
        #expect(row?.hasSuffix(" -        192.0.2.1") == true, "\(output)")
      }
      let liar = "LocalDNS \(network.address)"
      #expect(
        lines.contains { $0.hasPrefix(liar) && $0.contains(" A ") && $0.hasSuffix("private  10.0.0.1") }, "\(output)")
      #expect(
        output.contains(
          "\(liar) maps the public name example.com. to a private or blocked address: this looks like a hijack.\n"))
      #expect(
        output.contains(
          "\(liar) has no AAAA record for example.com., but a provider has one: the name is blocked or broken there.\n"),
        "\(output)")

      let json = try lab.run("doctor", "--json", "--config", file, "example.com")
      #expect(json.ending == .exited(2) && json.output.split(separator: "\n").count == 1)
      let report = try report(json.output)
      #expect(report.name == "example.com.")
      #expect(report.findings.count == 8)
      #expect(report.finding("emas", "A")?.addresses == ["192.0.2.1"])
      #expect(report.finding("tencent", "AAAA")?.addresses == ["2001:db8::1"])
      #expect(report.finding("tencent", "AAAA")?.ttl == 300)
      #expect(report.finding(liar, "A")?.verdict == "private")
      #expect(report.finding(liar, "A")?.suspicious == true)
      // It denies the other family, which the providers have.
      #expect(report.finding(liar, "AAAA")?.verdict == "denied")
    }
  }

  @Test func `a resolver with the same answer is not suspected`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let network = try PlainServer(addresses: ["v4only.example.com.": "192.0.2.4"])
      let file = try file(lab, simulator, network)
      let json = try lab.run("doctor", "--json", "--config", file, "v4only.example.com")
      #expect(json.ending == .exited(0))
      let report = try report(json.output)
      #expect(report.findings.allSatisfy { $0.failure == nil })
      #expect(report.finding("LocalDNS \(network.address)", "A")?.verdict == "agrees")
      #expect(report.findings.allSatisfy { !$0.suspicious })
      let (_, output, _) = try lab.run("doctor", "--config", file, "v4only.example.com")
      #expect(!output.contains("hijack") && output.contains("agrees"))
    }
  }

  @Test func `a name that no account lists makes no resolver suspicious`() throws {
    try withLab { lab in
      let simulator = try lab.simulator("--setting", "not-listed=www.corp.example")
      let network = try PlainServer(addresses: ["www.corp.example.": "198.51.100.7"])
      let file = try file(lab, simulator, network)
      let report = try report(lab.run("doctor", "--json", "--config", file, "www.corp.example").output)
      #expect(report.finding("tencent", "A")?.answer.contains("may not be in the list") == true)
      #expect(report.finding("LocalDNS \(network.address)", "A")?.verdict == "unknown")
      #expect(report.findings.allSatisfy { !$0.suspicious })
      let text = try lab.run("doctor", "--config", file, "www.corp.example").output
      #expect(
        text.hasSuffix("\nwww.corp.example. has no answer from tencent, emas, table; the table says why.\n"), "\(text)")
    }
  }

  @Test func `a provider that fails stands in the table with the reason`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let network = try PlainServer(addresses: ["example.com.": "203.0.113.7"])
      let file = try file(lab, simulator, network)
      try simulator.fault("kind=status&code=503&dialect=emas")
      let json = try lab.run("doctor", "--json", "--config", file, "example.com")
      #expect(json.ending == .exited(2))
      let report = try report(json.output)
      #expect(report.finding("emas", "A")?.failure?.contains("HTTP status 503") == true)
      #expect(report.findings.count { $0.failure != nil } == 2)
      #expect(report.finding("LocalDNS \(network.address)", "A")?.verdict == "differs")
    }
  }

  @Test func `query --provider asks one provider without rules`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let network = try PlainServer(addresses: ["example.com.": "10.0.0.1"])
      let file = try file(lab, simulator, network)
      for provider in ["tencent", "emas", "table"] {
        let (ending, output, error) = try lab.run("query", "--config", file, "--provider", provider, "example.com")
        #expect(ending == .exited(0), "\(error)")
        let server = provider == "table" ? "\(lab.folder.path)/table.json" : "\(simulator.http)"
        #expect(output.contains("answered by  \(provider) (\(server))"), "\(output)")
        #expect(output.contains("example.com.\t\(provider == "table" ? 60 : 300)\tIN\tA\t192.0.2.1"), "\(output)")
      }
      #expect(network.queries.isEmpty)
      for (arguments, text) in [
        (["--provider", "missing", "example.com"], "unknown provider 'missing'; configured: tencent, emas, table"),
        (["--provider", "emas", "example.com", "MX"], "cannot serve"),
      ] {
        let (ending, _, error) = try ChildProcess.run([Programs.daemon, "query", "--config", file] + arguments)
        #expect(ending == .exited(64))
        #expect(error.contains(text), "\(error)")
      }
      try simulator.fault("kind=error&error=InvalidSignature&dialect=emas")
      let refused = try lab.run("query", "--config", file, "--provider", "emas", "example.com")
      #expect(refused.ending == .exited(1))
      #expect(!refused.output.contains("answered by"), "\(refused.output)")
      #expect(refused.output.contains("SERVFAIL") && refused.output.contains("\nasked        emas: "))
    }
  }

  @Test func `doctor with a name ends with a sentence`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let network = try PlainServer(addresses: ["v4only.example.com.": "192.0.2.4", "example.com.": "10.0.0.1"])
      let file = try file(lab, simulator, network)
      let well = try lab.run("doctor", "--config", file, "v4only.example.com").output
      #expect(
        well.hasSuffix("\n\nAll upstreams have answered for v4only.example.com., and no answer looks suspicious.\n"))
      let lies = try lab.run("doctor", "--config", file, "example.com").output
      let liar = "an answer that looks like a hijack from LocalDNS \(network.address)"
      let blocker = "the name is blocked or broken at LocalDNS \(network.address)"
      #expect(lies.hasSuffix("\nProblems with example.com.: \(liar); \(blocker).\n"), "\(lies)")
      try simulator.fault("kind=status&code=503&dialect=emas")
      let silent = try lab.run("doctor", "--config", file, "v4only.example.com").output
      #expect(silent.hasSuffix("\nProblems with v4only.example.com.: no answer from emas.\n"), "\(silent)")
    }
  }

  @Test func `doctor with a name says where its address families have different routes`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      settings.more = "[[rule]]\nnames = [\"=v4only.example.com\"]\ntypes = [\"AAAA\"]\nuse = \"nodata\"\n"
      let file = try lab.file(settings.text)
      let apart = try lab.run("doctor", "--config", file, "v4only.example.com").output
      let rule = "AAAA rule 1 (=v4only.example.com.): answered by httpdnsd itself"
      #expect(apart.contains("\nroute: A no rule: json; \(rule)\n"), "\(apart)")
      #expect(try lab.run("doctor", "--config", file, "example.com").output.contains("\nroute: no rule: json\n"))
    }
  }
}

@Suite(.blocking) struct MachineCheckTests {
  /// What is printed for a program.
  private struct Report: Decodable {
    struct Check: Decodable {
      let check: String
      let result: String
      let finding: String
    }

    let checks: [Check]
    let summary: String

    func finding(_ check: String) -> Check? { checks.first { $0.check == check } }
  }

  private func check(_ lab: Lab, _ settings: Settings) throws -> (ending: ChildProcess.Ending, report: Report) {
    let (ending, output, error) = try lab.run("doctor", "--json", "--config", try lab.file(settings.text))
    guard let report = try? JSONDecoder().decode(Report.self, from: Data(output.utf8)) else {
      throw Failure("no JSON: \(output) \(error)")
    }
    return (ending, report)
  }

  @Test func `doctor without a name checks daemon, clock and upstreams, and ends with a sentence`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let network = try PlainServer(addresses: ["example.com.": "192.0.2.1"])
      var settings = Settings(Settings.json(simulator.http))
      settings.localServers = [network.address]
      let daemon = try lab.daemon(settings.text)
      settings.addresses = [daemon.address.description]
      let (ending, report) = try check(lab, settings)
      #expect(ending == .exited(0), "\(report)")
      #expect(report.finding("configuration")?.finding.hasSuffix(": no mistakes") == true)
      #expect(report.finding("daemon")?.finding.hasPrefix("\(daemon.address) answers: UDP ") == true, "\(report)")
      #expect(report.finding("provider json")?.finding.hasPrefix("answers for example.com. in ") == true)
      #expect(report.finding("LocalDNS \(network.address)")?.result == "ok")
      #expect(report.finding("clock")?.result == "ok" && report.finding("nameserver") != nil)
      #expect(report.summary.hasPrefix("httpdnsd works, but this machine asks "), "\(report)")
      let text = try lab.run("doctor", "--config", try lab.file(settings.text)).output
      #expect(text.hasPrefix("check ") && text.hasSuffix("\n\n\(report.summary)\n"), "\(text)")
    }
  }

  @Test func `doctor names the command that starts a daemon with this configuration`() throws {
    try withLab { lab in
      var settings = Settings(Settings.json(try lab.simulator().http))
      // Only root could listen there.
      settings.addresses = ["127.0.0.1:1"]
      let (_, report) = try check(lab, settings)
      let file = report.finding("configuration")?.finding.split(separator: ":")[0] ?? "no file"
      #expect(
        report.finding("daemon")?.finding.hasSuffix("; `httpdnsd run --config \(file)` starts it") == true, "\(report)")
    }
  }

  @Test func `doctor without a name lists what does not work`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.fault("kind=status&code=503")
      let (closed, plain) = (try lab.closedAddress(), try lab.closedAddress())
      var settings = Settings(Settings.json(simulator.http))
      (settings.addresses, settings.localServers) = ([closed.description], [plain])
      let (ending, report) = try check(lab, settings)
      #expect(ending == .exited(2))
      for part in ["daemon", "provider json", "LocalDNS \(plain)"] {
        #expect(report.finding(part)?.result == "problem", "\(part): \(report)")
      }
      #expect(report.finding("provider json")?.finding.contains("HTTP status 503") == true)
      #expect(report.summary == "3 problems: daemon, provider json, LocalDNS \(plain).")
    }
  }

  @Test func `doctor without a name says in a sentence what the daemon thinks of each provider`() throws {
    try withLab { lab in
      let (failing, gone, refusing, spent) = (
        try lab.simulator(), try lab.simulator(), try lab.simulator(), try lab.simulator()
      )
      var settings = Settings(
        Settings.json(failing.http, "name = \"failing\""), Settings.json(gone.http, "name = \"gone\""),
        AccountKind.named("emas, v1 over HTTP").provider(refusing, "name = \"refusing\""),
        AccountKind.named("tencent, aes over HTTP").provider(spent, "name = \"spent\"\nunits_per_day = 1"))
      settings.openControl(in: lab)
      let file = try lab.file(settings.text)
      let daemon = try lab.daemon(settings.text)
      try failing.fault("kind=status&code=403")
      gone.process.end()
      try refusing.fault("kind=error&error=InvalidAccount")
      for name in ["a", "b"] { try ask(daemon.address, "\(name).bench.example") }
      let (_, output, _) = try lab.run("doctor", "--config", file)
      for sentence in [
        "provider failing: 2 questions without an answer: ", "provider gone: unreachable for ",
        "provider refusing: pausing for another ", "provider spent: no units for another ",
      ] { #expect(output.contains(sentence), "\(output)") }
    }
  }

  @Test func `doctor without a name notes a table that does not have the name`() throws {
    try withLab { lab in
      let table = "{\"enable\":1,\"domainlist\":[{\"domain\":\"a.example\",\"ips\":[\"192.0.2.1\"]}]}"
      let file = try lab.folder.write(table, to: "table.json")
      let (_, report) = try check(lab, Settings(Settings.provider("table", "file = \"\(file)\"")))
      let finding = report.finding("provider table")
      #expect(finding?.result == "note", "\(report)")
      #expect(finding?.finding == "answers, but not for example.com.: not in its table", "\(report)")
    }
  }

  @Test func `a table that is switched off is a problem if it is the only provider`() throws {
    try withLab { lab in
      let file = try lab.folder.write("{\"enable\":0,\"domainlist\":[]}", to: "table.json")
      let table = Settings.provider("table", "file = \"\(file)\"")
      let other = Settings.json(try lab.simulator().http)
      for (settings, result) in [(Settings(table), "problem"), (Settings(table, other), "note")] {
        let (ending, report) = try check(lab, settings)
        let finding = report.finding("provider table")
        #expect(finding?.result == result, "\(report)")
        #expect(finding?.finding == "answers no name: its table is switched off", "\(report)")
        #expect(ending == .exited(result == "problem" ? 2 : 0))
        #expect(report.summary.contains("provider table") == (result == "problem"), "\(report)")
      }
      for (settings, code, summary) in [
        (Settings(table), 2, "Problems with v4only.example.com.: the table of table is switched off."),
        (
          Settings(table, other), 0,
          "All upstreams except table, whose table is switched off, have answered for v4only.example.com., and no "
            + "answer looks suspicious."
        ),
      ] {
        let (ending, output, _) = try lab.run("doctor", "--config", try lab.file(settings.text), "v4only.example.com")
        #expect(ending == .exited(Int32(code)))
        #expect(output.hasSuffix("\n\(summary)\n"), "\(output)")
      }
    }
  }

  @Test(.enabled(if: NetworkNamespace.isPossible, "namespaces need root"))
  func `doctor without a name reports whether the machine uses httpdnsd`() throws {
    try withLab { lab in
      let machine = try NetworkNamespace(in: lab)
      let simulator = try lab.simulator([], at: machine.world)
      var settings = Settings(Settings.json(simulator.http))
      settings.addresses = ["127.0.0.1:53"]
      _ = try lab.daemon(settings.text, prefix: machine.prefix)
      let file = try lab.file(settings.text)
      func summary(_ servers: [String]) throws -> String {
        try machine.setResolvers(servers)
        let command = machine.prefix + [Programs.daemon, "doctor", "--config", file]
        return try ChildProcess.run(command).output.split(separator: "\n").last.map(String.init) ?? ""
      }
      #expect(try summary(["127.0.0.1"]) == "This machine uses httpdnsd, and everything that httpdnsd needs works.")
      // The file says so, and yet no program asks.
      try machine.write("nsswitch.conf", "hosts: files\n")
      #expect(try summary(["127.0.0.1"]) == "1 problem: nameserver.")
      try machine.write("nsswitch.conf", "hosts: files dns\n")
      #expect(
        try summary([machine.routers[0]])
          == "httpdnsd works, but this machine asks \(machine.routers[0]); `httpdnsd setup` makes httpdnsd its nameserver."
      )
      settings.addresses = ["127.0.0.1:5300"]
      _ = try lab.daemon(settings.text, prefix: machine.prefix)
      _ = try settings.text.write(toFile: file, atomically: true, encoding: .utf8)
      #expect(
        try summary([machine.routers[0]])
          == "httpdnsd works, but this machine asks \(machine.routers[0]); setup needs it on port 53 (listen.addresses)."
      )
    }
  }
}
