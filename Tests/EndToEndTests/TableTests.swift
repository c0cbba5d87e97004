// TableTests.swift -- a self-built table: from a file that changes, from a URL, switched off, and a large one.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct TableTests {
  private static func table(_ names: [String: [String]], isEnabled: Bool = true) -> String {
    let entries = names.map { "{\"domain\":\"\($0)\",\"ips\":\(quoted($1))}" }
    let list = entries.joined(separator: ",")
    return "{\"service\":\"test\",\"enable\":\(isEnabled ? 1 : 0),\"domainlist\":[\(list)]}"
  }

  /// Replaces a file as editors and configuration management do.
  private static func replace(_ file: String, by text: String) throws {
    let fresh = "\(file).new"
    try Data(text.utf8).write(to: URL(fileURLWithPath: fresh))
    guard rename(fresh, file) == 0 else { throw Failure("cannot rename \(fresh)") }
  }

  /// A table behind the simulator's URL, fetched every second, whose addresses are not kept.
  private static func remote(_ simulator: Simulator, _ more: String = "") -> String {
    Settings.provider("table", "url = \"http://\(simulator.http)/table\"\ninterval = \"1s\"\nttl = \"0s\"\n\(more)")
  }

  @Test func `a file that is replaced counts at once, and one that is spoiled does not`() throws {
    try withLab { lab in
      let next = try lab.simulator()
      let file = try lab.folder.write(
        TableTests.table(["www.corp.example": ["10.0.0.1", "10.0.0.2", "2001:db8::1"]]), to: "table.json")
      let provider = Settings.provider("table", "file = \"\(file)\"\nttl = \"0s\"")
      let daemon = try lab.daemon(Settings(provider, Settings.json(next.http)).text)
      #expect(try ask(daemon.address, "WWW.corp.example").data == ["10.0.0.1", "10.0.0.2"])
      #expect(try ask(daemon.address, "www.corp.example", "AAAA").data == ["2001:db8::1"])
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"], "what is not listed goes on")
      #expect(try next.count.transfers == 1)

      try TableTests.replace(file, by: TableTests.table(["www.corp.example": ["10.0.0.3"]]))
      try eventually("the new table") {
        try ask(daemon.address, "www.corp.example").data == ["10.0.0.3"] ? true : nil
      }
      // A family that a listed name lacks is NODATA; no other upstream is asked.
      let reply = try ask(daemon.address, "www.corp.example", "AAAA")
      #expect(reply.code == .noError && reply.message.answers.isEmpty)
      #expect(try next.count.transfers == 1)

      try TableTests.replace(file, by: "{\"enable\":1,\"domainlist\":[{\"domain\":")
      try daemon.waitForLog("keeping the old table")
      #expect(try ask(daemon.address, "www.corp.example").data == ["10.0.0.3"])

      try TableTests.replace(file, by: TableTests.table([:], isEnabled: false))
      try daemon.waitForLog("its table is switched off")
      #expect(try ask(daemon.address, "www.corp.example").code == .nxDomain)
    }
  }

  @Test func `check warns of a table file that the daemon could not use`() throws {
    try withLab { lab in
      let text = TableTests.table(["www.example.com": ["192.0.2.1"]])
      let file = try lab.folder.write(text, to: "table.json")
      let configuration = try lab.file(
        Settings(Settings.provider("table", "name = \"own\"\nfile = \"\(file)\"")).text)
      for (text, problem) in [
        (text, nil), ("{\"enable\": 1,\n}", "unreadable: invalid JSON at line 2, column 1"),
        (TableTests.table([:], isEnabled: false), "its table is switched off"),
        (String(repeating: " ", count: 4 << 20) + text, "larger than 4 MiB"),
      ] {
        try TableTests.replace(file, by: text)
        let (ending, output, error) = try lab.run("check", configuration)
        let warnings = problem == nil ? "" : ", 1 warning"
        #expect(ending == .exited(0) && output.hasPrefix("\(configuration): no mistakes\(warnings)\n"), "\(output)")
        let line = problem.map { "warning: \(configuration): provider[\"own\"].file: \(file): \($0)\n" }
        #expect(error == line ?? "", "\(error)")
      }
    }
  }

  @Test func `a URL is asked with the entity tag that it gave`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(TableTests.remote(simulator)).text)
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      try eventually("304") { try simulator.requests.contains { $0.status == 304 } ? true : nil }
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      let requests = try simulator.requests
      #expect(requests.map(\.status).prefix(2) == [200, 304])
      #expect(requests.allSatisfy { $0.path == "/table" })
      try simulator.setZone("example.com. A 192.0.2.77")
      try eventually("the new table") {
        try ask(daemon.address, "example.com").data == ["192.0.2.77"] ? true : nil
      }
    }
  }

  @Test func `a table that is switched off on its server does not count`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let next = try lab.simulator()
      try next.setZone("example.com. 0 A 203.0.113.9")
      let daemon = try lab.daemon(Settings(TableTests.remote(simulator), Settings.json(next.http)).text)
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      for (setting, address) in [("false", "203.0.113.9"), ("true", "192.0.2.1")] {
        try simulator.set("table-enable=\(setting)")
        try eventually("enable = \(setting)") {
          try ask(daemon.address, "example.com").data == [address] ? true : nil
        }
      }
    }
  }

  @Test func `a server that fails leaves the old table in place`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(TableTests.remote(simulator)).text)
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      try simulator.fault("kind=status&code=500")
      try daemon.waitForLog("keeping the old table")
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
    }
  }

  @Test func `without a table no client gets NODATA`() throws {
    try withLab { lab in
      let simulator = try lab.simulator("--fault", "kind=status&code=500")
      let daemon = try lab.daemon(Settings(TableTests.remote(simulator)).text)
      try daemon.waitForLog("no table yet")
      #expect(try ask(daemon.address, "example.com").code == .servFail)
      try simulator.clearFaults()
      try eventually("the table") { try ask(daemon.address, "example.com").data == ["192.0.2.1"] ? true : nil }
      #expect(try ask(daemon.address, "unlisted.example.net").code == .noError)
    }
  }

  @Test func `fifty thousand names are served from memory`() throws {
    try withLab { lab in
      let simulator = try lab.simulator("--setting", "table-domains=50000")
      let provider = Settings.provider("table", "url = \"http://\(simulator.http)/table\"\ntimeout = \"10s\"")
      let daemon = try lab.daemon(Settings(provider).text)
      try daemon.waitForLog("a table of 50000 names")
      let names = [0, 255, 256, 25_000, 49_999].map { ($0, "198.18.\($0 >> 8 & 0xFF).\($0 & 0xFF)") }
      for (index, address) in names {
        let (reply, duration) = try timed { try ask(daemon.address, "n\(index).bench.example") }
        #expect(reply.data == [address])
        #expect(reply.ttl == 60)
        #expect(duration < .seconds(1))
      }
      #expect(try ask(daemon.address, "n50000.bench.example").data.isEmpty)
      #expect(try simulator.count.transfers == 1)
      #expect(daemon.residentMebibytes < 150)
    }
  }
}
