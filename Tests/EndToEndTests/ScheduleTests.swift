// ScheduleTests.swift -- lists of servers that services publish: asked for once, kept beyond a restart, switched off.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ScheduleTests {
  private static func provider(_ boot: Address, _ more: String = "") -> String {
    let account = "account_id = \"100000\"\nsecret_key = \"\(AccountKind.emasSecret)\""
    return Settings.provider("emas", "scheme = \"http\"\nservers = [\"\(boot)\"]\n\(account)\n\(more)")
  }

  @Test func `the list is asked for once, and serves after a restart without the boot server`() throws {
    try withLab { lab in
      let service = try lab.simulator()
      let boot = try lab.simulator("--setting", "emas-service-ip=\(service.http)")
      let text = Settings(ScheduleTests.provider(boot.http)).text
      let environment = ["STATE_DIRECTORY": lab.folder.path]
      let daemon = try lab.daemon(text, environment: environment)
      let file = "\(lab.folder.path)/servers-emas"
      try eventually("the list on disk") { FileManager.default.fileExists(atPath: file) ? true : nil }
      for index in 0..<5 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try boot.requests.map(\.path) == ["/100000/ss"])
      #expect(try boot.requests[0].parameters["region"] == "global")
      #expect(try service.requests.map(\.path) == Array(repeating: "/100000/sign_d", count: 5))
      let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
      #expect(mode == 0o600)
      daemon.end()
      boot.process.end()

      let later = try lab.daemon(text, environment: environment)
      let (reply, duration) = try timed { try ask(later.address, "n7.bench.example") }
      #expect(reply.data == ["198.18.0.7"])
      #expect(duration < .seconds(1), "no client waits for the boot server")
      try later.waitForLog("no list of the provider's servers")
      // Another account's list is not taken for this one's.
      let other = text.replacing("account_id = \"100000\"", with: "account_id = \"100001\"")
      let stranger = try lab.daemon(other, environment: environment)
      #expect(try ask(stranger.address, "n8.bench.example").code == .servFail)
      #expect(try service.count.transfers == 6)
    }
  }

  @Test(arguments: ["kind=status&code=500", "kind=status&code=403", "kind=html", "kind=cut", "kind=reset", nil])
  func `without a list the boot servers answer`(fault: String?) throws {
    try withLab { lab in
      let boot = try fault == nil ? lab.simulator("--setting", "emas-no-servers=true") : lab.simulator()
      if let fault { try boot.fault("path=/100000/ss&\(fault)") }
      let daemon = try lab.daemon(
        Settings(ScheduleTests.provider(boot.http)).text, environment: ["STATE_DIRECTORY": lab.folder.path])
      try daemon.waitForLog("no list of the provider's servers")
      for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try boot.requests.map(\.path) == ["/100000/ss"] + Array(repeating: "/100000/sign_d", count: 3))
    }
  }

  @Test func `schedule = false asks the configured servers`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let provider = ScheduleTests.provider(simulator.http, "schedule = false")
      let daemon = try lab.daemon(Settings(provider).text, environment: ["STATE_DIRECTORY": lab.folder.path])
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      #expect(try simulator.requests.map(\.path) == ["/100000/sign_d"])
      #expect(!FileManager.default.fileExists(atPath: "\(lab.folder.path)/servers-emas"))
    }
  }

  @Test func `a list over HTTPS is one of servers over HTTPS`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      var kind = AccountKind.named("emas, v2 gcm over HTTPS")
      kind = AccountKind(
        title: kind.title, kind: kind.kind, keys: kind.keys.replacing("schedule = false", with: ""), isSecure: true)
      let daemon = try lab.daemon(
        Settings(kind.provider(simulator)).text, environment: ["STATE_DIRECTORY": lab.folder.path])
      try eventually("the list on disk") {
        FileManager.default.fileExists(atPath: "\(lab.folder.path)/servers-emas") ? true : nil
      }
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      #expect(try simulator.requests.map(\.path) == ["/100000/ss", "/v2/d"])
      #expect(try simulator.requests.allSatisfy { $0.transport == "https" })
    }
  }

  @Test func `an account that is switched off is left to the next provider`() throws {
    try withLab { lab in
      let boot = try lab.simulator("--setting", "emas-disable=true")
      let next = try lab.simulator()
      let daemon = try lab.daemon(
        Settings(ScheduleTests.provider(boot.http), Settings.json(next.http)).text,
        environment: ["STATE_DIRECTORY": lab.folder.path])
      try daemon.waitForLog("the service is switched off")
      for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try boot.requests.map(\.path) == ["/100000/ss"])
      #expect(try next.count.transfers == 3)
    }
  }

  @Test func `kind alidns asks the servers of its SRV list first, and the configured ones after them`() throws {
    try withLab { lab in
      let listed = try lab.simulator()
      let zone = try lab.folder.write(
        """
        $ORIGIN auto.sdk.alidns.com.
        @ 300 SOA ns.auto.sdk.alidns.com. nobody.invalid. 1 3600 600 604800 60
        @ 300 SRV 1 0 \(listed.http.port) 127.0.0.1.ipv4.
        $ORIGIN bench.example.
        @ 300 SOA ns.bench.example. nobody.invalid. 1 3600 600 604800 60
        boot 300 A 192.0.2.99
        """, to: "zone")
      let boot = try lab.simulator("--zone", zone)
      let text = Settings(Settings.alidns(boot.http, "schedule = true")).text
      let environment = ["STATE_DIRECTORY": lab.folder.path]
      let daemon = try lab.daemon(text, environment: environment)
      try eventually("the list on disk") {
        FileManager.default.fileExists(atPath: "\(lab.folder.path)/servers-alidns") ? true : nil
      }
      let asked = try boot.requests
      #expect(asked.map(\.questions) == [["auto.sdk.alidns.com. SRV"]])
      #expect(asked.first?.parameters["uid"] == "9999", "not an account of the configuration")
      for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try listed.count.transfers == 3)
      #expect(try boot.count.transfers == 1)
      // The one that is configured stays as the last resort.
      try listed.fault("kind=status&code=500")
      #expect(try ask(daemon.address, "boot.bench.example").data == ["192.0.2.99"])
      #expect(try boot.count.transfers == 2)
    }
  }

  private static func ucloud(_ base: Address, _ more: String = "") -> String {
    Settings.provider(
      "ucloud",
      """
      servers = ["\(base)"]
      auth_id = "abc-0001"
      auth_secret = "UcloudSecret01"
      \(more)
      """)
  }

  @Test func `kind ucloud asks the nodes first, the base behind them, and keeps the list beyond a restart`() throws {
    try withLab { lab in
      let node = try lab.simulator()
      let base = try lab.simulator("--setting", "ucloud-nodes=\(node.http)")
      for simulator in [node, base] { try simulator.setZone("boot.bench.example. 300 A 192.0.2.99") }
      let text = Settings(ScheduleTests.ucloud(base.http, "app_id = \"com.example.app\"")).text
      let environment = ["STATE_DIRECTORY": lab.folder.path]
      let daemon = try lab.daemon(text, environment: environment)
      try eventually("the list on disk") {
        FileManager.default.fileExists(atPath: "\(lab.folder.path)/servers-ucloud") ? true : nil
      }
      let asked = try base.requests
      #expect(asked.map(\.path) == ["/abc-0001/service"] && asked[0].verified == true && asked[0].units == 0)
      #expect(asked[0].parameters["app_id"] == "com.example.app")
      #expect(try ask(daemon.address, "boot.bench.example").data == ["192.0.2.99"])
      let served = try node.requests
      #expect(served.map(\.path) == ["/abc-0001/resolve"] && served[0].verified == true)
      #expect(served[0].host == "\(node.http)", "a node is addressed as the list names it")
      #expect(try base.count.transfers == 1)
      daemon.end()
      // Without the base the list of the last run serves, and a dead node leads back to the base.
      try base.fault("kind=status&code=500&path=/abc-0001/service")
      let later = try lab.daemon(text, environment: environment)
      #expect(try ask(later.address, "boot.bench.example").data == ["192.0.2.99"])
      #expect(try node.count.transfers == 2)
      later.end()
      node.process.end()
      let last = try lab.daemon(text, environment: environment)
      #expect(try ask(last.address, "boot.bench.example").data == ["192.0.2.99"])
      #expect(try base.requests.last?.path == "/abc-0001/resolve")
    }
  }

  @Test func `with a clock two hours off UCloud's list and names cost one more transfer together`() throws {
    try withLab { lab in
      let node = try lab.simulator("--clock-offset", "7200")
      let base = try lab.simulator("--setting", "ucloud-nodes=\(node.http)", "--clock-offset", "7200")
      let daemon = try lab.daemon(
        Settings(ScheduleTests.ucloud(base.http)).text, environment: ["STATE_DIRECTORY": lab.folder.path])
      try eventually("the list on disk") {
        FileManager.default.fileExists(atPath: "\(lab.folder.path)/servers-ucloud") ? true : nil
      }
      for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try base.requests.map(\.status) == [401, 200])
      #expect(try node.requests.map(\.status) == [200, 200, 200])
      daemon.end()
      #expect(!daemon.log.contains("no list of the provider's servers"))
    }
  }

  @Test(arguments: ["kind=status&code=500", "kind=html", "kind=cut", "kind=reset", "kind=body&code=401&text=%7B%7D"])
  func `without a list of nodes UCloud's base answers`(fault: String) throws {
    try withLab { lab in
      let base = try lab.simulator()
      try base.fault("path=/abc-0001/service&\(fault)")
      let daemon = try lab.daemon(
        Settings(ScheduleTests.ucloud(base.http)).text, environment: ["STATE_DIRECTORY": lab.folder.path])
      try daemon.waitForLog("no list of the provider's servers")
      for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
    }
  }
}
