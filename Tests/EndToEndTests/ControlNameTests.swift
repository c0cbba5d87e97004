// ControlNameTests.swift -- `stats`, `cache`, `refresh` and `report-bad` against a running daemon.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ControlNameTests {
  private typealias Object = [String: Any]

  private func withScene(
    _ more: String = "",
    _ body: (Lab, Simulator, Daemon, ([String]) throws -> (code: Int32, text: String)) throws -> Void
  ) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.doh(simulator.http, "name = \"first\""))
      let socket = settings.openControl(in: lab)
      settings.more = more
      let daemon = try lab.daemon(settings.text)
      try body(lab, simulator, daemon) { arguments in
        let (ending, output, error) = try lab.run(arguments + ["--socket", socket])
        guard case .exited(let code) = ending, error.isEmpty else { throw Failure("\(arguments): \(ending) \(error)") }
        return (code, output)
      }
    }
  }

  private func object(_ text: String) throws -> Object {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? Object)
  }

  @Test func `stats counts a thousand hits as a thousand, by name and in all, under the SDKs' names`() throws {
    try withScene { _, simulator, daemon, control in
      for _ in 0..<1001 { try ask(daemon.address, "www.example.com") }
      try ask(daemon.address, "www.example.com", "AAAA")
      let names = try #require(try object(control(["stats", "--by-name", "--json"]).text)["names"] as? [Object])
      let first = try #require(names.first)
      #expect(first["domain"] as? String == "www.example.com." && first["type"] as? Int == 1)
      #expect(first["cacheDnsNum"] as? Int == 1000 && first["requestPDnsNum"] as? Int == 1)
      #expect(first["successNum"] as? Int == 1 && names.count == 2 && names[1]["type"] as? Int == 28)
      let known = [
        "avgRtt", "cacheDnsNum", "gobackLocaldnsNum", "localErro", "maxRtt", "noPermissionErro", "noResponseErro",
        "requestPDnsNum", "sp", "successNum", "timeoutErro", "type", "urlParameterErro", "urlPathErro",
      ]
      #expect(Set(known).isSubset(of: first.keys))
      let all = try object(control(["stats", "--json"]).text)
      #expect(all["cacheDnsNum"] as? Int == 1000 && all["requestPDnsNum"] as? Int == 2)
      #expect((all["fates"] as? Object)?["hit"] as? Int == 1000 && all["queries"] as? Int == 1002)
      let text = try control(["stats", "--by-name"]).text.split(separator: "\n")
      #expect(text.count == 3 && text[0].hasPrefix("domain") && text[1].hasPrefix("www.example.com.  A "))
      #expect(try control(["stats"]).text.contains(/\ncacheDnsNum +1000\n/))
      // A flush takes the entry, not the count.
      _ = try control(["flush"])
      #expect(try control(["stats", "--by-name", "--json"]).text.contains("\"cacheDnsNum\":1000,"))
    }
  }

  @Test func `stats shows why a provider did not answer`() throws {
    try withScene { _, simulator, daemon, control in
      for (fault, name) in [("code=400", "a"), ("code=404", "b"), ("code=503", "c"), ("code=401", "d")] {
        try simulator.fault("kind=status&\(fault)&count=1")
        try ask(daemon.address, "\(name).bench.example")
      }
      let names = try #require(try object(control(["stats", "--by-name", "--json"]).text)["names"] as? [Object])
      func count(_ name: String, _ counter: String) -> Int? {
        names.first { $0["domain"] as? String == "\(name).bench.example." }?[counter] as? Int
      }
      #expect(count("a", "urlParameterErro") == 1 && count("b", "urlPathErro") == 1)
      #expect(count("c", "noResponseErro") == 1 && count("d", "noPermissionErro") == 1)
    }
  }

  @Test func `cache shows the entries of a name, or that there are none`() throws {
    try withScene { _, _, daemon, control in
      for type in ["A", "AAAA"] { for _ in 0..<3 { try ask(daemon.address, "www.example.com", type) } }
      try ask(daemon.address, "nowhere.example.com")
      let (code, text) = try control(["cache", "WWW.example.com"])
      #expect(code == 0)
      // It may be a second older by now.
      #expect(text.contains(/www\.example\.com\. A: NOERROR, \d s old\n/))
      #expect(text.contains(/\n  www\.example\.com\. (300|29\d) A 192\.0\.2\.1\n/))
      #expect(text.contains("fresh for 4 min") && text.contains("as stale data for ") && text.contains("; 2 hits, "))
      #expect(text.contains("from first; upstreams for such names: first"))
      let kept = try object(control(["cache", "--json", "www.example.com"]).text)
      let entries = try #require(kept["entries"] as? [Object])
      #expect(entries.map { $0["type"] as? String } == ["A", "AAAA"] && entries.map { $0["hits"] as? Int } == [2, 2])
      #expect(
        entries[0]["source"] as? String == "first" && (entries[0]["refresh"] as? Object)?["why"] as? String == "if_hit")
      #expect((entries[0]["answers"] as? [Object])?.first?["data"] as? String == "192.0.2.1")
      #expect(
        try control(["cache", "below.nowhere.example.com"]).text.hasPrefix("nowhere.example.com. (no such name): NX"))
      let nothing = try control(["cache", "other.example"])
      #expect(nothing.code == 2 && nothing.text == "the cache has nothing for other.example.\n")
      #expect(try control(["cache", "--json", "other.example"]).code == 2)
    }
  }

  @Test func `refresh fetches a name at once and shows the result, and a failure leaves the cached answer`() throws {
    let tables = "[refresh]\ntypes = [\"A\"]\n[[rule]]\nnames = [\"blocked.example\"]\nuse = \"nxdomain\""
    try withScene(tables) { _, simulator, daemon, control in
      try ask(daemon.address, "www.example.com")
      let (code, text) = try control(["refresh", "www.example.com"])
      #expect(code == 0 && text.hasPrefix("www.example.com. A: 192.0.2.1, 192.0.2.2; TTL 300 s, from first "))
      #expect(try simulator.count.questions["www.example.com. A"] == 2)
      // A name without entries is fetched in the types of refresh.types, or in those that are named.
      let unknown = try control(["refresh", "n1.bench.example"]).text
      #expect(unknown.hasPrefix("the cache had nothing for n1.bench.example.; fetched now:\nn1.bench.example. A: "))
      let types = try object(
        control(["refresh", "--json", "--type", "aaaa", "--type", "TXT", "n1.bench.example"]).text)
      #expect((types["questions"] as? [Object])?.map { $0["type"] as? String } == ["AAAA", "TXT"])
      // A transfer over loopback takes less than a turn of the loop, but not no time.
      #expect((types["questions"] as? [Object])?.allSatisfy { $0["took_ms"] as? Double ?? 0 > 0 } == true)
      #expect(try simulator.count.questions["n1.bench.example. A"] == 1)
      try simulator.fault("kind=status&code=503")
      let failed = try control(["refresh", "www.example.com"])
      #expect(failed.code == 2 && failed.text.contains("no answer in "))
      #expect(failed.text.contains("the cached answer stays"))
      #expect(try ask(daemon.address, "www.example.com").data.count == 2)
      let never = try control(["refresh", "n2.bench.example"])
      #expect(never.code == 2 && never.text.hasPrefix("the cache had nothing for n2.bench.example.; "))
      #expect(!never.text.contains("stays"))
      let blocked = try control(["refresh", "blocked.example"])
      #expect(blocked.code == 2 && blocked.text.contains("rules or special names answer it"))
    }
  }

  @Test func `a reported address is last, also in the next answer, while the others rotate`() throws {
    try withScene { _, simulator, daemon, control in
      try simulator.setZone("$ORIGIN example.com.\nwww 300 A 192.0.2.1\nwww 300 A 192.0.2.2\nwww 300 A 192.0.2.3\n")
      func answers() throws -> [[String]] { try (0..<6).map { _ in try ask(daemon.address, "www.example.com").data } }
      let before = try answers()
      #expect(Set(before.map { $0[0] }).count == 3)
      let nothing = try control(["report-bad", "www.example.com", "192.0.2.9"])
      #expect(nothing.code == 2 && nothing.text == "no cached answer to www.example.com. has 192.0.2.9\n")
      let (code, text) = try control(["report-bad", "www.example.com", "192.0.2.2"])
      #expect(code == 0 && text == "192.0.2.2 is now last in 1 answer\n")
      let after = try answers()
      #expect(after.allSatisfy { $0.count == 3 && $0[2] == "192.0.2.2" } && Set(after.map { $0[0] }).count == 2)
      #expect(try ask(daemon.address, "www.example.com", over: .tcp).data[2] == "192.0.2.2")
      #expect(
        try control(["report-bad", "--json", "www.example.com", "192.0.2.2"]).text.hasPrefix(
          "{\"moved\":0,\"already\":1,"))
      #expect(try control(["refresh", "www.example.com"]).code == 0)
      #expect(try answers().allSatisfy { $0.count == 3 && $0[2] == "192.0.2.2" })
      #expect(try control(["report", "www.example.com", "192.0.2.2", "--ok"]).code == 0)
      #expect(Set(try answers().map { $0[2] }).count == 3)
    }
  }

  @Test func `flushed entries do not return after a kill`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.doh(simulator.http))
      let socket = settings.openControl(in: lab)
      settings.more = "[cache]\npersist = \"\(lab.folder.path)/cache\""
      let first = try lab.daemon(settings.text)
      for name in ["www.example.com", "n1.bench.example"] { try ask(first.address, name) }
      // The file has both of them.
      first.end()
      let second = try lab.daemon(settings.text)
      try second.waitForLog("2 entries loaded")
      #expect(try lab.run("flush", "www.example.com", "--socket", socket).output.hasPrefix("removed: 1 cached answer,"))
      try second.kill()
      let third = try lab.daemon(settings.text)
      try third.waitForLog("1 entry loaded")
      #expect(try simulator.count.transfers == 2)
      for name in ["www.example.com", "n1.bench.example"] { try ask(third.address, name) }
      #expect(try simulator.count.transfers == 3)
    }
  }

  @Test func `a table that failed is not reported as up`() throws {
    try withLab { lab in
      let file = try lab.folder.write(
        "{\"service\":\"test\",\"enable\":1,\"domainlist\":[{\"domain\":\"www.example.com\",\"ips\":[\"192.0.2.1\"]}]}",
        to: "table.json")
      let socket = "\(lab.folder.path)/control.sock"
      var settings = Settings(
        Settings.provider("table", "name = \"own\"\nfile = \"\(file)\""),
        Settings.provider("table", "name = \"none\"\nurl = \"http://127.0.0.1:1/table\""))
      settings.control = "socket = \"\(socket)\""
      _ = try lab.daemon(settings.text)
      let lines = try lab.run("providers", "--socket", socket).output.split(separator: "\n").map(String.init)
      try #require(lines.count == 4)
      #expect(lines[1].hasPrefix("own       up ") && lines[1].contains(file))
      #expect(lines[2].hasPrefix("none      unreachable ") && lines[3].hasPrefix("none: unreachable: "))
      #expect(lines[3].contains(/; next attempt in [123]?\d s$/), "\(lines[3])")
    }
  }

  /// The counters that only rise, of all that the commands print, by their paths in the object.
  private func counters(_ value: Any, _ path: String = "") -> [String: Double] {
    let passing = [
      "hit_ratio", "mean", "p50", "p99", "avgRtt", "entries", "octets", "waiting_clients", "units_per_day",
      "last_failure_seconds", "next_attempt_seconds",
    ]
    switch value {
    case let object as Object:
      return object.reduce(into: [:]) { result, member in
        guard !passing.contains(member.key) else { return }
        result.merge(counters(member.value, "\(path)/\(member.key)")) { $1 }
      }
    case let list as [Any]:
      return list.reduce(into: [:]) { result, element in
        let own = element as? Object
        let name = own?["name"] ?? own.map { "\($0["domain"] ?? "") \($0["type"] ?? "")" } ?? ""
        result.merge(counters(element, "\(path)/\(name)")) { $1 }
      }
    case let number as NSNumber: return [path: number.doubleValue]
    default: return [:]
    }
  }

  @Test func `no counter falls over a reload, also if a provider has changed`() throws {
    try withLab { lab in
      let (first, second) = (try lab.simulator(), try lab.simulator())
      let socket = "\(lab.folder.path)/control.sock"
      func settings(_ simulator: Simulator, _ more: String = "") -> String {
        var settings = Settings(
          Settings.json(simulator.http, "name = \"changed\"\nunits_per_day = 1000"),
          Settings.doh(first.http, "name = \"same\"\n\(more)"))
        settings.control = "socket = \"\(socket)\""
        settings.more = "[[rule]]\nnames = [\"n9.bench.example\"]\nuse = \"same\""
        return settings.text
      }
      let daemon = try lab.daemon(settings(first))
      func read() throws -> [String: Double] {
        try [["stats"], ["stats", "--by-name"], ["providers"]].reduce(into: [:]) { result, command in
          let output = try lab.run(command + ["--json", "--socket", socket]).output
          result.merge(counters(try object(output), "\(command.joined())")) { $1 }
        }
      }
      func ask(_ number: Int) throws {
        for name in ["n\(number).bench.example", "n0.bench.example"] { try EndToEndTests.ask(daemon.address, name) }
      }
      try first.fault("kind=status&code=503&count=1")
      try ask(0)
      try ask(9)
      var readings = [try read()]
      for (number, text) in [settings(first), settings(second), settings(second, "timeout = \"1s\"")].enumerated() {
        try daemon.reload(text)
        readings.append(try read())
        try ask(number + 1)
        readings.append(try read())
      }
      for (earlier, later) in zip(readings, readings.dropFirst()) {
        for (path, value) in earlier { #expect(later[path] ?? -1 >= value, "\(path)") }
      }
      let (begin, end) = (readings[0], try #require(readings.last))
      func grown(_ path: String) -> Double? { end[path].flatMap { last in begin[path].map { last - $0 } } }
      #expect(grown("stats/queries") == 6 && grown("stats/cacheDnsNum") == 3 && grown("stats/requestPDnsNum") == 3)
      #expect(grown("providers/providers/changed/transfers") == 3)
      #expect(grown("providers/providers/changed/round_trip_ms/count") == 3)
      #expect(grown("providers/providers/same/transfers") == 0)
      #expect(end["providers/providers/changed/failures"] == 1)
      #expect(grown("stats--by-name/names/n0.bench.example. 1/cacheDnsNum") == 3)
    }
  }
}
