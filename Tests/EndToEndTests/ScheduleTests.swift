// ScheduleTests.swift -- lists of servers that services publish: asked for once, kept beyond a restart, switched off.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ScheduleTests {
  private static let account = "account_id = \"100000\"\nsecret_key = \"\(AccountKind.emasSecret)\""

  private static func provider(_ boot: Address, _ more: String = "") -> String {
    Settings.provider("emas", "scheme = \"http\"\nservers = [\"\(boot)\"]\n\(account)\n\(more)")
  }

  /// The path of a file with the authorities of several simulators.
  private static func authorities(of simulators: [Simulator], in lab: Lab) throws -> String {
    let texts = try simulators.map { try String(contentsOfFile: #require($0.https).authority, encoding: .utf8) }
    return try lab.folder.write(texts.joined(), to: "authorities.pem")
  }

  /// A simulator over HTTPS that gives a list with another one, and the keys that trust both.
  private static func pair(in lab: Lab, _ setting: String) throws -> (boot: Simulator, listed: Simulator, keys: String)
  {
    let listed = try lab.simulator(https: true)
    let boot = try lab.simulator("--setting", "\(setting)=\(#require(listed.https).address)", https: true)
    let file = try authorities(of: [boot, listed], in: lab)
    return (boot, listed, try "servers = [\"\(#require(boot.https).address)\"]\nca_file = \"\(file)\"")
  }

  @Test func `the list is asked for once, and serves after a restart without the boot server`() throws {
    try withLab { lab in
      let (boot, service, keys) = try ScheduleTests.pair(in: lab, "emas-service-ip")
      let text = Settings(Settings.provider("emas", "\(keys)\n\(ScheduleTests.account)")).text
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

  /// Asks for other names until a question has come to the listed server.
  private static func waitForList(of daemon: Daemon, with listed: Simulator) throws {
    var number = 0
    try eventually("a question at the listed server") {
      number += 1
      _ = try ask(daemon.address, "n\(1000 + number).bench.example")
      return try listed.count.transfers > 0 ? true : nil
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
      let daemon = try lab.daemon(Settings(Settings.alidns(boot.http, "schedule = true")).text)
      try ScheduleTests.waitForList(of: daemon, with: listed)
      let lists = try boot.requests.filter { $0.questions == ["auto.sdk.alidns.com. SRV"] }
      #expect(lists.map { $0.parameters["uid"] } == ["9999"], "not an account of the configuration")
      let before = try (boot: boot.count.transfers, listed: listed.count.transfers)
      for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try listed.count.transfers == before.listed + 3)
      #expect(try boot.count.transfers == before.boot)
      // The one that is configured stays as the last resort.
      try listed.fault("kind=status&code=500")
      #expect(try ask(daemon.address, "boot.bench.example").data == ["192.0.2.99"])
      #expect(try boot.count.transfers == before.boot + 1)
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

  @Test func `kind ucloud over http asks the nodes first, the base behind them, and saves no list`() throws {
    try withLab { lab in
      let node = try lab.simulator()
      let base = try lab.simulator("--setting", "ucloud-nodes=\(node.http)")
      let daemon = try lab.daemon(
        Settings(ScheduleTests.ucloud(base.http, "app_id = \"com.example.app\"")).text,
        environment: ["STATE_DIRECTORY": lab.folder.path])
      try ScheduleTests.waitForList(of: daemon, with: node)
      let lists = try base.requests.filter { $0.path == "/abc-0001/service" }
      #expect(lists.map { $0.parameters["app_id"] } == ["com.example.app"])
      #expect(lists.allSatisfy { $0.verified == true && $0.units == 0 })
      let served = try node.requests
      #expect(served.map(\.path) == ["/abc-0001/resolve"] && served[0].verified == true)
      #expect(served[0].host == "\(node.http)", "a node is addressed as the list names it")
      // A dead node leads back to the base.
      node.process.end()
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      #expect(try base.requests.last?.questions == ["n1.bench.example. A"])
      daemon.end()
      #expect(!FileManager.default.fileExists(atPath: "\(lab.folder.path)/servers-ucloud"))
    }
  }

  @Test func `kind ucloud over https keeps its list beyond a restart, unless the base is another one`() throws {
    try withLab { lab in
      let (base, node, keys) = try ScheduleTests.pair(in: lab, "ucloud-nodes")
      for simulator in [node, base] { try simulator.setZone("boot.bench.example. 300 A 192.0.2.99") }
      let text = Settings(
        Settings.provider(
          "ucloud",
          "scheme = \"https\"\nauth_id = \"abc-0001\"\nauth_secret = \"UcloudSecret01\"\n\(keys)")
      ).text
      let environment = ["STATE_DIRECTORY": lab.folder.path]
      let daemon = try lab.daemon(text, environment: environment)
      try eventually("the list on disk") {
        FileManager.default.fileExists(atPath: "\(lab.folder.path)/servers-ucloud") ? true : nil
      }
      #expect(try ask(daemon.address, "boot.bench.example").data == ["192.0.2.99"])
      let served = try node.requests
      #expect(served.map(\.path) == ["/abc-0001/resolve"] && served[0].verified == true)
      #expect(served[0].transport == "https" && served[0].host?.hasPrefix("httpdns.ucloud.cn:") == true)
      #expect(try base.count.transfers == 1)
      daemon.end()
      // Without the base the list of the last run serves.
      try base.fault("kind=status&code=500&path=/abc-0001/service")
      let later = try lab.daemon(text, environment: environment)
      #expect(try ask(later.address, "boot.bench.example").data == ["192.0.2.99"])
      #expect(try node.count.transfers == 2)
      later.end()
      // It is not the list of another base.
      let address = try #require(base.https).address
      let other = try lab.daemon(
        text.replacing("[\"\(address)\"]", with: "[\"\(address)\", \"127.0.0.1:1\"]"), environment: environment)
      #expect(try ask(other.address, "boot.bench.example").data == ["192.0.2.99"])
      #expect(try node.count.transfers == 2)
    }
  }

  @Test(arguments: [true, false])
  func `UCloud's nodes over https need the base's certificate, whatever the scheme of their URLs`(hasName: Bool) throws
  {
    try withLab { lab in
      let node = try lab.simulator(hasName ? ["--tls-name", "base.example"] : [], https: true)
      let base = try lab.simulator("--tls-name", "base.example", https: true)
      let place = try #require(node.https).address
      try base.fault(
        "kind=body&code=200&path=/abc-0001/service&text=%7B%22best_service_node%22:%22http://\(place)%22%7D")
      let keys = """
        scheme = "https"
        tls_name = "base.example"
        ca_file = "\(try ScheduleTests.authorities(of: [node, base], in: lab))"
        """
      let text = Settings(ScheduleTests.ucloud(try #require(base.https).address, keys)).text
      let daemon = try lab.daemon(text, environment: ["STATE_DIRECTORY": lab.folder.path])
      try eventually("the list on disk") {
        FileManager.default.fileExists(atPath: "\(lab.folder.path)/servers-ucloud") ? true : nil
      }
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      let served = try node.requests
      #expect(served.map(\.path) == (hasName ? ["/abc-0001/resolve"] : []))
      #expect(served.allSatisfy { $0.transport == "https" && $0.host == "base.example:\(place.port)" })
      #expect(try base.requests.map(\.path).dropFirst() == (hasName ? [] : ["/abc-0001/resolve"]))
    }
  }

  @Test func `with a wrong secret UCloud's account pauses, and the log says why there is no list`() throws {
    try withLab { lab in
      let base = try lab.simulator("--secret", "ucloud=Another")
      let next = try lab.simulator()
      let daemon = try lab.daemon(Settings(ScheduleTests.ucloud(base.http), Settings.json(next.http)).text)
      try daemon.waitForLog("no list of the provider's servers")
      for index in 0..<5 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try base.requests.map(\.path) == ["/abc-0001/service", "/abc-0001/resolve"])
      #expect(try next.count.transfers == 5)
      daemon.end()
      let warnings = daemon.log.split(separator: "\n").filter { $0.contains("refused the credentials") }
      #expect(warnings.count == 2, "\(warnings)")
      #expect(warnings.count { $0.contains("no list of the provider's servers: \(base.http): ") } == 1)
      #expect(warnings.count { $0.contains("; pausing for 30 s; ") } == 1)
      #expect(warnings.allSatisfy { $0.hasSuffix("; check auth_id, auth_secret and app_id") }, "\(warnings)")
    }
  }

  @Test func `with a clock two hours off UCloud's list and names cost one more transfer together`() throws {
    try withLab { lab in
      let node = try lab.simulator("--clock-offset", "7200")
      let base = try lab.simulator("--setting", "ucloud-nodes=\(node.http)", "--clock-offset", "7200")
      let daemon = try lab.daemon(Settings(ScheduleTests.ucloud(base.http)).text)
      try base.waitForTransfers(2)
      try ScheduleTests.waitForList(of: daemon, with: node)
      for index in 0..<3 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      #expect(try base.requests.prefix(2).map(\.path) == ["/abc-0001/service", "/abc-0001/service"])
      #expect(try (base.requests.dropFirst() + node.requests).allSatisfy { $0.status == 200 })
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
