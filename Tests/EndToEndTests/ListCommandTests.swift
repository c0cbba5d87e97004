// ListCommandTests.swift -- what commands, metrics and the query log show of lists.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ListCommandTests {
  /// A route of a list in the form of dnsmasq, and a block list by URL with an exception.
  private func withTwoLists(_ body: (ListScene, ListServer, String, Daemon) throws -> Void) throws {
    try withLists { scene in
      let list = try scene.file(
        "china.txt", "# domestic names", "server=/n1.bench.example/114.114.114.114", "regexp:^ads", "10.0.0.0/8",
        "/banner[0-9]/", "regexp:^more")
      let server = try ListServer()
      server["/ads"] = .text("||bench.example^\n@@||n1.bench.example^\n")
      let office = "[[list]]\nname = \"office\"\nurl = \"\(server.url("/ads"))\"\n"
      let daemon = try scene.daemon(
        listRule([list], "json", name: "domestic", "clients = [\"127.0.0.0/8\"]")
          + listRule(["office"], "nxdomain", name: "ads") + office + "[web]\naddress = \"127.0.0.1:0\"\n")
      try daemon.waitFor(.nxDomain, "n2.bench.example")
      try body(scene, server, list, daemon)
    }
  }

  @Test func `lists shows names, lines left out, age, next fetch and state`() throws {
    try withTwoLists { scene, server, list, daemon in
      let (ending, output, _) = try scene.control("lists")
      #expect(ending == .exited(0))
      let lines = output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
      #expect(lines.count == 3, "\(output)")
      #expect(lines[0] == "list names left out age next fetch state")
      #expect(lines[1].wholeMatch(of: /\S+\/china.txt 1 4 \d+ s - loaded/) != nil, "\(lines[1])")
      // An exception is a name of the list as well.
      #expect(lines[2].wholeMatch(of: /office [12] 0 \d+ s (?:2\d h|1 d).* loaded/) != nil, "\(lines[2])")
      struct Lists: Decodable {
        struct List: Decodable {
          let name: String
          let names: Int
          let left_out: [String: Int]
          let age_seconds: Double?
          let next_fetch_seconds: Double?
          let state: String
          let reason: String?
          let in_memory: Bool
        }
        let lists: [List]
      }
      func lists() throws -> [Lists.List] {
        let output = try scene.control("lists", "--json").output
        return try JSONDecoder().decode(Lists.self, from: Data(output.utf8)).lists
      }
      var found = try lists()
      #expect(found.map(\.name) == [list, "office"] && found.allSatisfy { $0.state == "loaded" && !$0.in_memory })
      #expect(found[0].left_out == ["regular expression": 3, "network of addresses": 1] && found[0].names == 1)
      #expect(found[0].next_fetch_seconds == nil && found[0].age_seconds.map { $0 < 600 } == true)
      #expect(found[1].next_fetch_seconds.map { (77_000...96_000).contains($0) } == true)
      server["/ads"] = .status("500 Internal Server Error")
      #expect(try scene.control("lists", "update", "office").ending == .exited(1))
      found = try lists()
      #expect(found[1].state == "failing" && found[1].reason == "status 500")
      #expect(found[1].next_fetch_seconds.map { (50...70).contains($0) } == true)
      #expect(try scene.control("lists", "update", "nothing").error.contains("no list is called nothing"))
      let both = try scene.control("lists", "update")
      #expect(both.ending == .exited(1) && both.error.contains("list office: status 500"), "\(both)")
      server["/ads"] = .text("n2.bench.example\n")
      let good = try scene.control("lists", "update")
      #expect(good.output == "list \(list): unchanged\nlist office: 1 name in use\n", "\(good)")
      #expect(try ask(daemon.address, "n3.bench.example").code == .noError)
    }
  }

  @Test func `lists find names the lists, lines and rules of a name`() throws {
    try withTwoLists { scene, _, list, _ in
      let found = try scene.control("lists", "find", "www.N1.bench.example")
      #expect(found.ending == .exited(0))
      #expect(
        found.output == """
          \(list): line 2: server=/n1.bench.example/114.114.114.114; rule 1 "domestic"
          office: line 2, which takes it out: @@||n1.bench.example^; rule 2 "ads"

          """)
      let none = try scene.control("lists", "find", "www.example.org")
      #expect(none.ending == .exited(2) && none.output == "no list has www.example.org.\n", "\(none)")
      let json = try scene.control("lists", "find", "n2.bench.example", "--json").output
      let object = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
      let hits = try #require(object["lists"] as? [[String: Any]])
      #expect(hits.count == 1 && hits[0]["name"] as? String == "office" && hits[0]["line"] as? Int == 1)
      #expect(hits[0]["text"] as? String == "||bench.example^" && hits[0]["exception"] as? Bool == false)
      #expect(try scene.control("lists", "find").ending == .exited(64))
      #expect(try scene.control("lists", "find", "a..b").ending == .exited(64))
    }
  }

  @Test func `query names rule, list and line, for the daemon itself and for a client`() throws {
    try withTwoLists { scene, _, list, _ in
      func route(_ arguments: String...) throws -> String {
        let command = ["query", "--config", try scene.lab.file(scene.settings.text)] + arguments
        let output = try scene.lab.run(command, environment: scene.environment).output
        let line = output.split(separator: "\n").first { $0.hasPrefix("route ") }
        return line.map { $0.dropFirst(5).trimmingCharacters(in: .whitespaces) } ?? output
      }
      let blocked = "rule 2 \"ads\" (list office, line 1: ||bench.example^): answered by httpdnsd itself"
      let own = try route("n2.bench.example")
      #expect(own == blocked)
      #expect(try route("n2.bench.example", "--client", "127.0.0.1") == blocked)
      #expect(try route("n1.bench.example") == "no rule: json")
      let line = "line 2: server=/n1.bench.example/114.114.114.114"
      #expect(
        try route("n1.bench.example", "--client", "127.0.0.1") == "rule 1 \"domestic\" (list \(list), \(line)): json")
      #expect(try route("n1.bench.example", "--client", "192.0.2.1") == "no rule: json")
      #expect(try scene.command("query", "n1.bench.example", "--client", "nothing").ending == .exited(64))
    }
  }

  @Test func `check counts names and left-out lines of files and copies, and fetches nothing`() throws {
    try withTwoLists { scene, server, list, _ in
      let asked = server.requests.count
      let output = try scene.command("check").output
      #expect(output.contains("list \(list): 1 name (changed "), "\(output)")
      #expect(output.contains(" ago); rule 1 \"domestic\"\n"))
      #expect(
        output.contains("  3 lines left out: regular expression; the first is line 3: regexp:^ads\n"), "\(output)")
      #expect(output.contains("the first is line 4: 10.0.0.0/8\n"), "\(output)")
      #expect(output.contains(/list office: [12] names? \(fetched \d+ s ago\); rule 2 "ads"\n/), "\(output)")
      #expect(server.requests.count == asked)
    }
  }

  @Test func `doctor names the lists that cannot be fetched`() throws {
    try withTwoLists { scene, server, _, _ in
      let good = try scene.command("doctor").output
      #expect(good.contains(/lists.*all are in use/), "\(good)")
      server["/ads"] = .status("500 Internal Server Error")
      #expect(try scene.control("lists", "update", "office").ending == .exited(1))
      let bad = try scene.command("doctor")
      #expect(bad.ending == .exited(2) && bad.output.contains("list office: status 500"), "\(bad)")
    }
  }

  @Test func `metrics and the query log have rules by their names`() throws {
    try withLists { scene in
      let list = try scene.file("names", "n1.bench.example", "regexp:^ads")
      scene.settings.more =
        listRule([list], "nxdomain", name: "ads") + listRule([list], "json") + "[web]\naddress = \"127.0.0.1:0\"\n"
      let text = scene.settings.text.replacing("level = \"debug\"", with: "level = \"debug\"\nqueries = true")
      let daemon = try scene.lab.daemon(text, environment: scene.environment)
      for _ in 0..<3 { try ask(daemon.address, "n1.bench.example") }
      try ask(daemon.address, "n2.bench.example", over: .tcp)
      try eventually("four lines") { daemon.count(" outcome=") == 4 ? true : nil }
      let lines = daemon.log.split(separator: "\n").filter { $0.contains(" outcome=") }
      #expect(lines.count { $0.contains(" rule=ads ") && $0.contains("n1.bench") } == 3)
      #expect(lines.count { !$0.contains(" rule=") && $0.contains("n2.bench") } == 1)
      let scrape = Scrape(text: try WebClient(daemon).get("/metrics").body)
      #expect(scrape["httpdnsd_rule_queries_total{rule=\"ads\"}"] == 3)
      #expect(scrape["httpdnsd_rule_queries_total{rule=\"2\"}"] == 0)
      #expect(scrape["httpdnsd_list_names{list=\"\(list)\"}"] == 1)
      #expect(scrape["httpdnsd_list_lines_left_out{list=\"\(list)\"}"] == 1)
      #expect(try #require(scrape["httpdnsd_list_age_seconds{list=\"\(list)\"}"]) < 600)
    }
  }
}
