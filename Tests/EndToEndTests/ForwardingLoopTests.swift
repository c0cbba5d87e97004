// ForwardingLoopTests.swift -- a LocalDNS server that forwards to us is found, and asked no more.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ForwardingLoopTests {
  /// A port that is free at an address which no other program uses.
  private func freePlace() throws -> Address { try Socket.pair().udp.address.at("127.0.45.3") }

  /// A resolver whose upstream is the daemon, like a router that uses this machine as its nameserver.
  private func forwarder(to daemon: Address) throws -> PlainServer {
    try PlainServer { query, _ in
      guard let octets = try? query.compose(), let socket = try? Socket(SOCK_DGRAM) else { return nil }
      guard (try? socket.connect(to: daemon)) != nil else { return nil }
      socket.send(octets)
      return socket.receive(within: .seconds(1)).flatMap { try? Message.parse($0) }
    }
  }

  @Test func `a resolver that leads back is detected, logged once, and no longer asked`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let place = try freePlace()
      let circular = try forwarder(to: place)
      var settings = Settings(Settings.json(simulator.http))
      settings.addresses = [place.description]
      settings.localServers = [circular.address]
      let daemon = try lab.daemon(settings.text)
      let line = "LocalDNS server \(circular.address) forwards our own queries back to us (loop)"
      try daemon.waitForLog(line)
      // Names of the network, and all others while the provider is away, would go there.
      #expect(try ask(daemon.address, "printer").code != .noError)
      try simulator.fault("kind=status&code=500")
      let queries = (0..<50).map { TestQuery("n\($0).bench.example") }
      for (reply, duration) in try askAll(daemon.address, queries) {
        #expect(reply.code == .servFail)
        #expect(duration < .seconds(5))
      }
      try simulator.clearFaults()
      try eventually("recovery", within: .seconds(20)) {
        try ask(daemon.address, "n100.bench.example").data == ["198.18.0.100"] ? true : nil
      }
      #expect(circular.queries.isEmpty, "\(circular.queries.map { $0.message.questions })")
      #expect(daemon.log.components(separatedBy: line).count == 2)
    }
  }

  @Test func `a resolver beside one with a loop is still asked`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let place = try freePlace()
      let circular = try forwarder(to: place)
      let network = try PlainServer(addresses: ["printer.": "10.0.0.9", "n1.bench.example.": "10.0.0.1"])
      var settings = Settings(Settings.json(simulator.http))
      settings.addresses = [place.description]
      settings.localServers = [circular.address, network.address]
      let daemon = try lab.daemon(settings.text)
      try daemon.waitForLog("LocalDNS server \(circular.address) forwards our own queries back to us (loop)")
      #expect(try ask(daemon.address, "printer").data == ["10.0.0.9"])
      try simulator.fault("kind=status&code=500")
      #expect(try ask(daemon.address, "n1.bench.example").data == ["10.0.0.1"])
      #expect(circular.queries.isEmpty)
    }
  }
}
