// LimitTests.swift -- what a provider may cost, and how often it may be asked: beyond it the next one answers.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct LimitTests {
  /// Asks for names that no cache has, and expects the provider's answers.
  private func askNames(_ range: Range<Int>, _ server: Address) throws {
    for index in range { #expect(try ask(server, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
  }

  @Test(arguments: [
    ("emas, v1 over HTTP", 3, 3), ("emas, v1 over HTTPS", 15, 3), ("emas, v2 gcm over HTTPS", 17, 3),
    ("tencent, aes over HTTP", 2, 2), ("baidu over HTTPS", 15, 3), ("volcengine over HTTP", 3, 3),
    ("jdcloud over HTTP", 3, 3), ("ucloud over HTTP", 3, 3),
  ])
  func `when the day's units are spent the next provider serves, also after a restart`(
    _ title: String, _ units: Int, _ transfers: Int
  ) throws {
    try withLab { lab in
      let kind = AccountKind.named(title)
      let first = try lab.simulator(https: kind.isSecure)
      let second = try lab.simulator()
      let text = Settings(
        kind.provider(first, "units_per_day = \(units)\nunits_reserve = 0"), Settings.json(second.http)
      ).text
      let environment = ["STATE_DIRECTORY": lab.folder.path]
      let daemon = try lab.daemon(text, environment: environment)
      try askNames(0..<6, daemon.address)
      #expect(try first.count.transfers == transfers)
      #expect(try second.count.transfers == 6 - transfers)
      #expect(try first.count.units == [kind.name: transfers * kind.price])
      daemon.end()
      let kept = try String(contentsOfFile: "\(lab.folder.path)/units", encoding: .utf8)
      #expect(kept.contains(" \(transfers * kind.price)\n"))

      let later = try lab.daemon(text, environment: environment)
      try askNames(6..<9, later.address)
      #expect(try first.count.transfers == transfers)
      #expect(try second.count.transfers == 9 - transfers)
    }
  }

  @Test func `beyond requests_per_second the next provider serves`() throws {
    try withLab { lab in
      let first = try lab.simulator()
      let second = try lab.simulator()
      let daemon = try lab.daemon(
        Settings(Settings.json(first.http, "requests_per_second = 2"), Settings.doh(second.http)).text)
      let queries = (0..<20).map { TestQuery("n\($0).bench.example") }
      let (answers, duration) = try timed { try askAll(daemon.address, queries) }
      for (index, answer) in answers.enumerated() { #expect(answer.reply.data == ["198.18.0.\(index)"]) }
      let most = 2 + 2 * Int(duration.components.seconds + 1)
      #expect((2...most).contains(try first.count.transfers))
      #expect(try first.count.transfers + second.count.transfers == 20)
    }
  }

  @Test(arguments: [false, true])
  func `the transfers that are counted are those that the service got, under each of its faults`(
    isOverHTTP2: Bool
  ) throws {
    var faults = [
      "delay&ms=20", "stall", "reset", "status&code=500", "status&code=403", "status&code=429", "status&code=302",
      "html", "cut", "wrong-question", "garble", "bad-rdata", "bad-name", "loop", "chain", "bogus", "big", "error",
    ]
    // A proxy asks the service again after a reset.
    if isOverHTTP2 { faults.removeAll { $0 == "reset" } }
    try withLab { lab in
      let simulator = try lab.simulator()
      let proxy = isOverHTTP2 ? try HTTP2Proxy(in: lab, before: simulator.http) : nil
      let limits = "timeout = \"300ms\"\nrequests_per_second = 0"
      var settings = Settings(proxy?.provider(limits) ?? Settings.json(simulator.http, limits))
      let socket = "\(lab.folder.path)/control"
      settings.control = "socket = \"\(socket)\""
      let daemon = try lab.daemon(settings.text)
      for (number, fault) in faults.enumerated() {
        try simulator.fault("kind=\(fault)&probability=0.4&below=\(number).bench.example")
        let queries = (0..<20).map { TestQuery("n\($0).\(number).bench.example") }
        _ = try askAll(daemon.address, queries)
      }
      let output = try lab.run("providers", "--json", "--socket", socket).output
      let object = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: [[String: Any]]]
      let counted = try #require(object?["providers"]?[0]["transfers"] as? Int)
      #expect(counted == (try simulator.count.transfers), "\(output)")
      #expect(counted > 200)
    }
  }

  /// What arrives counts, whatever comes back: the service may bill it.
  @Test(arguments: ["baidu over HTTPS", "volcengine over HTTP", "jdcloud over HTTP", "ucloud over HTTP"])
  func `units are those of all names that arrived, under each of the service's faults`(_ title: String) throws {
    try withLab { lab in
      let kind = AccountKind.named(title)
      let simulator = try lab.simulator(
        "--clock-offset", "7200", "--setting", "not-listed=n3.bench.example", "--setting", "baidu-unlisted=refused",
        https: kind.isSecure)
      var settings = Settings(kind.provider(simulator, "timeout = \"300ms\"\nrequests_per_second = 0"))
      let socket = settings.openControl(in: lab)
      settings.more = "[refresh]\nkeep = [\"n1.bench.example\", \"n2.bench.example\", \"n3.bench.example\"]"
      let daemon = try lab.daemon(settings.text)
      try daemon.waitForLog("names and types resolved at start")
      let faults = [
        "delay&ms=20", "stall", "reset", "status&code=500", "status&code=403", "status&code=429", "html", "cut",
        "wrong-question",
      ]
      for (number, fault) in faults.enumerated() {
        try simulator.fault("kind=\(fault)&probability=0.4&below=\(number).bench.example")
        _ = try askAll(daemon.address, (0..<10).map { TestQuery("n\($0).\(number).bench.example") })
      }
      try simulator.clearFaults()
      for number in 0..<10 { try ask(daemon.address, "m\(number).bench.example") }
      // Refreshes go on.
      try eventually("the same units here and there") {
        let (requests, units) = (try simulator.requests, try simulator.count.units[kind.kind] ?? 0)
        let output = try lab.run("providers", "--json", "--socket", socket).output
        let object = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: [[String: Any]]]
        let counted = try #require(object?["providers"]?[0]["units"] as? Int)
        let names = requests.map { request in
          ["dn", "domain", "host"].compactMap { request.parameters[$0] }[0].split(separator: ",").count
        }
        return requests.count > 100 && counted == names.reduce(0, +) * kind.price && counted >= units ? true : nil
      }
    }
  }

  @Test func `after return_to_first the first server is asked again`() throws {
    try withLab { lab in
      let servers = try (0..<2).map { _ in try lab.simulator() }
      let provider = Settings.provider(
        "tencent",
        """
        cipher = "aes"
        id = "1234"
        key = "AesKey0123456789"
        servers = \(quoted(servers.map(\.http.description)))
        attempts_before_switch = 1
        return_to_first = "1s"
        """)
      let daemon = try lab.daemon(Settings(provider).text)
      try servers[0].fault("kind=status&code=503")
      try askNames(0..<3, daemon.address)
      // The first name, and one more of each client.
      #expect(try servers.map { try $0.count.transfers } == [2, 3])
      try servers[0].clearFaults()
      var index = 3
      try eventually("the first server's turn") {
        let before = try servers[1].count.transfers
        try askNames(index..<index + 1, daemon.address)
        index += 1
        return try servers[1].count.transfers == before ? true : nil
      }
    }
  }
}
