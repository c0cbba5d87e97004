// ReloadTests.swift -- SIGHUP: what changes at once, what needs a restart, and that clients notice nothing else.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ReloadTests {
  /// A rule that answers `pinned.example` with an address.
  private func pinned(_ address: String) -> String {
    "[[rule]]\nnames = [\"pinned.example\"]\nuse = \"pinned\"\naddresses = [\"\(address)\"]\n"
  }

  @Test func `a reload retains cache and sockets and applies new and removed rules`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      let daemon = try lab.daemon(settings.text)
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      #expect(try ask(daemon.address, "pinned.example").code == .nxDomain)
      settings.more = pinned("192.0.2.77")
      try daemon.reload(settings.text)
      #expect(daemon.log.contains(/INFO configuration reloaded in \d+ ms\n/))
      #expect(try ask(daemon.address, "pinned.example").data == ["192.0.2.77"])
      #expect(try ask(daemon.address, "pinned.example", over: .tcp).data == ["192.0.2.77"])
      settings.more = pinned("192.0.2.78")
      try daemon.reload(settings.text)
      #expect(try ask(daemon.address, "pinned.example").data == ["192.0.2.78"])
      let before = try simulator.count
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      #expect(try simulator.count.transfers == before.transfers)
      // The provider is the same: so is its connection.
      #expect(try ask(daemon.address, "n2.bench.example").data == ["198.18.0.2"])
      #expect(try simulator.count.connections == before.connections)
      settings.more = ""
      try daemon.reload(settings.text)
      // The earlier NXDOMAIN, which is cached for half a minute.
      #expect(try ask(daemon.address, "pinned.example").code == .nxDomain)
    }
  }

  @Test func `a removed rule takes its cached answers with it, and no others`() throws {
    try withLab { lab in
      let (first, second) = (try lab.simulator(), try lab.simulator())
      try first.setZone("*.corp.example. 300 A 192.0.2.1\n*.lab.example. 300 A 192.0.2.1\nwww.example. 300 A 192.0.2.1")
      try second.setZone("*.corp.example. 300 A 192.0.2.2\n*.lab.example. 300 A 192.0.2.2")
      func rule(_ name: String, _ more: String = "") -> String {
        "[[rule]]\nnames = [\"\(name)\"]\nuse = \"second\"\n\(more)\n"
      }
      var settings = Settings(
        Settings.provider("json", "name = \"first\"\nurl = \"http://\(first.http)/resolve\""),
        Settings.provider("json", "name = \"second\"\nurl = \"http://\(second.http)/resolve\""))
      let both = rule("corp.example") + rule("lab.example", "max_ttl = \"100s\"")
      settings.more = both
      let daemon = try lab.daemon(settings.text)
      let names = ["a.corp.example", "a.lab.example", "www.example"]
      func answers() throws -> [[String]] { try names.map { try ask(daemon.address, $0).data } }
      #expect(try answers() == [["192.0.2.2"], ["192.0.2.2"], ["192.0.2.1"]])
      settings.more = rule("lab.example", "max_ttl = \"100s\"")
      try daemon.reload(settings.text)
      #expect(daemon.log.contains("cache: dropped 1 entry of removed rules"))
      let before = (try first.count.transfers, try second.count.transfers)
      #expect(try answers() == [["192.0.2.1"], ["192.0.2.2"], ["192.0.2.1"]])
      #expect(try first.count.transfers == before.0 + 1)
      #expect(try second.count.transfers == before.1)
      // What the first has said of the name is not what the rule's provider says, and is there when the rule goes again.
      settings.more = both
      try daemon.reload(settings.text)
      #expect(try answers() == [["192.0.2.2"], ["192.0.2.2"], ["192.0.2.1"]])
      settings.more = ""
      try daemon.reload(settings.text)
      #expect(try answers() == [["192.0.2.1"], ["192.0.2.1"], ["192.0.2.1"]])
      #expect(try first.count.transfers == before.0 + 2)
    }
  }

  @Test func `an invalid file is refused with every mistake, and the old configuration stays`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      settings.more = pinned("192.0.2.77")
      let daemon = try lab.daemon(settings.text)
      let good = settings.text
      let noCertificate = try lab.folder.write("-----BEGIN CERTIFICATE-----\nnothing\n", to: "ca.pem")
      for (bad, lines) in [
        (good + "[cache]\nmax_ttl = \"soon\"\nstale = 7\n", ["ERROR .*: cache.max_ttl: ", "ERROR .*: cache.stale: "]),
        (good + "[cache", ["ERROR .*:\\d+:\\d+: "]),
        (
          good.replacingOccurrences(of: "kind = \"json\"", with: "kind = \"json\"\nca_file = \"\(noCertificate)\"")
            .replacingOccurrences(of: "http://", with: "https://"),
          ["ERROR provider json: certificates .*/ca.pem: no certificate"]
        ),
      ] {
        let before = daemon.log.count
        try daemon.reload(bad, expecting: "ERROR configuration unchanged")
        let log = String(daemon.log.dropFirst(before))
        for line in lines { #expect(log.contains(try Regex(line)), "\(log)") }
        #expect(try ask(daemon.address, "pinned.example").data == ["192.0.2.77"])
        let name = "n\(before).bench.example"
        #expect(try ask(daemon.address, name).code == .noError)
      }
      try FileManager.default.removeItem(atPath: daemon.configuration)
      try daemon.hangUp(expecting: "ERROR configuration unchanged")
      #expect(try ask(daemon.address, "pinned.example").data == ["192.0.2.77"])
      settings.more = ""
      try daemon.reload(settings.text)
      #expect(try ask(daemon.address, "pinned.example").code == .nxDomain)
    }
  }

  @Test func `the command reports its result: done, what needs a restart, or every mistake`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      let socket = settings.openControl(in: lab)
      let daemon = try lab.daemon(settings.text)
      func reload(_ more: String, _ options: String...) throws -> (ChildProcess.Ending, String) {
        try Data((settings.text + more).utf8).write(to: URL(fileURLWithPath: daemon.configuration))
        let (ending, output, error) = try lab.run(["reload", "--socket", socket] + options)
        #expect(error.isEmpty)
        return (ending, output)
      }
      let (done, text) = try reload(pinned("192.0.2.77"))
      #expect(done == .exited(0) && text.hasSuffix(" ms\n"), "\(text)")
      #expect(text.hasPrefix("configuration reloaded from \(daemon.configuration) in "), "\(text)")
      // It counts from the moment at which the command ends.
      #expect(try ask(daemon.address, "pinned.example").data == ["192.0.2.77"])
      let (refused, reasons) = try reload("[cache]\nmax_ttl = \"soon\"\nstale = 7\n")
      #expect(refused == .exited(2) && reasons.hasSuffix("\nconfiguration unchanged\n"))
      #expect(reasons.contains("cache.max_ttl: ") && reasons.contains("cache.stale: "), "\(reasons)")
      #expect(try ask(daemon.address, "pinned.example").data == ["192.0.2.77"])
      let (fixed, object) = try reload("[cache]\nmax_entries = 7\n", "--json")
      let report = try #require(try JSONSerialization.jsonObject(with: Data(object.utf8)) as? [String: Any])
      #expect(fixed == .exited(0) && report["reloaded"] as? Bool == true)
      #expect(report["needs_restart"] as? [String] == ["cache.max_entries"])
    }
  }

  @Test func `reload accepts the daemon's own file by any path, and refuses another one`() throws {
    try withLab { lab in
      var settings = Settings(Settings.json(try lab.simulator().http))
      settings.openControl(in: lab)
      let daemon = try lab.daemon(settings.text)
      let other = try lab.file(settings.text + pinned("192.0.2.77"))
      let (ending, output, error) = try lab.run("reload", "--config", other)
      #expect(ending == .exited(1) && output.isEmpty)
      let reason = "it reads \(daemon.configuration); --config only says where its socket is"
      #expect(error == "httpdnsd: the daemon refuses: \(reason)\n")
      #expect(!daemon.log.contains("configuration reloaded"))
      let link = "\(lab.folder.path)/link.toml"
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: daemon.configuration)
      for path in [daemon.configuration, link] {
        let (ending, output, error) = try lab.run("reload", "--config", path)
        #expect(ending == .exited(0) && output.contains(" from \(daemon.configuration) in "), "\(output) \(error)")
      }
    }
  }

  @Test func `without a control socket the command sends SIGHUP to systemd's process, and to no other`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.json(simulator.http)).text)
      let refused = try lab.run("reload", "--config", daemon.configuration)
      #expect(refused.ending == .exited(1) && refused.error.contains("switched off"))
      let (ending, output, _) = try lab.run(
        "reload", "--config", daemon.configuration, environment: ["MAINPID": "\(daemon.process.pid)"])
      #expect(ending == .exited(0) && output.contains("process \(daemon.process.pid)"))
      try daemon.waitForLog("configuration reloaded")
    }
  }

  @Test func `a file that cannot be read as a whole, or that names another socket, reaches the daemon by systemd`()
    throws
  {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      settings.openControl(in: lab)
      let daemon = try lab.daemon(settings.text)
      func reload(_ text: String) throws -> (ending: ChildProcess.Ending, output: String, error: String) {
        try Data(text.utf8).write(to: URL(fileURLWithPath: daemon.configuration))
        // As ExecReload= calls it.
        let environment = ["MAINPID": "\(daemon.process.pid)", "RUNTIME_DIRECTORY": lab.folder.path]
        return try lab.run("reload", "--config", daemon.configuration, environment: environment)
      }
      // The usual socket's place is known without the file; without a daemon there SIGHUP has to do.
      let syntax = try reload(settings.text + "[cache")
      #expect(syntax.ending == .exited(2) && syntax.output.hasSuffix("\nconfiguration unchanged\n"), "\(syntax)")
      let elsewhere = settings.text.replacingOccurrences(of: "/control.sock", with: "/other.sock")
      let moved = try reload(elsewhere + pinned("192.0.2.77"))
      #expect(moved.ending == .exited(0) && moved.output.contains("process \(daemon.process.pid)"), "\(moved)")
      try daemon.waitForLog("needs a restart to change: control.socket")
      try eventually("the rest") { try ask(daemon.address, "pinned.example").data == ["192.0.2.77"] ? true : nil }
    }
  }

  @Test func `a reload changes access, hosts file, TTLs and log level at once`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let hosts = try lab.folder.write("192.0.2.9 host.example\n", to: "hosts")
      var settings = Settings(Settings.json(simulator.http))
      let daemon = try lab.daemon(settings.text)
      #expect(try ask(daemon.address, "n1.bench.example").ttl ?? 0 > 200)
      settings.listen = "allow = [\"127.0.0.2/32\"]"
      let text = settings.text.replacingOccurrences(of: "hosts_file = \"\"", with: "hosts_file = \"\(hosts)\"")
        .replacingOccurrences(of: "level = \"debug\"", with: "level = \"warning\"")
      try daemon.reload(text + "[cache]\nmax_ttl = \"60s\"\n", expecting: nil)
      try eventually("refused") { try ask(daemon.address, "n1.bench.example").code == .refused ? true : nil }
      let query = TestQuery("host.example")
      #expect(try ask(daemon.address, query, over: .udp, from: "127.0.0.2").data == ["192.0.2.9"])
      #expect(try ask(daemon.address, query, over: .tcp, from: "127.0.0.2").data == ["192.0.2.9"])
      let fresh = try ask(daemon.address, TestQuery("n2.bench.example"), from: "127.0.0.2")
      #expect(fresh.ttl == 60)
      // What is less important is left out now, and comes again.
      settings.listen = ""
      try daemon.reload(settings.text)
      #expect(daemon.log.matches(of: /configuration reloaded/).count == 1)
      #expect(try ask(daemon.address, "host.example").code == .nxDomain)
    }
  }

  @Test func `a hosts file that cannot be read changes nothing, unless it could not be read before`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let hosts = try lab.folder.write("192.0.2.9 host.example\n", to: "hosts")
      var settings = Settings(Settings.json(simulator.http))
      func text(_ path: String) -> String {
        settings.text.replacingOccurrences(of: "hosts_file = \"\"", with: "hosts_file = \"\(path)\"")
      }
      let daemon = try lab.daemon(text(hosts))
      #expect(unlink(hosts) == 0)
      settings.more = pinned("192.0.2.77")
      try daemon.reload(text(hosts), expecting: "ERROR configuration unchanged")
      #expect(daemon.log.contains("ERROR hosts file \(hosts): No such file or directory\n"))
      #expect(try ask(daemon.address, "host.example").data == ["192.0.2.9"])
      #expect(try ask(daemon.address, "pinned.example").code == .nxDomain)
      try daemon.reload(text("/dev/zero"), expecting: "ERROR hosts file /dev/zero: larger than 16 MiB\n")
      #expect(try ask(daemon.address, "host.example").data == ["192.0.2.9"])
      _ = try lab.folder.write("192.0.2.10 host.example\n", to: "hosts")
      try daemon.reload(text(hosts))
      #expect(try ask(daemon.address, "host.example").data == ["192.0.2.10"])

      let later = "\(lab.folder.path)/later"
      let other = try lab.daemon(text(later))
      #expect(other.log.contains("WARNING hosts file \(later): No such file or directory\n"))
      settings.more = pinned("192.0.2.78")
      try other.reload(text(later))
      #expect(try ask(other.address, "pinned.example").data == ["192.0.2.78"])
      _ = try lab.folder.write("192.0.2.11 later.example\n", to: "later")
      try other.hangUp(expecting: "INFO configuration reloaded in ")
      #expect(try ask(other.address, "later.example").data == ["192.0.2.11"])
    }
  }

  @Test func `a key that needs a restart is named, and its old value stays`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      let daemon = try lab.daemon(settings.text)
      settings.addresses = ["127.0.0.1:1"]
      settings.listen = "tcp_connections = 3\nmax_udp_payload = 600"
      settings.more = "[cache]\nmax_entries = 10\n" + pinned("192.0.2.77")
      try daemon.reload(settings.text)
      let warnings = daemon.log.split(separator: "\n").filter { $0.contains("WARNING") && $0.contains("restart") }
      #expect(warnings.count == 1)
      let keys = "listen.addresses, listen.max_udp_payload, listen.tcp_connections, cache.max_entries"
      #expect(warnings.first?.hasSuffix(": needs a restart to change: \(keys)") == true)
      // Everything else of that file counts.
      #expect(try ask(daemon.address, "pinned.example").data == ["192.0.2.77"])
    }
  }

  @Test func `a secret file is read again, and one that has become public is refused`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(
        "--require-signature", "--account", "999999", "--access-key-id", "KEYID", "--access-key-secret", "rotated")
      let secret = try lab.folder.write("initial", to: "secret")
      let account = "account_id = \"999999\"\naccess_key_id = \"KEYID\"\naccess_key_secret_file = \"\(secret)\""
      let settings = Settings(Settings.alidns(simulator.http, account))
      let daemon = try lab.daemon(settings.text)
      #expect(try ask(daemon.address, "n1.bench.example").code == .servFail)
      _ = try lab.folder.write("rotated", to: "secret")
      try daemon.hangUp(expecting: "INFO configuration reloaded in ")
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      #expect(chmod(secret, 0o644) == 0)
      try daemon.hangUp(expecting: "ERROR configuration unchanged")
      #expect(try ask(daemon.address, "n2.bench.example").data == ["198.18.0.2"])
      #expect(!daemon.log.contains("rotated") && !daemon.log.contains("initial"))
    }
  }

  @Test func `the cache file written after a reload is valid after a restart`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      func rule(_ name: String, _ more: String) -> String {
        "[[rule]]\nnames = [\"=\(name).bench.example\"]\nuse = \"json\"\n\(more)\n"
      }
      let (one, two, three) = (
        rule("n1", "fallback = \"never\""), rule("n2", "max_ttl = \"250s\""), rule("n3", "max_ttl = \"200s\"")
      )
      var settings = Settings(Settings.json(simulator.http))
      let cache = "[cache]\npersist = \"\(lab.folder.path)/cache\"\n"
      settings.more = one + two + cache
      let first = try lab.daemon(settings.text)
      for number in 1...4 { #expect(try ask(first.address, "n\(number).bench.example").code == .noError) }
      settings.more = three + two + cache
      try first.reload(settings.text)
      #expect(try ask(first.address, "n3.bench.example").code == .noError)
      first.end()
      let asked = try simulator.count.transfers
      let second = try lab.daemon(settings.text)
      try second.waitForLog("entries loaded")
      for number in [2, 3, 4] { #expect(try ask(second.address, "n\(number).bench.example").code == .noError) }
      #expect(try simulator.count.transfers == asked)
      #expect(try ask(second.address, "n2.bench.example").ttl ?? 0 > 200)
      #expect(try ask(second.address, "n3.bench.example").ttl ?? 300 <= 200)
    }
  }

  @Test func `a changed provider is asked as it is now`() throws {
    try withLab { lab in
      let (first, second) = (try lab.simulator(), try lab.simulator())
      try first.setZone("*.example. 300 A 192.0.2.1")
      try second.setZone("*.example. 300 A 192.0.2.2")
      let daemon = try lab.daemon(Settings(Settings.json(first.http)).text)
      #expect(try ask(daemon.address, "a.example").data == ["192.0.2.1"])
      try daemon.reload(Settings(Settings.json(second.http)).text)
      // An answer is valid to its end, from any upstream.
      #expect(try ask(daemon.address, "a.example").data == ["192.0.2.1"])
      #expect(try ask(daemon.address, "b.example").data == ["192.0.2.2"])
      #expect(try first.count.transfers == 1)
    }
  }
}

extension Daemon {
  /// Writes another configuration, and waits until it counts, or for that line; nil for no wait.
  func reload(_ text: String, expecting line: String? = "INFO configuration reloaded in ") throws {
    // Replaced as an editor does.
    let file = "\(configuration).new"
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    guard rename(file, configuration) == 0 else { throw Failure("cannot replace \(configuration)") }
    try hangUp(expecting: line)
  }

  /// Sends SIGHUP, and waits for the next such line.
  func hangUp(expecting line: String?) throws {
    func count(_ text: String) -> Int { line.map { text.components(separatedBy: $0).count } ?? 0 }
    let before = count(log)
    process.signal(SIGHUP)
    guard let line else { return }
    try process.wait(for: line, in: .error) { count($0) > before ? true : nil }
  }
}
