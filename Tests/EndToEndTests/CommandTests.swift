// CommandTests.swift -- `check`, `query`, `--version` and `--help`.

import Foundation
import Testing

@Suite(.blocking) struct CommandTests {
  @Test func `check prints every mistake, one a line`() throws {
    try withLab { lab in
      let file = try lab.file(
        """
        [listen]
        addresses = ["127.0.0.1"]
        wrokers = 2
        max_udp_payload = 100
        [[provider]]
        name = "first"
        kind = "carrier-pigeon"
        [[provider]]
        name = "second"
        kind = "json"
        timeout = "a while"
        access_key_secret = "hidden"
        [[rule]]
        names = ["bad..name"]
        use = "missing"
        """)
      let (ending, output, error) = try lab.run("check", "--config", file)
      #expect(ending == .exited(1))
      #expect(output.isEmpty)
      for key in [
        "listen.addresses[#1]", "listen.wrokers", "listen.max_udp_payload", "provider[\"first\"].kind",
        "provider[\"second\"].timeout", "provider[\"second\"].access_key_secret", "rule[#1].names", "rule[#1].use",
      ] {
        #expect(error.split(separator: "\n").count { $0.hasPrefix("\(file): ") && $0.contains(key) } == 1, "\(key)")
      }
      #expect(!error.contains("hidden"))
      // And nothing starts with it.
      #expect(try lab.run("run", "--config", file).error == error)
    }
  }

  @Test func `check names the files of encrypted listeners that are missing`() throws {
    try withLab { lab in
      let file = try lab.file(
        """
        [encrypted]
        dot = ["127.0.0.1:853"]
        name = "dns.example.com"
        certificate_file = "/no/chain.pem"
        key_file = "/no/key.pem"
        tokens_file = "/no/tokens"
        """)
      let (ending, output, error) = try lab.run("check", "--config", file)
      #expect(ending == .exited(1) && output.isEmpty)
      #expect(
        error == """
          \(file): encrypted.certificate_file: /no/chain.pem: No such file or directory
          \(file): encrypted.tokens_file: /no/tokens: No such file or directory

          """)
    }
  }

  @Test(arguments: ["", "[listen]\nworkers = 2"]) func `check accepts a valid file`(_ text: String) throws {
    try withLab { lab in
      let file = try lab.file(text)
      let (ending, output, error) = try lab.run("check", "--config", file)
      #expect(ending == .exited(0), "\(error)")
      // It is followed by what depends on the current network.
      #expect(output.hasPrefix("\(file): no mistakes\nLocalDNS: "), "\(output)")
    }
  }

  @Test(arguments: [
    "= = =", "[listen", "\u{0}", String(repeating: "[", count: 100_000), String(repeating: "a.", count: 50_000) + "b=1",
    "x = \"" + String(repeating: "x", count: 2_000_000),
  ]) func `check survives files that are no configuration`(_ text: String) throws {
    try withLab { lab in
      let (ending, _, error) = try lab.run("check", "--config", lab.file(text))
      #expect(ending == .exited(1))
      #expect(!error.isEmpty && error.utf8.count < 10_000)
    }
  }

  @Test func `a missing configuration file is reported`() throws {
    try withLab { lab in
      for command in ["check", "run"] {
        let (ending, _, error) = try lab.run(command, "--config", "\(lab.folder.path)/none.toml")
        #expect(ending == .exited(1))
        #expect(error.contains("none.toml: no such file; create it (an empty one means the defaults) or give --config"))
      }
    }
  }

  @Test func `query names what is wrong with a question, and upstreams that cannot serve it`() throws {
    try withLab { lab in
      let table = try lab.folder.write("{\"enable\":1,\"domainlist\":[]}", to: "table.json")
      let file = try lab.file(Settings(Settings.provider("table", "file = \"\(table)\"")).text)
      for arguments in [["bad..name"], ["example.com", "FOO"]] {
        let (ending, _, error) = try lab.run(["query", "--config", file] + arguments)
        #expect(ending == .exited(64))
        #expect(error.contains("Usage: httpdnsd query "))
      }
      let (_, output, _) = try lab.run("query", "--config", file, "example.com", "TXT")
      #expect(output.contains("reason       no provider serves type TXT\n"))
      let stranger = try lab.run("query", "--config", file, "--provider", "stranger", "example.com")
      #expect(stranger.error == "httpdnsd: unknown provider 'stranger'; configured: table\n")
      let unserved = try lab.run("query", "--config", file, "--provider", "table", "example.com", "TXT")
      #expect(unserved.error == "httpdnsd: provider 'table' cannot serve type TXT\n")
    }
  }

  @Test(arguments: [
    ("http://www.example.com/", "is a URL, not a name; did you mean www.example.com?"),
    ("https://user@www.example.com:8443/a?b#c", "is a URL, not a name; did you mean www.example.com?"),
    ("https://[::1]/", "is a URL, not a name; did you mean ::1?"), ("http://", "is a URL, not a name"),
    ("www.example.com/", "is a host with a port or a path, not a name; did you mean www.example.com?"),
    ("www.example.com:443", "is a host with a port or a path, not a name; did you mean www.example.com?"),
    ("192.0.2.1", "is an address, not a name; `httpdnsd query 192.0.2.1` asks for its name"),
    ("::1", "is an address, not a name; `httpdnsd query ::1` asks for its name"),
  ]) func `a text that is not a name gets a suggestion`(text: String, problem: String) throws {
    for command in ["doctor", "cache"] {
      let (ending, output, error) = try ChildProcess.run([Programs.daemon, command, text])
      #expect(ending == .exited(64) && output.isEmpty)
      #expect(error.hasPrefix("Error: '\(text)' \(problem)\n"), "\(error)")
    }
  }

  @Test func `query takes name and type in either order, an address with PTR, and names with a slash`() throws {
    try withLab { lab in
      let file = try lab.file(Settings(Settings.json(try lab.simulator().http)).text)
      for (arguments, question) in [
        (["AAAA", "example.com"], "example.com. AAAA"), (["65", "example.com"], "example.com. HTTPS"),
        (["mx", "aaaa"], "mx. AAAA"), (["192.0.2.1", "PTR"], "1.2.0.192.in-addr.arpa. PTR"),
        (["ptr", "2001:db8::1"], "1\(String(repeating: ".0", count: 23)).8.b.d.0.1.0.0.2.ip6.arpa. PTR"),
        (["0/26.2.0.192.in-addr.arpa", "PTR"], "0/26.2.0.192.in-addr.arpa. PTR"),
        (["192.0.2.1"], "1.2.0.192.in-addr.arpa. PTR"), (["TXT", "192.0.2.1"], "1.2.0.192.in-addr.arpa. TXT"),
      ] {
        let (_, output, error) = try lab.run(["query", "--config", file] + arguments)
        #expect(output.hasPrefix("question     \(question)\n"), "\(output) \(error)")
      }
    }
  }

  @Test(arguments: [
    ("http://www.example.com/", "www.example.com. A", "a URL"),
    ("https://user@www.example.com:8443/a?b#c", "www.example.com. A", "a URL"),
    ("www.example.com:443", "www.example.com. A", "a host with a port or a path"),
    ("http://192.0.2.1/", "1.2.0.192.in-addr.arpa. PTR", "a URL"),
  ]) func `query asks for the host of a URL and mentions it`(text: String, question: String, kind: String) throws {
    try withLab { lab in
      let file = try lab.file(quiet(Settings(Settings.json(try lab.simulator().http))))
      let (_, output, error) = try lab.run("query", "--config", file, text)
      #expect(output.hasPrefix("question     \(question)\n"), "\(output) \(error)")
      #expect(error.hasPrefix("httpdnsd: '\(text)' is \(kind): asking for its host, "), "\(error)")
      let none = try lab.run("query", "--config", file, "http://")
      #expect(none.ending == .exited(64) && none.error.hasPrefix("Error: 'http://' is a URL, not a name\n"))
    }
  }

  @Test func `flush refuses a wildcard and suggests --below`() throws {
    let (ending, output, error) = try ChildProcess.run([Programs.daemon, "flush", "*.example.com"])
    #expect(ending == .exited(64) && output.isEmpty)
    let line = "Error: '*.example.com': * is not a wildcard; use `flush --below example.com`"
    #expect(error.hasPrefix(line), "\(error)")
  }

  @Test(.enabled(if: geteuid() == 0)) func `commands see their arguments in a root without /proc`() throws {
    let script = "mount -t tmpfs none /proc && exec \"$@\""
    func run(_ arguments: String...) throws -> (ending: ChildProcess.Ending, output: String, error: String) {
      try ChildProcess.run(["unshare", "--mount", "sh", "-c", script, "sh", Programs.daemon] + arguments)
    }
    let version = try run("--version")
    #expect(version.ending == .exited(0) && version.output.wholeMatch(of: /\d+\.\d+\.\d+\n/) != nil, "\(version)")
    let check = try run("check", "--config", "/nonexistent/x.toml")
    #expect(check.ending == .exited(1) && check.error.contains("x.toml: no such file"), "\(check)")
  }

  @Test func `query names the upstream that answered`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let network = try PlainServer(addresses: ["www.corp.example.": "10.1.1.1", "n7.bench.example.": "10.1.1.7"])
      var settings = Settings(Settings.json(simulator.http, "name = \"the-provider\""))
      settings.localServers = [network.address]
      settings.more = """
        [[rule]]
        names = ["corp.example"]
        use = "localdns"
        [[rule]]
        names = ["pinned.example"]
        use = "pinned"
        addresses = ["192.0.2.77"]
        """
      let file = try lab.file(settings.text)
      try simulator.fault("kind=html&name=n7.bench.example")
      for (name, type, expected) in [
        ("example.com", "A", ["the-provider (\(simulator.http))", "NOERROR", "example.com.\t300\tIN\tA\t192.0.2.1"]),
        ("example.com", "mx", ["the-provider", "10 mx.example.com."]),
        ("example.com", "65", ["the-provider", "alpn=h3,h2"]),
        ("nowhere.example.com", "AAAA", ["the-provider", "NXDOMAIN", "\tSOA\t"]),
        ("www.corp.example", "A", ["LocalDNS", "10.1.1.1"]),
        ("n7.bench.example", "A", ["LocalDNS", "10.1.1.7"]),
        ("pinned.example", "A", ["httpdnsd itself", "192.0.2.77"]),
        ("www.test", "A", ["httpdnsd itself", "NXDOMAIN"]),
      ] {
        let (ending, output, error) = try lab.run("query", "--config", file, name, type)
        #expect(ending == .exited(0), "\(error)")
        for text in expected { #expect(output.contains(text), "\(name) \(type)") }
      }
    }
  }

  @Test func `query reports a failure by its exit code and the reason`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let file = try lab.file(Settings(Settings.json(simulator.http)).text)
      try simulator.fault("kind=status&code=503")
      let (ending, output, _) = try lab.run("query", "--config", file, "example.com")
      #expect(ending == .exited(1))
      #expect(
        output.contains("SERVFAIL") && output.contains("\nasked        json: ") && output.contains("HTTP status 503"))
      #expect(!output.contains("answered by") && !output.contains("reason "), "\(output)")
    }
  }

  @Test func `query tells a name that no list has from a type that no provider serves`() throws {
    try withLab { lab in
      let simulator = try lab.simulator("--setting", "not-listed=www.corp.example")
      let table = try lab.folder.write("{\"enable\":1,\"domainlist\":[]}", to: "table.json")
      let off = try lab.folder.write("{\"enable\":0,\"domainlist\":[]}", to: "off.json")
      for (provider, arguments, reason) in [
        (
          Settings.provider("table", "file = \"\(table)\""), ["www.corp.example"],
          "no provider has the name in its table"
        ),
        (Settings.provider("table", "file = \"\(off)\""), ["www.corp.example"], "the table is switched off"),
        (Settings.provider("table", "file = \"\(table)\""), ["www.corp.example", "MX"], "no provider serves type MX"),
        (
          AccountKind.named("tencent, aes over HTTP").provider(simulator), ["www.corp.example"],
          "an empty answer; the name may not be in the list of the provider's account"
        ),
      ] {
        let file = try lab.file(Settings(provider).text)
        let (ending, output, error) = try lab.run(["query", "--config", file] + arguments)
        #expect(ending == .exited(0), "\(error)")
        #expect(
          output.contains("\nreason       \(reason)\n") && !output.contains("\nafter        tencent"), "\(output)")
      }
    }
  }

  @Test func `query gives no reason under an answer that came after a table that is switched off`() throws {
    try withLab { lab in
      let off = try lab.folder.write("{\"enable\":0,\"domainlist\":[]}", to: "off.json")
      let json = Settings.json(try lab.simulator().http)
      let file = try lab.file(Settings(Settings.provider("table", "file = \"\(off)\""), json).text)
      let (ending, output, error) = try lab.run("query", "--config", file, "example.com")
      #expect(ending == .exited(0), "\(error)")
      #expect(output.contains("\nafter        table: its table is switched off\n"), "\(output)")
      #expect(output.contains("\nstatus       NOERROR\nexample.com."), "\(output)")
    }
  }

  @Test func `query says that a running daemon may have an earlier table than a broken file`() throws {
    try withLab { lab in
      let table = try lab.folder.write("{\"enable\":1,", to: "broken.json")
      let file = try lab.file(Settings(Settings.provider("table", "file = \"\(table)\"")).text)
      let (_, output, _) = try lab.run("query", "--config", file, "www.corp.example")
      #expect(
        output.contains("no table yet: ") && output.contains("invalid JSON: unexpected end in line 1"), "\(output)")
      #expect(output.contains("\nnote         a running daemon may still use an earlier table\n"), "\(output)")
    }
  }

  @Test func `query and doctor show a provider's SERVFAIL as its answer`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let file = try lab.file(Settings(Settings.json(simulator.http)).text)
      for arguments in [["query"], ["query", "--provider", "json"]] {
        let (ending, output, _) = try lab.run(arguments + ["--config", file, "servfail.example"])
        #expect(ending == .exited(1))
        #expect(output.contains("answered by  json (\(simulator.http))\n"), "\(output)")
        #expect(
          output.contains("status       SERVFAIL\nreason       \(simulator.http) answers SERVFAIL\n"), "\(output)")
        #expect(!output.contains("\nafter "), "\(output)")
      }
      let (ending, output, _) = try lab.run("doctor", "--config", file, "servfail.example")
      #expect(ending == .exited(2) && output.contains("failed: \(simulator.http) answers SERVFAIL"), "\(output)")
    }
  }

  @Test func `check warns about a missing group and an unknown variable`() throws {
    try withLab { lab in
      let file = try lab.file("[control]\ngroup = \"no-such-group\"")
      let variables = ["HTTPDNSD_LISTN": "127.0.0.1:1"]
      let (ending, _, error) = try lab.run("check", "--config", file, environment: variables)
      #expect(ending == .exited(0))
      #expect(error.contains("warning: \(file): control.group: no group no-such-group in /etc/group; "))
      #expect(error.contains("warning: environment: HTTPDNSD_LISTN: unknown variable; did you mean "))
      let daemon = try lab.daemon(Settings(Settings.json(try lab.simulator().http)).text, environment: variables)
      #expect(daemon.log.contains("WARNING environment: HTTPDNSD_LISTN: unknown variable"))
    }
  }

  @Test(arguments: [
    ["query", "--config", "/dev/null", "bad..name"], ["query", "--config", "/dev/null", "example.com", "NONSENSE"],
    ["query", "--config", "/dev/null", "example.com", "ANY"], ["query"], ["run", "--port", "53"], ["fly"],
  ]) func `a mistake on the command line has its own exit code`(_ arguments: [String]) throws {
    let (ending, output, error) = try ChildProcess.run([Programs.daemon] + arguments)
    #expect(ending == .exited(64))
    #expect(output.isEmpty && error.contains("Error: "))
  }

  @Test(arguments: [
    ("start", "run"), ("serve", "run"), ("chek", "check"), ("validate", "check"), ("querry", "query"),
    ("status", "stats', 'providers' or 'setup status"),
    ("provider", "providers"), ("reprot-bad", "report-bad"),
  ]) func `a subcommand of other programs, or with a slip, gets the one that was meant`(word: String, meant: String)
    throws
  {
    let (ending, output, error) = try ChildProcess.run([Programs.daemon, word, "--config", "/dev/null"])
    #expect(ending == .exited(64) && output.isEmpty)
    #expect(error.hasPrefix("Error: unknown subcommand '\(word)'; did you mean '\(meant)'?\nUsage: "), "\(error)")
  }

  @Test func `check and the log warn of a hosts file that cannot be read as a whole, and reveal no control character`()
    throws
  {
    try withLab { lab in
      let hosts = "\(lab.folder.path)/hosts"
      let text = Settings(Settings.doh(Address("127.0.0.1", 1))).text
        .replacing("hosts_file = \"\"", with: "hosts_file = \"\(hosts)\"")
      let file = try lab.file(text)
      func warnings() throws -> [String] {
        let (ending, _, error) = try lab.run("check", file)
        #expect(ending == .exited(0))
        return error.split(separator: "\n").map(String.init).filter { $0.contains("hosts") }
      }
      let key = "warning: \(file): names.hosts_file: \(hosts)"
      #expect(try warnings() == ["\(key): No such file or directory"])
      _ = try lab.folder.write("127.0.0.1 here.example\n", to: "hosts")
      #expect(try warnings() == [])
      _ = try lab.folder.write("127.0.0.1 here.example\n\u{1B}[2J there.example\n::1\n", to: "hosts")
      let remark = "2 lines cannot be read, the first is line 2: \"\\x1b[2J\" is not an address"
      #expect(try warnings() == ["\(key): \(remark)"])
      let daemon = try lab.daemon(text)
      #expect(daemon.log.contains("WARNING hosts file \(hosts): \(remark)\n"), "\(daemon.log)")
      _ = try lab.folder.write(String(repeating: "#", count: (16 << 20) + 1), to: "hosts")
      #expect(try warnings() == ["\(key): larger than 16 MiB"])
    }
  }

  @Test func `check takes the file as an argument`() throws {
    try withLab { lab in
      let file = try lab.file(Settings(Settings.doh(Address("127.0.0.1", 1))).text)
      let (ending, output, _) = try lab.run("check", file)
      #expect(ending == .exited(0) && output.hasPrefix("\(file): no mistakes\n"))
      let none = try lab.run("check", "\(file).none")
      #expect(none.ending == .exited(1) && none.error.hasPrefix("\(file).none: no such file; "))
      let twice = try lab.run("check", file, "--config", file)
      #expect(twice.ending == .exited(64) && twice.error.hasPrefix("Error: the configuration file is given twice"))
    }
  }

  @Test func `query has one line for each server that it asked, and logs nothing`() throws {
    try withLab { lab in
      let (first, second, plain) = (try lab.closedAddress(), try lab.closedAddress(), try lab.closedAddress())
      var settings = Settings(
        Settings.provider(
          "alidns", "name = \"one\"\nscheme = \"http\"\nservers = \(quoted([first, second].map(\.description)))"))
      settings.localServers = [plain]
      let file = try lab.file(quiet(settings))
      let (ending, output, error) = try lab.run("query", "--config", file, "www.example.com")
      #expect(ending == .exited(1) && error.isEmpty, "\(error)")
      let refused =
        "refused: Connection refused; nothing listens there, or a firewall refuses; check servers"
      #expect(
        output.contains(
          "\nasked        one: \(first): \(refused)\nasked        one: \(second): \(refused)\n"
            + "asked        LocalDNS: \(plain): no answer in time\ntook "), "\(output)")
      #expect(!output.contains("answered by") && !output.contains("reason "), "\(output)")
      let one = try lab.run("query", "--config", file, "--provider", "one", "www.example.com")
      #expect(one.output.contains("asked        one: \(second): \(refused)\n") && one.error.isEmpty, "\(one)")
      // With a log level in the configuration it logs.
      let loud = try lab.run("query", "--config", lab.file(settings.text), "www.example.com")
      #expect(loud.error.contains("WARNING provider one: "), "\(loud.error)")
    }
  }

  @Test func `query shows a remedy for refused credentials, and the service's error code`() throws {
    try withLab { lab in
      let kind = AccountKind.named("emas, v1 over HTTP")
      let simulator = try lab.simulator("--emas-secret", String(repeating: "ab", count: 32))
      let file = try lab.file(quiet(Settings(kind.provider(simulator))))
      let (ending, output, error) = try lab.run("query", "--config", file, "www.example.com")
      #expect(ending == .exited(1) && error.isEmpty)
      #expect(
        output.contains(
          "the provider refused the credentials (InvalidSignature); check account_id and secret_key\n"), "\(output)")
      let doctor = try lab.run("doctor", "--config", file, "www.example.com").output
      #expect(
        doctor.contains("the provider refused the credentials (InvalidSignature); check account_id and secret_key\n"),
        "\(doctor)")
    }
  }

  @Test func `query names url and the HTTP status where a service refuses the path or the parameters`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      for (path, text) in [
        (
          "/resolve",
          "the provider refused the parameters (HTTP status 501); check url or servers, then the provider's "
        ),
        ("/nothing", "the provider does not know the path (HTTP status 404); check the path in url or servers\n"),
      ] {
        let file = try lab.file(quiet(Settings(Settings.provider("doh", "url = \"http://\(simulator.http)\(path)\""))))
        let (_, output, _) = try lab.run("query", "--config", file, "www.example.com")
        #expect(output.contains(": \(text)"), "\(output)")
      }
    }
  }

  @Test func `query recognises a port of the other scheme, and an unknown CA`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let https = try #require(simulator.https).address
      for (url, reason) in [
        (
          "https://\(simulator.http)",
          "\(simulator.http): tls: the server does not speak TLS; is it an http port?; check url or the port in servers"
        ),
        ("http://\(https)", "; is it an https port?; check url or the port in servers"),
        ("https://\(https)", "; if the server is your own, give its CA with ca_file"),
      ] {
        let file = try lab.file(quiet(Settings(Settings.provider("json", "url = \"\(url)/resolve\""))))
        let (_, output, _) = try lab.run("query", "--config", file, "www.example.com")
        #expect(output.contains("\(reason)\n"), "\(output)")
      }
    }
  }

  /// A configuration with the usual level of the log: debugging lines are wanted of the others.
  private func quiet(_ settings: Settings) -> String {
    settings.text.replacingOccurrences(of: "level = \"debug\"", with: "level = \"info\"")
  }

  @Test func `the help has its subcommands in groups, and examples`() throws {
    let help = try ChildProcess.run([Programs.daemon, "--help"]).output
    for word in ["Example: httpdnsd query www.example.com", "SERVE SUBCOMMANDS:", "CACHE SUBCOMMANDS:"] {
      #expect(help.contains(word), "\(help)")
    }
    let bash = try ChildProcess.run([Programs.daemon, "--generate-completion-script", "bash"]).output
    #expect(bash.contains("HTTPS") && bash.contains("report-bad"))
  }

  @Test(arguments: [
    "run", "check", "reload", "query", "doctor", "top", "tail", "stats", "providers", "cache", "flush", "refresh",
    "report-bad", "setup", "setup status", "setup resolved", "setup networkmanager", "setup resolvconf", "setup file",
    "setup undo", "setup pause", "setup resume", "setup renew", "healthcheck",
  ]) func `the help of every command has an example of it`(command: String) throws {
    let words = command.split(separator: " ").map(String.init)
    let help = try ChildProcess.run([Programs.daemon] + words + ["--help"]).output
    #expect(help.contains(try Regex("Example: (sudo )?(\\w+=\\S+ )?httpdnsd \(command)\\b")), "\(help)")
  }

  @Test func `the help of run has signals, variables, an example and exit codes`() throws {
    let help = try ChildProcess.run([Programs.daemon, "run", "--help"]).output
    for word in ["SIGTERM", "SIGHUP", "SIGUSR2", "HTTPDNSD_CONFIG", "HTTPDNSD_PROVIDER", "Example: ", "Exit code 0: "] {
      #expect(help.contains(word), "\(word)")
    }
  }

  @Test func `version and help are printed`() throws {
    let version = try ChildProcess.run([Programs.daemon, "--version"])
    #expect(version.ending == .exited(0))
    #expect(version.output.wholeMatch(of: /\d+\.\d+\.\d+\n/) != nil)
    for arguments in [["--help"], ["run", "--help"], ["check", "--help"], ["query", "--help"], ["help", "query"]] {
      let help = try ChildProcess.run([Programs.daemon] + arguments)
      #expect(help.ending == .exited(0))
      #expect(help.output.contains("USAGE: httpdnsd") && help.error.isEmpty)
    }
  }
}
