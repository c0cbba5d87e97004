// NetworkTests.swift -- a machine that goes from network to network, as root alone can make one.

import DNSWire
import Foundation
import Testing

@Suite(.blocking, .enabled(if: NetworkNamespace.isPossible, "needs root and network namespaces"))
struct NetworkTests {
  /// A daemon in a network of its own, and the simulator behind the router.
  private func withMachine(
    isConnected: Bool = true, refresh: String = "", cache: String = "", resolvers: [String]? = nil,
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
        : settings.text.replacing("[localdns]\nservers = []", with: "[localdns]\nservers = [\"system\"]")
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

  @Test func `on another network what is needed comes first, and the rest when it is used, once`() throws {
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

  @Test func `entries that belong to a network come back with it`() throws {
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
      // The old entry, which is fetched anew behind the answer.
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

  @Test func `resolvers are those that the network hands out, from one moment to the next`() throws {
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

  @Test func `what a captive portal said about its probe is not believed on another network`() throws {
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
