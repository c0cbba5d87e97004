// NetworkTests.swift -- a machine that goes from network to network, as root alone can make one.

import DNSWire
import Foundation
import Testing

@Suite(.blocking, .enabled(if: NetworkNamespace.isPossible, "needs root and network namespaces"))
struct NetworkTests {
  /// A daemon in a network of its own, and the simulator behind the router.
  private func withMachine(
    isConnected: Bool = true, refresh: String = "", cache: String = "", localDNS: String = "",
    resolvers: [String]? = nil,
    _ body: (Daemon, Simulator, NetworkNamespace) throws -> Void
  ) throws {
    try withLab { lab in
      let machine = try NetworkNamespace(in: lab, isConnected: isConnected)
      if let resolvers { try machine.setResolvers(resolvers) }
      let simulator = try lab.simulator([], at: machine.world)
      var settings = Settings(Settings.json(simulator.http))
      settings.addresses = ["\(machine.host):0"]
      settings.listen = "allow = [\"100.64.0.0/10\"]"
      settings.more = "[refresh]\n\(refresh)\n[cache]\n\(cache)"
      let text =
        resolvers == nil
        ? settings.text
        : settings.text.replacing("[localdns]\nservers = []", with: "[localdns]\nservers = [\"system\"]\n\(localDNS)")
      try body(try lab.daemon(text, prefix: machine.prefix), simulator, machine)
    }
  }

  /// How often a name was asked of the simulator.
  private func count(_ simulator: Simulator, _ name: String) throws -> Int {
    try simulator.requests.filter { $0.name == name || $0.name == "\(name)." }.count
  }

  /// Waits until a daemon has settled in the network of a router.
  private func settle(_ daemon: Daemon, _ machine: NetworkNamespace, over router: Int, times: Int = 1) throws {
    let line = "INFO network: eth0 via \(machine.routers[router]) ("
    try daemon.process.wait(for: line, in: .error, within: .seconds(10)) {
      $0.components(separatedBy: line).count > times ? true : nil
    }
  }

  @Test func `on a network with IPv6 alone its NAT64 reaches the provider, and names with IPv4 addresses`() throws {
    try withLab { lab in
      let machine = try NetworkNamespace(in: lab, isConnected: false)
      // A prefix of this process's own, with 192.0.2.99 in it.
      let prefix = "fd64:\(String(getpid() & 0xFFFF, radix: 16))::"
      let router = try machine.routeIPv6(to: ["\(prefix)c000:263"])
      let resolver = try PlainServer(
        addresses: ["ipv4only.arpa.": "\(prefix)c000:aa"], at: Address(router, 53))
      try machine.setResolvers([router])
      let simulator = try lab.simulator([], at: "[\(prefix)c000:263]")
      var settings = Settings(
        Settings.provider("json", "url = \"http://192.0.2.99:\(simulator.http.port)/resolve\""))
      settings.addresses = ["\(machine.host):0"]
      settings.listen = "allow = [\"100.64.0.0/10\"]"
      let daemon = try lab.daemon(
        settings.text.replacing("[localdns]\nservers = []", with: "[localdns]\nservers = [\"system\"]"),
        prefix: machine.prefix)
      try daemon.waitForLog("IPv4 is reached by the prefix \(prefix)/96")
      #expect(try ask(daemon.address, "v4only.example.com", "AAAA").data == ["\(prefix)c000:204"])
      #expect(try ask(daemon.address, "example.com", "AAAA").data == ["2001:db8::1"])
      #expect(try ask(daemon.address, "v4only.example.com").data == ["192.0.2.4"])
      #expect(try simulator.count.transfers == 3)
      #expect(resolver.queries.allSatisfy { "\($0.message.questions[0].question.name)" == "ipv4only.arpa." })
    }
  }

  @Test func `on another network hot names are fetched first, the others once when used`() throws {
    let refresh = """
      keep = ["n1.bench.example"]
      preload = ["n2.bench.example"]
      types = ["A"]
      hot_hits = 3
      """
    try withMachine(refresh: refresh) { daemon, simulator, machine in
      try daemon.waitForLog("2 of 2 names and types resolved at start in ")
      try settle(daemon, machine, over: 0)
      for _ in 0..<5 { try ask(daemon.address, "n3.bench.example") }
      try ask(daemon.address, "n4.bench.example")
      let connections = try simulator.count.connections
      #expect(try simulator.count.transfers == 4)

      try machine.route(over: 1)
      try settle(daemon, machine, over: 1)
      try daemon.waitForLog("3 of 3 names and types resolved for another network in ")
      #expect(try (1...4).map { try count(simulator, "n\($0).bench.example") } == [2, 2, 2, 1])
      #expect(try simulator.count.connections > connections)

      // It is answered from the cache, and fetched behind that.
      try simulator.fault("kind=delay&ms=600")
      for _ in 0..<20 {
        let (reply, duration) = try timed { try ask(daemon.address, "n4.bench.example") }
        #expect(reply.data == ["198.18.0.4"] && reply.errors.isEmpty)
        #expect(duration < .milliseconds(500))
      }
      try simulator.waitForTransfers(8)
      try simulator.clearFaults()
      try eventually("the new answer") {
        try ask(daemon.address, "n4.bench.example").ttl ?? 0 >= 299 ? true : nil
      }
      for index in 1...4 { try ask(daemon.address, "n\(index).bench.example") }
      #expect(try (1...4).map { try count(simulator, "n\($0).bench.example") } == [2, 2, 2, 2])
    }
  }

  @Test func `entries of a network are valid again with it`() throws {
    try withMachine(cache: "per_network = true") { daemon, simulator, machine in
      // The router is known as soon as something was sent over it; before that this is no network.
      try ask(daemon.address, "n1.bench.example")
      try settle(daemon, machine, over: 0)
      try ask(daemon.address, "n2.bench.example")
      try machine.route(over: 1)
      try eventually("the other network's entry", within: .seconds(10)) {
        try ask(daemon.address, "n2.bench.example")
        return try count(simulator, "n2.bench.example") > 1 ? true : nil
      }
      try settle(daemon, machine, over: 1)
      try ask(daemon.address, "n2.bench.example")
      let asked = try count(simulator, "n2.bench.example")
      for _ in 0..<5 { try ask(daemon.address, "n2.bench.example") }
      #expect(try count(simulator, "n2.bench.example") == asked)

      try machine.route(over: 0)
      try settle(daemon, machine, over: 0, times: 2)
      // The old entry, which is refreshed after the answer.
      try simulator.fault("kind=stall")
      let reply = try ask(daemon.address, "n2.bench.example")
      #expect(reply.data == ["198.18.0.2"] && reply.errors.isEmpty)
    }
  }

  @Test func `a link that fails for a moment costs no answer and no transfer`() throws {
    try withMachine { daemon, simulator, machine in
      let names = (0..<5).map { "n\($0).bench.example" }
      for name in names { try ask(daemon.address, name) }
      try settle(daemon, machine, over: 0)
      let reports = daemon.log.components(separatedBy: "the network has changed").count
      try machine.flap(over: 0)
      try eventually("an answer") { try? ask(daemon.address, names[0], within: .milliseconds(500)) }
      try eventually("the flap is noticed") {
        daemon.log.components(separatedBy: "the network has changed").count > reports ? true : nil
      }
      for name in names { #expect(try ask(daemon.address, name).code == .noError) }
      #expect(try ask(daemon.address, "n9.bench.example").data == ["198.18.0.9"])
      #expect(try simulator.count.transfers == 6)
      #expect(daemon.log.components(separatedBy: "INFO network: ").count == 2)
    }
  }

  @Test func `containers that start and stop cost no connection and no transfer`() throws {
    try withMachine { daemon, simulator, machine in
      try ask(daemon.address, "n1.bench.example")
      try settle(daemon, machine, over: 0)
      let reports = daemon.log.components(separatedBy: "the network has changed").count
      let connections = try simulator.count.connections
      try machine.startContainers(8)
      try eventually("they are noticed", within: .seconds(15)) {
        daemon.log.components(separatedBy: "the network has changed").count > reports ? true : nil
      }
      try ask(daemon.address, "n2.bench.example")
      #expect(try simulator.count.connections == connections)
      #expect(try simulator.count.transfers == 2)
    }
  }

  @Test(arguments: ["on-failure", "never"])
  func `a search domain of the network takes no public name away`(fallback: String) throws {
    try withMachine(localDNS: "fallback = \"\(fallback)\"", resolvers: []) { daemon, simulator, machine in
      let forged = ["www.example.com.", "example.com.", "web.corp.example.com."]
      let server = try PlainServer(
        addresses: Dictionary(uniqueKeysWithValues: forged.map { ($0, "10.6.6.6") }),
        at: Address(machine.routers[0], 53))
      try settle(daemon, machine, over: 0)
      // com is a public suffix, example.com a domain like any other: neither is the network's to answer.
      try machine.setResolvers([machine.routers[0]], more: "options ndots:15", "search com example.com")
      try daemon.waitForLog(
        "INFO search domains of the network: com. (no effect: a public suffix), example.com. (its names go to the "
          + "providers first, then to LocalDNS)\n")
      try daemon.waitForLog("INFO search domains updated in ")
      #expect(try ask(daemon.address, "www.example.com").data != ["10.6.6.6"])
      #expect(!server.queries.contains { "\($0.message.questions[0].question.name)" == "www.example.com." })
      // What no provider has is the network's, and each name costs one transfer.
      let transfers = try simulator.count.transfers
      #expect(try ask(daemon.address, "web.corp.example.com").data == ["10.6.6.6"])
      #expect(try ask(daemon.address, "web.corp.example.com", "AAAA").code == .noError)
      #expect(try simulator.count.transfers == transfers + 1)
      // Without the search domain no network has the name, ten seconds after the list was last adopted.
      try machine.setResolvers([machine.routers[0]])
      try eventually("NXDOMAIN", within: .seconds(20)) {
        try ask(daemon.address, "web.corp.example.com").code == .nxDomain ? true : nil
      }
      withExtendedLifetime(server) {}
    }
  }

  @Test func `connected clients are those of the networks that the machine is on now`() throws {
    try withLab { lab in
      let machine = try NetworkNamespace(in: lab)
      let simulator = try lab.simulator([], at: machine.world)
      var settings = Settings(Settings.json(simulator.http))
      settings.addresses = ["\(machine.host):0"]
      settings.listen = "allow = [\"connected\"]"
      let daemon = try lab.daemon(settings.text, prefix: machine.prefix)
      func code(from host: String, over transport: Transport = .udp) throws -> ResponseCode {
        try ask(daemon.address, TestQuery("n1.bench.example"), over: transport, from: host).code
      }
      #expect(try code(from: machine.routers[0]) == .noError)
      #expect(try code(from: machine.world) == .refused)
      try machine.joinSecondNetwork()
      try eventually("an answer for the new network") { try code(from: machine.world) == .noError ? true : nil }
      #expect(try code(from: machine.world, over: .tcp) == .noError)
      try machine.leaveSecondNetwork()
      // The tables are rebuilt once in ten seconds at most.
      try eventually("refusal of the old network", within: .seconds(20)) {
        try code(from: machine.world) == .refused ? true : nil
      }
      #expect(try code(from: machine.world, over: .tcp) == .refused)
      #expect(try code(from: machine.routers[0]) == .noError)
      #expect(daemon.log.contains("INFO listen.allow: the connected networks have changed: +"))
      // A network that gives the mask 0.0.0.0 does not let everybody ask.
      try machine.joinNetworkOfEverybody(as: "192.0.2.1")
      try eventually("the network of everybody", within: .seconds(20)) {
        daemon.log.contains("the connected networks have changed: +192.0.0.0/8") ? true : nil
      }
      #expect(try code(from: machine.world) == .refused)
    }
  }

  @Test func `repeated changes of the search list cost no transfer, and the last one applies`() throws {
    try withLab { lab in
      let machine = try NetworkNamespace(in: lab)
      let simulator = try lab.simulator([], at: machine.world)
      let server = try PlainServer(
        addresses: ["web.corp.example.com.": "10.6.6.6", "web.last.example.com.": "10.6.6.7"],
        at: Address(machine.routers[0], 53))
      let hosts = try lab.folder.write("192.0.2.9 host.example\n", to: "hosts")
      try machine.setResolvers([machine.routers[0]])
      var settings = Settings(Settings.json(simulator.http))
      settings.addresses = ["\(machine.host):0"]
      settings.listen = "allow = [\"100.64.0.0/10\"]"
      let text = settings.text.replacing("[localdns]\nservers = []", with: "[localdns]\nservers = [\"system\"]")
        .replacing("hosts_file = \"\"", with: "hosts_file = \"\(hosts)\"")
      let daemon = try lab.daemon(text, prefix: machine.prefix)
      try settle(daemon, machine, over: 0)
      // What was read counts, also when the file is gone.
      #expect(unlink(hosts) == 0)
      let taken = "INFO search domains updated in "
      func search(_ list: String) throws {
        try machine.setResolvers([machine.routers[0]], more: "search corp.example.com \(list)")
        try daemon.process.wait(for: list, in: .error, within: .seconds(5)) { $0.contains(list) ? true : nil }
      }
      try search("first.example.com")
      try daemon.waitForLog(taken)
      #expect(try ask(daemon.address, "web.corp.example.com").data == ["10.6.6.6"])
      let transfers = try simulator.count.transfers
      let began = ContinuousClock.now
      for list in ["second.example.com", "third.example.com", "last.example.com"] { try search(list) }
      #expect(daemon.log.components(separatedBy: taken).count == 2)
      try daemon.process.wait(for: taken, in: .error, within: .seconds(20)) {
        $0.components(separatedBy: taken).count > 2 ? true : nil
      }
      #expect(ContinuousClock.now - began > .seconds(5))
      // The provider's NXDOMAIN is remembered.
      for type in ["AAAA", "MX"] { #expect(try ask(daemon.address, "web.corp.example.com", type).code == .noError) }
      #expect(try simulator.count.transfers == transfers)
      #expect(try ask(daemon.address, "web.last.example.com").data == ["10.6.6.7"])
      #expect(try ask(daemon.address, "host.example").data == ["192.0.2.9"])
      #expect(daemon.log.components(separatedBy: taken).count == 3)
      withExtendedLifetime(server) {}
    }
  }

  @Test func `between two networks no search list applies`() throws {
    try withMachine(resolvers: []) { daemon, _, machine in
      let server = try PlainServer(
        addresses: ["web.corp.example.com.": "10.6.6.6"], at: Address(machine.routers[0], 53))
      func wait(for line: String, times: Int) throws {
        try daemon.process.wait(for: line, in: .error, within: .seconds(5)) {
          $0.components(separatedBy: line).count > times ? true : nil
        }
      }
      let (found, taken) = ("INFO the network's resolvers: ", "INFO search domains updated in ")
      try settle(daemon, machine, over: 0)
      try machine.setResolvers([machine.routers[0]], more: "search corp.example.com")
      try wait(for: taken, times: 1)
      try machine.setResolvers([])
      try wait(for: "\(found)none", times: 2)
      try machine.setResolvers([machine.routers[0]], more: "search corp.example.com")
      try wait(for: "\(found)\(machine.routers[0])", times: 2)
      #expect(try ask(daemon.address, "web.corp.example.com").data == ["10.6.6.6"])
      #expect(daemon.log.components(separatedBy: taken).count == 2)
      withExtendedLifetime(server) {}
    }
  }

  @Test func `check, doctor and query show what the network changes, and the route of a name`() throws {
    try withLab { lab in
      let machine = try NetworkNamespace(in: lab)
      let simulator = try lab.simulator([], at: machine.world)
      let server = try PlainServer(
        addresses: ["web.corp.example.com.": "10.6.6.6"], at: Address(machine.routers[0], 53))
      try machine.setResolvers([machine.routers[0]], more: "search com corp.example.com ad.local")
      var settings = Settings(Settings.json(simulator.http))
      settings.more = "[[rule]]\nname = \"blocked\"\nnames = [\"rule.corp.example.com\"]\nuse = \"nxdomain\""
      let file = try lab.file(
        settings.text.replacing("[localdns]\nservers = []", with: "[localdns]\nservers = [\"system\"]"))
      func run(_ arguments: String...) throws -> String {
        try ChildProcess.run(machine.prefix + [Programs.daemon] + arguments + ["--config", file]).output
      }
      let check = try run("check")
      for line in [
        "LocalDNS: \(machine.routers[0]):53", "search domain com.: no effect: a public suffix",
        "search domain corp.example.com.: its names go to the providers first, then to LocalDNS",
        "search domain ad.local.: its names go to LocalDNS alone",
      ] {
        #expect(check.contains("\(line)\n"), "\(check)")
      }
      let local = "LocalDNS (\(machine.routers[0]):53)"
      let doctor = try run("doctor", "www.example.com")
      #expect(doctor.contains("search domain com.: no effect: a public suffix\n"), "\(doctor)")
      #expect(doctor.contains("route: no rule: json; LocalDNS when it fails\n"), "\(doctor)")
      for (name, route, answer) in [
        ("www.example.com", "no rule: json; LocalDNS when it fails", "json (\(simulator.http))"),
        (
          "web.corp.example.com",
          "search domain corp.example.com. of the network: json; LocalDNS for names that do not exist there; LocalDNS when it fails",
          "\(local)\nafter        json: no such name"
        ),
        ("dc.ad.local", "search domain ad.local. of the network: LocalDNS", local),
        (
          "rule.corp.example.com", "rule 1 \"blocked\" (rule.corp.example.com.): answered by httpdnsd itself",
          "httpdnsd itself"
        ),
        ("nas", "name of one label: LocalDNS", local), ("x.lan", "special name lan.: LocalDNS", local),
        ("1.2.3.4.", "address instead of a name: answered by httpdnsd itself", "httpdnsd itself"),
        ("captive.apple.com", "captive portal's probe: LocalDNS", local),
        ("x.httpdnsd.test", "httpdnsd's own name (*.httpdnsd.test.): answered by httpdnsd itself", "httpdnsd itself"),
      ] {
        let output = try run("query", name)
        #expect(output.contains("\nroute        \(route)\nanswered by  \(answer)\n"), "\(output)")
      }
      // In a provider's place, and why.
      try simulator.fault("kind=status&code=503")
      let output = try run("query", "web.corp.example.com")
      #expect(output.contains("answered by  \(local)\nafter        json: "), "\(output)")
      withExtendedLifetime(server) {}
    }
  }

  @Test func `a machine that gets a network after the start resolves its names then`() throws {
    let refresh = "preload = [\"n2.bench.example\"]\ntypes = [\"A\"]"
    try withMachine(isConnected: false, refresh: refresh) { daemon, simulator, machine in
      try daemon.waitForLog("0 of 1 names and types resolved at start in ")
      try machine.route(over: 0)
      try eventually("the name to preload", within: .seconds(10)) {
        try count(simulator, "n2.bench.example") > 0 ? true : nil
      }
      try settle(daemon, machine, over: 0)
    }
  }

  @Test func `resolvers follow the network at once`() throws {
    try withMachine(resolvers: []) { daemon, _, machine in
      #expect(try ask(daemon.address, "printer").code == .nxDomain)
      // Each router has its own idea of that name.
      let servers = try machine.routers.enumerated().map { index, router in
        try PlainServer(addresses: ["printer.": "10.0.\(index).1"], at: Address(router, 53))
      }
      for index in [0, 1] {
        try machine.setResolvers([machine.routers[index]])
        try daemon.waitForLog("INFO the network's resolvers: \(machine.routers[index]):53\n")
        let name = "printer"
        try eventually("the resolver's answer") {
          try ask(daemon.address, name).data == ["10.0.\(index).1"] ? true : nil
        }
        guard index == 0 else { return }
        try machine.route(over: 1)
        try settle(daemon, machine, over: 1)
      }
      withExtendedLifetime(servers) {}
    }
  }

  @Test func `a captive portal's answer is not valid on another network`() throws {
    try withMachine(resolvers: []) { daemon, simulator, machine in
      let portal = "detectportal.firefox.com"
      let servers = try machine.routers.enumerated().map { index, router in
        try PlainServer(addresses: ["\(portal).": "10.0.\(index).1"], at: Address(router, 53))
      }
      try machine.setResolvers([machine.routers[0]])
      try settle(daemon, machine, over: 0)
      try daemon.waitForLog("INFO the network's resolvers: \(machine.routers[0]):53\n")
      try eventually("the portal's address") {
        let reply = try ask(daemon.address, portal)
        #expect(reply.ttl ?? 0 <= 10)
        return reply.data == ["10.0.0.1"] ? true : nil
      }
      let seen = servers[0].queries.count
      for _ in 0..<5 { #expect(try ask(daemon.address, portal).data == ["10.0.0.1"]) }
      #expect(servers[0].queries.count == seen)

      let left = ContinuousClock.now
      try machine.setResolvers([machine.routers[1]])
      try machine.route(over: 1)
      try settle(daemon, machine, over: 1)
      try daemon.waitForLog("INFO the network's resolvers: \(machine.routers[1]):53\n")
      #expect(try ask(daemon.address, portal).data == ["10.0.1.1"])
      // Not because those ten seconds are over.
      #expect(ContinuousClock.now - left < .seconds(9))
      #expect(try simulator.count.transfers == 0)
    }
  }
}
