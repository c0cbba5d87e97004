// RefusalTests.swift -- providers that refuse: the next one answers, and one line of the log says what would help.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct RefusalTests {
  /// Asks three names that the second provider answers, and expects that the first was asked `transfers` times.
  private func check(
    _ first: Simulator, _ second: Simulator, _ daemon: Daemon, transfers: Int = 1, remedy: String
  ) throws {
    for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
    #expect(try first.count.transfers == transfers)
    #expect(try second.count.transfers == 3)
    try daemon.waitForLog(remedy)
    daemon.end()
    #expect(daemon.log.split(separator: "\n").count { $0.contains(remedy) } == 1)
  }

  /// One of them has no word for it: FurtherKindTests.
  @Test(arguments: AccountKind.all.filter { $0.isVerified && $0.kind != "volcengine" })
  func `wrong credentials are logged once, and the next provider serves`(_ kind: AccountKind) throws {
    try withLab { lab in
      // The account has changed, and the configuration has not.
      let first = try lab.simulator(
        "--tencent-token", "987654321", "--tencent-aes-key", "AesKey9876543210", "--tencent-des-key", "DesKey99",
        "--emas-secret", String(repeating: "ab", count: 32), "--emas-aes-secret", String(repeating: "cd", count: 16),
        "--secret", "baidu=Another", "--secret", "jdcloud=Another", "--secret", "ucloud=Another",
        https: kind.isSecure)
      let second = try lab.simulator()
      let daemon = try lab.daemon(Settings(kind.provider(first), Settings.json(second.http)).text)
      // Kind tencent has no code for it, so that each name goes on by itself.
      try check(first, second, daemon, transfers: kind.kind == "tencent" ? 3 : 1, remedy: "; \(kind.remedy)")
    }
  }

  @Test(arguments: [
    "emas, v1 over HTTPS", "emas, v2 over HTTPS", "emas, v2 cbc over HTTPS", "baidu over HTTPS",
    "volcengine over HTTPS", "jdcloud over HTTPS", "ucloud over HTTPS",
  ])
  func `over HTTPS a wrong clock costs one more transfer`(_ title: String) throws {
    try withLab { lab in
      let simulator = try lab.simulator("--clock-offset", "5000", https: true)
      let kind = AccountKind.named(title)
      let daemon = try lab.daemon(Settings(kind.provider(simulator)).text)
      for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try simulator.requests.map(\.status) == [kind.kind == "ucloud" ? 401 : 403, 200, 200, 200])
    }
  }

  @Test func `over HTTPS a wrong clock costs kind alidns one more transfer too`() throws {
    try withLab { lab in
      // Its status for an old signature is that for wrong credentials.
      let simulator = try lab.simulator(
        "--clock-offset", "5000", "--require-signature", "--account", "999999", "--access-key-id", "KEYID",
        "--access-key-secret", "SECRET", https: true)
      let https = try #require(simulator.https)
      let provider = Settings.provider(
        "alidns",
        """
        servers = ["\(https.address)"]
        ca_file = "\(https.authority)"
        account_id = "999999"
        access_key_id = "KEYID"
        access_key_secret = "SECRET"
        """)
      let daemon = try lab.daemon(Settings(provider).text)
      for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try simulator.requests.map(\.status) == [401, 200, 200, 200])
    }
  }

  @Test(arguments: ["code", "code-200"])
  func `a refusal of kind alidns as an object with a code begins a pause, whatever the status`(form: String) throws {
    try withLab { lab in
      let first = try lab.simulator(
        "--setting", "alidns-refusal=\(form)", "--require-signature", "--account", "999999", "--access-key-id", "KEYID",
        "--access-key-secret", "SECRET")
      let provider = Settings.provider(
        "alidns",
        """
        scheme = "http"
        servers = ["\(first.http)"]
        account_id = "999999"
        access_key_id = "KEYID"
        access_key_secret = "ANOTHER"
        """)
      let second = try lab.simulator()
      let daemon = try lab.daemon(Settings(provider, Settings.json(second.http)).text)
      try check(first, second, daemon, remedy: "; check account_id, access_key_id and access_key_secret")
    }
  }

  @Test func `a burst of too many requests is logged once, and begins no pause`() throws {
    try withLab { lab in
      let first = try lab.simulator()
      let second = try lab.simulator()
      let kind = AccountKind.named("tencent, aes over HTTP")
      let daemon = try lab.daemon(Settings(kind.provider(first), Settings.json(second.http)).text)
      try first.fault("kind=status&code=429&ms=300")
      let answers = try askAll(daemon.address, (0..<30).map { TestQuery("n\($0).bench.example") })
      #expect(answers.map(\.reply.data) == (0..<30).map { ["198.18.0.\($0)"] })
      try first.clearFaults()
      #expect(try ask(daemon.address, "n30.bench.example").data == ["198.18.0.30"])
      #expect(try first.count.transfers == 31)
      daemon.end()
      let lines = daemon.log.split(separator: "\n").filter { $0.contains("raise the quota") }
      #expect(lines.count == 1 && !daemon.log.contains("pausing"))
    }
  }

  @Test(arguments: ["emas, v1 over HTTP", "emas, v2 over HTTP", "emas, v2 gcm over HTTP"])
  func `over HTTP no clock is learned`(_ title: String) throws {
    try withLab { lab in
      let first = try lab.simulator("--clock-offset", "5000")
      let second = try lab.simulator()
      let daemon = try lab.daemon(
        Settings(AccountKind.named(title).provider(first), Settings.json(second.http)).text)
      try check(first, second, daemon, remedy: "set the machine's clock, which differs from the provider's by ")
    }
  }

  @Test(arguments: [
    "emas, v1 over HTTP", "tencent, aes over HTTP", "baidu over HTTP", "volcengine over HTTP", "jdcloud over HTTP",
    "ucloud over HTTP",
  ])
  func `a provider with a used-up quota is not asked for its Retry-After`(_ title: String) throws {
    try withLab { lab in
      let kind = AccountKind.named(title)
      let first = try lab.simulator()
      let second = try lab.simulator()
      let daemon = try lab.daemon(Settings(kind.provider(first), Settings.json(second.http)).text)
      try first.fault("kind=status&code=429&retry-after=2")
      let before = ContinuousClock.now
      for name in ["n0.bench.example", "example.com", "example.org"] {
        #expect(try ask(daemon.address, name).code != .servFail)
      }
      // Of three domains: a firewall may send it for one name.
      #expect(try first.count.transfers == 3)
      for index in 1..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      // A machine that does much else may take longer for three questions than the pause.
      if ContinuousClock.now - before < .seconds(2) { #expect(try first.count.transfers == 3) }
      try daemon.waitForLog("pausing for 2 s; set requests_per_second, or raise the quota")
      try first.clearFaults()
      try eventually("the first provider's turn") {
        try ask(daemon.address, "ttl-0.example")
        return try first.requests.contains { $0.questions.contains("ttl-0.example. A") } ? true : nil
      }
      let times = try first.requests.map(\.time)
      #expect(times[3] - times[2] >= 1_900)
    }
  }

  @Test(arguments: [
    ("InvalidAccount", "check account_id, and in the provider's console"),
    ("UnsignedInterfaceDisabled", "with signed requests only; pausing for 30 s; set secret_key, or "),
  ])
  func `an account that is not served is logged`(_ code: String, _ remedy: String) throws {
    try withLab { lab in
      let first = try lab.simulator("--fault", "kind=error&error=\(code)")
      let second = try lab.simulator()
      let kind = AccountKind.named("emas, v1 unsigned over HTTP")
      let daemon = try lab.daemon(Settings(kind.provider(first), Settings.json(second.http)).text)
      try check(first, second, daemon, remedy: remedy)
    }
  }

  @Test(arguments: ["kind=status&code=503", "kind=status&code=500", "kind=reset", "kind=error&error=InternalError"])
  func `the second server serves if the first one fails`(_ fault: String) throws {
    try withLab { lab in
      let servers = try (0..<2).map { _ in try lab.simulator() }
      let next = try lab.simulator()
      try servers[0].fault(fault)
      let provider = Settings.provider(
        "emas",
        """
        scheme = "http"
        servers = \(quoted(servers.map(\.http.description)))
        account_id = "100000"
        secret_key = "\(AccountKind.emasSecret)"
        schedule = false
        """)
      let daemon = try lab.daemon(Settings(provider, Settings.json(next.http)).text)
      // Of two domains: one alone decides about no server.
      for (name, address) in [
        ("n0.bench.example", "198.18.0.0"), ("example.com", "192.0.2.1"), ("n1.bench.example", "198.18.0.1"),
      ] {
        #expect(try ask(daemon.address, name).data == [address])
      }
      // From now on the second one comes first, but for one question of each client.
      let before = try servers[0].count.transfers
      for index in 2..<5 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try servers[0].count.transfers == before + 1)
      #expect(try next.count.transfers == 0)
    }
  }
}
