// RangeTests.swift -- numbers of the configuration at the ends of their ranges end nothing; those beyond are refused.

import DNSWire
import Foundation
import Testing

/// A key's lowest and highest value.
private struct Ends {
  var key: String
  var values: [String]

  init(_ key: String, _ low: String, _ high: String) { (self.key, values) = (key, [low, high]) }
}

/// The keys with their values at one end.
private func keys(_ ends: [Ends], _ end: Int) -> String {
  ends.map { "\($0.key) = \($0.values[end])" }.joined(separator: "\n")
}

extension Ends {
  /// The same with values that are too low and too high.
  fileprivate var beyond: Ends { Ends(key, Ends.step(values[0], by: -1), Ends.step(values[1], by: 1)) }

  /// The next number, with the unit that it may have.
  private static func step(_ value: String, by step: Double) -> String {
    let quote = value.hasPrefix("\"") ? "\"" : ""
    let digits = value.drop { $0 == "\"" }.prefix { !$0.isLetter && $0 != "\"" }
    let unit = value.drop { $0 == "\"" }.drop { !$0.isLetter }.filter { $0 != "\"" }
    let number = Double(digits.filter { $0 != "_" })!
    let isWhole = number >= 1 || number == 0 && !digits.contains(".")
    return quote + (isWhole ? "\(Int(number + step))" : "\(number + step / 100)") + unit + quote
  }
}

private let ttl = ("\"0s\"", "\"604800s\"")

private let provider = [
  Ends("timeout", "\"100ms\"", "\"10s\""), Ends("attempts_before_switch", "1", "100"),
  Ends("return_to_first", "\"1s\"", "\"1d\""), Ends("requests_per_second", "0", "1_000_000"),
  Ends("units_per_day", "0", "1_000_000_000_000"), Ends("connections", "1", "1024"), Ends("units_reserve", "0", "0.9"),
  Ends("subnets_per_name", "0", "1_000_000"), Ends("not_listed_ttl", ttl.0, ttl.1),
]

private let listen = [
  Ends("workers", "0", "256"), Ends("max_udp_payload", "512", "4096"), Ends("tcp_connections", "1", "65_536"),
  Ends("tcp_per_client", "1", "65_536"), Ends("tcp_idle", "\"1s\"", "\"600s\""),
  Ends("max_in_flight", "1", "1_000_000"),
  Ends("rate_limit", "0", "1_000_000"), Ends("misses_per_client", "0", "1_000_000"),
  Ends("misses_per_domain", "0", "1_000_000"),
]

private let tables: KeyValuePairs = [
  "cache": [
    Ends("max_bytes", "\"64KiB\"", "\"1024GiB\""), Ends("max_entries", "1", "100_000_000"),
    Ends("min_ttl", ttl.0, ttl.1),
    Ends("max_ttl", ttl.0, ttl.1), Ends("max_negative_ttl", "\"0s\"", "\"1d\""),
    Ends("max_failure_ttl", "\"1s\"", "\"300s\""), Ends("stale_wait", "\"0s\"", "\"10s\""),
    Ends("stale_ttl", ttl.0, ttl.1),
    Ends("stale_max_age", ttl.0, ttl.1),
  ],
  "refresh": [
    Ends("at", "0.1", "0.99"), Ends("hot_hits", "0", "1_000_000"), Ends("give_up_after", "1", "1_000_000"),
    Ends("min_ttl", ttl.0, ttl.1), Ends("budget_per_minute", "0", "1_000_000"),
    Ends("budget_per_day", "0", "1_000_000_000"),
  ],
  "ranking": [
    Ends("interval", "\"1s\"", "\"1d\""), Ends("probes_per_minute", "1", "6000"), Ends("answers", "0", "100"),
    Ends("family_threshold", "\"1ms\"", "\"10s\""), Ends("bad_for", "\"1s\"", "\"1d\""),
  ],
]

private let fleet = [
  Ends("timeout", "\"1ms\"", "\"500ms\""), Ends("connect_timeout", "\"10ms\"", "\"10s\""),
  Ends("wait", "\"0ms\"", "\"2s\""),
]

private let table = [Ends("interval", "\"1s\"", "\"1d\""), Ends("ttl", ttl.0, ttl.1)]
private let account = [Ends("expiry", "\"0s\"", "\"1d\"")]
private let routed = [Ends("min_ttl", ttl.0, ttl.1), Ends("max_ttl", ttl.0, ttl.1)]

@Suite(.blocking) struct RangeTests {
  /// A name gets its address, though perhaps not within the shortest time that a provider can be given.
  private func expect(_ daemon: Daemon, _ name: String, _ address: String) throws {
    try eventually("the address of \(name)", within: .seconds(20)) {
      try ask(daemon.address, name).data == [address] ? true : nil
    }
  }

  @Test(arguments: [0, 1])
  func `numbers of stores, tables, accounts and rules at an end of their ranges end nothing`(_ end: Int) throws {
    func rule(_ names: String, _ use: String) -> String {
      "[[rule]]\nnames = [\"\(names)\"]\nuse = \"\(use)\"\n\(keys(routed, end))\n"
    }
    try withLab { lab in
      let server = try lab.simulator().http
      let addresses = "{\"enable\":1,\"domainlist\":[{\"domain\":\"table.example\",\"ips\":[\"192.0.2.1\"]}]}"
      let file = try lab.folder.write(addresses, to: "table.json")
      var settings = Settings(
        Settings.json(server),
        Settings.provider(
          "tencent",
          """
          scheme = "http"
          servers = ["\(server)"]
          cipher = "aes"
          id = "1234"
          key = "AesKey0123456789"
          \(keys(account, end))
          """),
        Settings.provider("table", "file = \"\(file)\"\n\(keys(table, end))"))
      settings.more =
        "[cache]\nredis = \"redis://127.0.0.1:1\"\n[fleet]\n\(keys(fleet, end))\n"
        + rule("n1.bench.example", "tencent") + rule("table.example", "table")
      let socket = settings.openControl(in: lab)
      let daemon = try lab.daemon(settings.text)
      for _ in 0..<2 {
        for number in 0..<3 {
          try expect(daemon, "n\(number).bench.example", "198.18.0.\(number)")
        }
        try expect(daemon, "table.example", "192.0.2.1")
        // The store is never reached.
        for command in ["fleet", "flush"] {
          let ending = try lab.run(command, "--socket", socket).0
          #expect([.exited(0), .exited(1), .exited(2)].contains(ending), "\(command)")
        }
      }
      daemon.process.signal(SIGTERM)
      #expect(try daemon.process.waitForEnd() == .exited(0))
    }
  }

  @Test(arguments: [0, 1]) func `numbers at an end of their ranges end nothing`(_ end: Int) throws {
    try withLab { lab in
      var settings = Settings(Settings.json(try lab.simulator().http, keys(provider, end)))
      settings.listen = keys(listen, end)
      settings.shares = ""
      settings.local = "timeout = \"\(["100ms", "10s"][end])\"\nmax_ttl = \([ttl.0, ttl.1][end])"
      settings.more = tables.map { "[\($0)]\n\(keys($1, end))" }.joined(separator: "\n")
      let socket = settings.openControl(in: lab)
      let daemon = try lab.daemon(settings.text)
      for number in [0, 1, 0, 2, 0] { try expect(daemon, "n\(number).bench.example", "198.18.0.\(number)") }
      for command in [["stats"], ["providers"], ["cache"], ["flush", "n1.bench.example"]] {
        #expect(try lab.run(command + ["--socket", socket]).0 == .exited(0), "\(command)")
      }
      try expect(daemon, "n1.bench.example", "198.18.0.1")
      daemon.process.signal(SIGTERM)
      #expect(try daemon.process.waitForEnd() == .exited(0))
    }
  }

  @Test(arguments: [0, 1]) func `numbers beyond an end of their ranges are refused, each by its key`(_ end: Int) throws
  {
    var sections: [(name: String, ends: [Ends])] = [
      ("listen", listen), ("provider[\"json\"]", provider), ("provider[\"tencent\"]", account),
      ("provider[\"table\"]", table), ("fleet", fleet), ("rule[#1]", routed),
    ]
    sections += tables.map { ($0, $1) }
    func beyond(_ name: String) -> String { keys(sections.first { $0.name == name }!.ends.map(\.beyond), end) }
    try withLab { lab in
      let server = Address("127.0.0.1", 1)
      var settings = Settings(
        Settings.json(server, beyond("provider[\"json\"]")),
        Settings.provider(
          "tencent", "scheme = \"http\"\nservers = [\"\(server)\"]\n\(beyond("provider[\"tencent\"]"))"),
        Settings.provider("table", "file = \"/nonexistent\"\n\(beyond("provider[\"table\"]"))"))
      settings.listen = beyond("listen")
      settings.shares = ""
      settings.more = (tables.map(\.key) + ["fleet"]).map { "[\($0)]\n\(beyond($0))\n" }.joined()
      settings.more += "[[rule]]\nnames = [\"a.example\"]\nuse = \"table\"\n\(beyond("rule[#1]"))\n"
      let (ending, _, error) = try lab.run("check", "--config", try lab.folder.write(settings.text, to: "beyond.toml"))
      #expect(ending == .exited(1))
      for (name, ends) in sections {
        for end in ends { #expect(error.contains(": \(name).\(end.key): "), "\(error)") }
      }
    }
  }
}
