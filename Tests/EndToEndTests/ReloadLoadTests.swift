// ReloadLoadTests.swift -- reloads while clients ask: no query is lost, no connection ends, nothing grows.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ReloadLoadTests {
  /// Two configurations that differ in everything that concerns a query.
  private func configurations(_ simulator: Simulator) -> [String] {
    let one = "[[rule]]\nnames = [\"n7.bench.example\"]\nuse = \"pinned\"\naddresses = [\"192.0.2.7\"]\n"
    let other =
      "[[rule]]\nnames = [\"n8.bench.example\", \"n9.bench.example\"]\nuse = \"json\"\nmax_ttl = \"10s\"\n"
    return [("3s", one), ("2s", other)].map { timeout, rule in
      var settings = Settings(Settings.json(simulator.http, "timeout = \"\(timeout)\""))
      // All of it is one domain.
      settings.listen = "workers = 2"
      settings.more = rule
      return settings.text.replacingOccurrences(of: "level = \"debug\"", with: "level = \"info\"")
    }
  }

  @Test func `over twenty reloads no query is lost or fails, and TCP connections stay open`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.fault("kind=delay&ms=20")
      let texts = configurations(simulator)
      let daemon = try lab.daemon(texts[0])
      let clients = [
        LoadClient(daemon.address, .udp, names: 0..<50), LoadClient(daemon.address, .udp, names: 50..<1_000_000),
        LoadClient(daemon.address, .tcp, names: 0..<1_000_000),
      ]
      for client in clients { client.start() }
      defer { for client in clients { client.stop() } }
      for number in 1...20 {
        let before = clients.map(\.answers)
        try daemon.reload(texts[number % 2])
        try eventually("answers to all") { zip(clients, before).allSatisfy { $0.answers > $1 } ? true : nil }
      }
      for client in clients { client.stop() }
      for client in clients {
        #expect(client.problem == nil)
        #expect(client.answers >= 20)
      }
    }
  }

  @Test func `a hundred reloads leave memory and descriptors as they were`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let texts = configurations(simulator)
      let daemon = try lab.daemon(texts[0])
      func work(_ number: Int) throws {
        for name in ["n\(number).bench.example", "n8.bench.example", "n9.bench.example"] {
          #expect(try ask(daemon.address, name).code == .noError)
        }
        try daemon.reload(texts[number % 2])
      }
      for number in 1...20 { try work(number) }
      let (memory, descriptors) = (daemon.residentMebibytes, daemon.descriptorCount)
      for number in 21...120 { try work(number) }
      // Connections of a removed provider are closed when nothing is in flight.
      try eventually("as few descriptors") { daemon.descriptorCount <= descriptors + 2 ? true : nil }
      #expect(daemon.residentMebibytes <= memory + 3, "\(memory) MiB before")
    }
  }
}

/// A client that asks one question after the other on a thread of its own.
private final class LoadClient: @unchecked Sendable {
  private let server: Address
  private let transport: Transport
  private let names: Range<Int>
  private let condition = NSCondition()
  private var isStopping = false
  private var isRunning = false
  private var count = 0
  private var failure: String?

  init(_ server: Address, _ transport: Transport, names: Range<Int>) {
    (self.server, self.transport, self.names) = (server, transport, names)
  }

  /// Good answers so far.
  var answers: Int { condition.withLock { count } }
  /// What went wrong first.
  var problem: String? { condition.withLock { failure } }

  func start() {
    isRunning = true
    Thread { [self] in
      do { try run() } catch { condition.withLock { failure = failure ?? "\(transport): \(error)" } }
      condition.withLock {
        isRunning = false
        condition.broadcast()
      }
    }.start()
  }

  func stop() {
    condition.lock()
    defer { condition.unlock() }
    isStopping = true
    while isRunning, condition.wait(until: Date(timeIntervalSinceNow: 12)) {}
  }

  /// Over one socket from the beginning to the end.
  private func run() throws {
    let socket: Socket
    switch transport {
    case .tcp: socket = try Socket.stream(to: server)
    case .udp:
      socket = try Socket(SOCK_DGRAM)
      try socket.connect(to: server)
    }
    var next = names.lowerBound
    while !condition.withLock({ isStopping }) {
      let query = TestQuery("n\(next).bench.example")
      next = next + 1 == names.upperBound ? names.lowerBound : next + 1
      socket.send(transport == .tcp ? framed(query.octets) : query.octets)
      let octets = transport == .tcp ? receiveFramed(socket) : socket.receive()
      guard let octets else { throw Failure("no response to \(query)") }
      let reply = try Reply(octets, to: query)
      guard reply.code == .noError, reply.data.count == 1 else {
        throw Failure("\(reply.code) \(reply.errors): \(query)")
      }
      condition.withLock { count += 1 }
    }
  }
}
