// FurtherKindTests.swift -- kinds whose service knows an account by one secret: faults, refusals, batches, lists.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct FurtherKindTests {
  private static let overHTTP = AccountKind.further.filter { !$0.isSecure }

  /// Bodies that carry no answer, with their status; some belong to one kind.
  private static let bodies: [(kind: String?, status: Int, text: String)] = [
    (nil, 200, ""), (nil, 200, "{"), (nil, 200, "[]"), (nil, 200, "{}"), (nil, 200, "{}{}"), (nil, 400, "{}"),
    ("baidu", 200, #"{"msg":"SomeError"}"#), ("baidu", 403, #"{"msg":"SomeError","timestamp":1}"#),
    ("baidu", 200, #"{"msg":"ok","data":[]}"#),
    ("baidu", 200, #"{"msg":"ok","data":{"n0.bench.example":{"ipv4":{"ip":["192.0.2.300"],"ttl":1}}}}"#),
    ("baidu", 200, #"{"msg":"ok","data":{"n0.bench.example":{"ipv4":{"ip":["192.0.2.1"]}}}}"#),
    ("volcengine", 200, #"{"code":7,"message":"x"}"#), ("volcengine", 200, #"{"dns":{}}"#),
    ("volcengine", 200, #"{"host":"n0.bench.example","ips":["x"],"ttl":1}"#), ("volcengine", 405, "{}"),
    ("volcengine", 200, #"{"host":"other.example","ips":["192.0.2.1"],"ttl":1}"#), ("volcengine", 500, "{}"),
    ("jdcloud", 403, #"{"ret_code":7}"#), ("jdcloud", 200, #"{"ret_code":0,"data":"x"}"#),
    ("jdcloud", 403, #"{"ret_code":10015,"msg":"x","data":"n0.bench.example"}"#),
    ("jdcloud", 200, #"{"ret_code":0,"data":[{"domain":"n0.bench.example","ips":["x"],"ttl":1}]}"#),
    ("ucloud", 404, #"{"status":404,"code":"OTHER"}"#), ("ucloud", 200, #"{"status":403,"code":"HOST_FORBIDDEN"}"#),
    ("ucloud", 403, #"{"status":403,"code":"HOST_FORBIDDEN","message":"host resolving is forbidden"}"#),
    ("ucloud", 404, #"{"status":404,"code":"FAIL_TO_RESOLVE","message":"fail to resolve the host"}"#),
    ("ucloud", 200, #"{"host":"n0.bench.example","ip_list":["x"],"ttl":1}"#), ("ucloud", 403, "<html>"),
    ("ucloud", 200, #"{"host":"other.example","ip_list":["192.0.2.1"],"ttl":1}"#),
    ("baidu", 200, #"{"msg":"ok","data":{"other.example":{"ipv4":{"ip":["192.0.2.1"],"ttl":1}}}}"#),
  ]

  @Test(arguments: overHTTP)
  func `a body that carries no answer leads on, and the provider stays in use`(_ kind: AccountKind) throws {
    try withLab { lab in
      let first = try lab.simulator()
      let second = try lab.simulator()
      let daemon = try lab.daemon(Settings(kind.provider(first), Settings.json(second.http)).text)
      var asked = 0
      for body in FurtherKindTests.bodies where body.kind ?? kind.kind == kind.kind {
        let text = body.text.replacing("n0.bench", with: "n\(asked).bench")
        let escaped = text.utf8.map { "%" + String(Int($0) + 256, radix: 16).dropFirst() }.joined()
        try first.fault("kind=body&code=\(body.status)&text=\(escaped)")
        #expect(try ask(daemon.address, "n\(asked).bench.example").data == ["198.18.0.\(asked)"], "\(body)")
        try first.clearFaults()
        asked += 1
        #expect(try second.count.transfers == asked, "\(body)")
      }
      #expect(try ask(daemon.address, "n\(asked).bench.example").data == ["198.18.0.\(asked)"])
      #expect(try second.count.transfers == asked)
    }
  }

  @Test(arguments: overHTTP)
  func `over HTTP a wrong clock costs one more transfer, and the clock is not named`(_ kind: AccountKind) throws {
    try withLab { lab in
      let simulator = try lab.simulator("--clock-offset", "7200")
      let daemon = try lab.daemon(Settings(kind.provider(simulator)).text)
      for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try simulator.requests.map { $0.verified == true } == [false, true, true, true])
      daemon.end()
      #expect(!daemon.log.contains("pausing") && !daemon.log.contains("set the machine's clock"))
    }
  }

  @Test(arguments: AccountKind.further)
  func `a dead first server costs nothing, and faults of a server lead to the second`(_ kind: AccountKind) throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: kind.isSecure)
      let address = try kind.isSecure ? #require(simulator.https).address : simulator.http
      let text = kind.provider(simulator).replacing("[\"\(address)\"]", with: "[\"127.0.0.1:1\", \"\(address)\"]")
      let daemon = try lab.daemon(Settings(text).text)
      for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      for fault in ["reset", "status&code=503", "cut", "html"] {
        try simulator.fault("kind=\(fault)&count=1")
        let name = "n\(fault.utf8.count + 10).bench.example"
        let reply = try ask(daemon.address, name)
        // A second chance at the same server is for faults that may be gone.
        #expect(reply.data.isEmpty == ["cut", "html"].contains(fault), "\(fault): \(reply.errors)")
      }
    }
  }

  @Test(arguments: overHTTP.filter { !$0.isSingle }) func `kept names are refreshed together`(_ kind: AccountKind)
    throws
  {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.setZone(
        "batch.example. 4 SOA ns.batch.example. h.batch.example. 1 3600 600 86400 4\n"
          + ["a", "b", "c"].map {
            "\($0).batch.example. 4 A 192.0.2.1\n\($0).batch.example. 4 AAAA 2001:db8::1"
          }.joined(separator: "\n"))
      var settings = Settings(kind.provider(simulator))
      settings.more = """
        [refresh]
        keep = ["a.batch.example", "b.batch.example", "c.batch.example"]
        min_ttl = "1s"
        """
      let daemon = try lab.daemon(settings.text)
      let batch = try eventually("all names in one transfer", within: .seconds(60)) {
        try simulator.requests.first { $0.questions.count == (kind.isApart ? 3 : 6) && $0.status == 200 }
      }
      #expect(batch.units == 3 * kind.price && batch.verified == true)
      for name in ["a", "b", "c"] { #expect(try ask(daemon.address, "\(name).batch.example").data == ["192.0.2.1"]) }
    }
  }

  @Test(arguments: [
    (
      "baidu",
      "8 requests refused and none answered yet: \"SignatureError\"; check that the provider's console lists these names, "
        + "and account_id and secret"
    ),
    (
      "volcengine",
      "8 requests refused and none answered yet: HTTP status 403; check that the provider's console lists these names, and "
        + "account_id and secret_key"
    ), ("jdcloud", "; check that the provider's console lists these names, and account_id and key"),
  ])
  func `a refusal without a meaning concerns its name, and one line of the log says what to check`(
    name: String, line: String
  ) throws {
    try withLab { lab in
      let kind = AccountKind.named("\(name) over HTTP")
      let statuses = ["baidu", "jdcloud"].flatMap { ["--setting", "\($0)-refusal-status=403"] }
      let first = try lab.simulator(["--secret", "\(name)=Another"] + statuses)
      let second = try lab.simulator()
      let daemon = try lab.daemon(Settings(kind.provider(first), Settings.json(second.http)).text)
      for index in 0..<12 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try first.count.transfers == 12)
      try daemon.waitForLog(line)
      // A key that is repaired is of use at once to names that were not refused: nothing pauses.
      daemon.end()
      #expect(daemon.log.split(separator: "\n").count { $0.contains("none answered yet") } == 1)
      #expect(!daemon.log.contains("pausing"))
    }
  }

  @Test(arguments: ["dns", "array"])
  func `Volcengine's answers to several names are read in each form`(form: String) throws {
    try withLab { lab in
      let kind = AccountKind.named("volcengine over HTTP")
      let simulator = try lab.simulator("--setting", "volcengine-list=\(form)")
      try simulator.setZone(["a", "b"].map { "\($0).batch.example. 60 A 192.0.2.1" }.joined(separator: "\n"))
      var settings = Settings(kind.provider(simulator))
      settings.more = "[refresh]\nkeep = [\"a.batch.example\", \"b.batch.example\"]\ntypes = [\"A\"]"
      let daemon = try lab.daemon(settings.text)
      try eventually("both names in one transfer") { try simulator.requests.first }
      for name in ["a", "b"] { #expect(try ask(daemon.address, "\(name).batch.example").data == ["192.0.2.1"]) }
      #expect(try simulator.requests.map { [$0.questions.count, $0.status] } == [[4, 200]])
    }
  }

  @Test(arguments: ["baidu", "volcengine", "jdcloud"])
  func `a list with an unlisted name is refused, each name is asked alone once, and that one goes on`(_ name: String)
    throws
  {
    try withLab { lab in
      let kind = AccountKind.named("\(name) over HTTP")
      let simulator = try lab.simulator(
        "--setting", "not-listed=c.batch.example", "--setting", "baidu-unlisted=refused")
      try simulator.setZone(["a", "b", "c"].map { "\($0).batch.example. 600 A 192.0.2.1" }.joined(separator: "\n"))
      let local = try PlainServer(addresses: ["c.batch.example.": "198.51.100.3"])
      var settings = Settings(kind.provider(simulator))
      settings.localServers = [local.address]
      settings.more = """
        [refresh]
        keep = ["a.batch.example", "b.batch.example", "c.batch.example"]
        types = ["A"]
        """
      let daemon = try lab.daemon(settings.text)
      try daemon.waitForLog("3 of 3 names and types resolved at start")
      let requests = try simulator.requests
      let names = requests.map { Set($0.questions.compactMap { $0.split(separator: ".").first }) }
      // What Baidu says is not remembered: the last one is asked for as a client's question once more.
      #expect(names == [["a", "b", "c"], ["a"], ["b"], ["c"]] + (name == "baidu" ? [["c"]] : []))
      #expect(requests.map { $0.status == 200 }.prefix(4) == [false, true, true, false])
      for name in ["a", "b"] { #expect(try ask(daemon.address, "\(name).batch.example").data == ["192.0.2.1"]) }
      #expect(try ask(daemon.address, "c.batch.example").data == ["198.51.100.3"])
      #expect(try simulator.count.transfers == requests.count)
    }
  }

  @Test(arguments: ["empty", "omitted", "refused"])
  func `whatever Baidu says to an unlisted name, listed names are the provider's`(form: String) throws {
    try withLab { lab in
      let kind = AccountKind.named("baidu over HTTP")
      let first = try lab.simulator("--setting", "not-listed=n0.bench.example", "--setting", "baidu-unlisted=\(form)")
      let second = try lab.simulator()
      let daemon = try lab.daemon(Settings(kind.provider(first), Settings.json(second.http)).text)
      for index in 0..<4 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try second.count.questions == ["n0.bench.example. A": 1])
      #expect(try first.count.transfers == 4)
    }
  }

  @Test func `a name that UCloud failed to resolve goes on to the next provider`() throws {
    try withLab { lab in
      let first = try lab.simulator("--setting", "ucloud-failing=true")
      let second = try lab.simulator()
      try second.setZone("failing.example. 300 A 192.0.2.5")
      let kind = AccountKind.named("ucloud over HTTP")
      let daemon = try lab.daemon(Settings(kind.provider(first), Settings.json(second.http)).text)
      #expect(try ask(daemon.address, "failing.example").data == ["192.0.2.5"])
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      #expect(try first.requests.map(\.status) == [404, 200])
      #expect(try second.count.transfers == 1)
      daemon.end()
      #expect(!daemon.log.contains("pausing"))
    }
  }

  @Test func `UCloud's account of an application needs app_id`() throws {
    try withLab { lab in
      let first = try lab.simulator("--setting", "ucloud-app=com.example.app")
      let second = try lab.simulator()
      let text = Settings(AccountKind.named("ucloud over HTTP").provider(first), Settings.json(second.http)).text
      let daemon = try lab.daemon(text)
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      #expect(try first.requests.map { $0.parameters["app_id"] } == ["com.example.app"])
      #expect(try second.count.transfers == 0)
      let other = try lab.daemon(text.replacing("app_id = \"com.example.app\"", with: ""))
      #expect(try ask(other.address, "n2.bench.example").data == ["198.18.0.2"])
      #expect(try first.requests.map(\.status) == [200, 401])
      try other.waitForLog("; check auth_id, auth_secret and app_id")
    }
  }

  @Test(arguments: [200, 400, 403])
  func `Baidu's own time counts whatever the status of an old signature`(status: Int) throws {
    try withLab { lab in
      let kind = AccountKind.named("baidu over HTTPS")
      let simulator = try lab.simulator(
        "--clock-offset", "7200", "--setting", "baidu-expired-status=\(status)", https: true)
      let daemon = try lab.daemon(Settings(kind.provider(simulator)).text)
      for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try simulator.requests.map(\.status) == [status, 200, 200, 200])
    }
  }
}
