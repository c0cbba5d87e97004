// HostileInputTests.swift -- what strangers send to a running daemon, and what everybody else notices of it.

import DNSWire
import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct HostileInputTests {
  /// The connections to a provider at most; more of them open when the machine is busy, and stay for 15 s.
  private static let mostConnections = 8
  private static let fewConnections = "connections = \(mostConnections)"

  @Test func `ten thousand damaged datagrams change nothing`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.json(simulator.http, Self.fewConnections)).text)
      try ask(daemon.address, "example.com")
      let memory = daemon.residentMebibytes
      let descriptors = daemon.descriptorCount
      var mutator = MessageMutator(seed: testSeed)
      let socket = try Socket(SOCK_DGRAM)
      try socket.connect(to: daemon.address)
      for round in 0..<100 {
        for index in 0..<100 { socket.send(index % 10 == 0 ? mutator.damagedQuery() : hostileDatagram(&mutator)) }
        // Once this one is answered, all before it have been read.
        let query = TestQuery("n\(round).bench.example")
        try checkAnswered(query, "198.18.0.\(round)", on: socket)
      }
      #expect(daemon.residentMebibytes < memory + 64)
      // Besides the connections to the provider, which stay for later.
      try eventually("as many descriptors as before") {
        daemon.descriptorCount <= descriptors + Self.mostConnections ? true : nil
      }
    }
  }

  @Test func `a thousand hostile streams change nothing`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http, Self.fewConnections))
      settings.listen = "tcp_per_client = 64"
      let daemon = try lab.daemon(settings.text)
      try ask(daemon.address, "example.com", over: .tcp)
      let memory = daemon.residentMebibytes
      let descriptors = daemon.descriptorCount
      var mutator = MessageMutator(seed: testSeed)
      var open: [Socket] = []
      for index in 0..<1_000 {
        // Clients of several addresses; some go at once, some stay for a while, some reset.
        let socket = try Socket.stream(to: daemon.address, from: "127.0.0.\(10 + index % 8)")
        socket.send(hostileStream(index, &mutator))
        if index % 5 == 0 { socket.closeByReset() }
        if index % 3 == 0 { open.append(socket) }
        if open.count > 40 { open.removeFirst(20) }
        if index % 100 == 0 { try checkServesTCP(daemon.address) }
      }
      open = []
      try checkServesTCP(daemon.address)
      #expect(daemon.residentMebibytes < memory + 64)
      try eventually("as many descriptors as before") {
        daemon.descriptorCount <= descriptors + Self.mostConnections ? true : nil
      }
    }
  }

  @Test func `five thousand queries amid garbage are all answered`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.doh(simulator.http)).text)
      var mutator = MessageMutator(seed: testSeed &+ 1)
      let valid = try Socket(SOCK_DGRAM)
      try valid.connect(to: daemon.address)
      let garbage = try Socket(SOCK_DGRAM)
      try garbage.connect(to: daemon.address)
      var answered = 0
      // A window that fits into the socket's buffer: what the kernel drops is not ours.
      for window in 0..<100 {
        var waiting: [UInt16: TestQuery] = [:]
        for index in 0..<50 {
          var query = TestQuery("n\((window * 50 + index) % 500).bench.example", index % 2 == 0 ? "A" : "AAAA")
          query.id = UInt16(window * 50 + index)
          waiting[query.id] = query
          garbage.send(hostileDatagram(&mutator))
          valid.send(query.octets)
        }
        while !waiting.isEmpty {
          let octets = try #require(valid.receive(within: .seconds(5)), "\(waiting.count) of window \(window)")
          let id = UInt16(octets[0]) << 8 | UInt16(octets[1])
          let query = try #require(waiting[id])
          waiting[id] = nil
          #expect(try Reply(octets, to: query).data.count == 1)
          answered += 1
        }
        while garbage.receive(within: .zero) != nil {}
      }
      #expect(answered == 5_000)
      let transfers = try simulator.count.questions.filter { $0.key.contains(".bench.example. ") }
      #expect(transfers.count == 500)
      #expect(transfers.values.allSatisfy { $0 == 1 })
    }
  }

  /// Whether a query is answered although other responses may come before.
  private func checkAnswered(_ query: TestQuery, _ address: String, on socket: Socket) throws {
    socket.send(query.octets)
    let deadline = Deadline(.seconds(5))
    while !deadline.isOver {
      guard let octets = socket.receive(within: deadline.remaining) else { break }
      if let reply = try? Reply(octets, to: query) {
        #expect(reply.data == [address])
        return
      }
    }
    Issue.record("no answer to \(query)")
  }

  /// Whether a polite client is served; turned away at first where those before have not yet been noticed to be gone.
  private func checkServesTCP(_ server: Address) throws {
    try eventually("an answer over TCP") { () -> Bool? in
      guard let reply = try? ask(server, "example.com", over: .tcp) else { return nil }
      #expect(reply.data == ["192.0.2.1"])
      return true
    }
  }

  private func hostileDatagram(_ mutator: inout MessageMutator) -> [UInt8] {
    switch Int.random(in: 0..<8, using: &mutator.random) {
    case 0: mutator.random.octets(Int.random(in: 0...600, using: &mutator.random))
    case 1: mutator.damagedResponse()
    default: withoutRecursion(mutator.damagedQuery())
    }
  }

  /// A damaged query may still be a sound one, for a random name: without RD the provider is not asked for it.
  private func withoutRecursion(_ octets: [UInt8]) -> [UInt8] {
    guard octets.count > 2 else { return octets }
    var octets = octets
    octets[2] &= 0xFE
    return octets
  }

  private func hostileStream(_ index: Int, _ mutator: inout MessageMutator) -> [UInt8] {
    let query = TestQuery("example.com").octets
    switch index % 10 {
    case 0: return []
    case 1: return [0]
    case 2: return [0, 0]
    case 3: return [0xFF, 0xFF] + mutator.random.octets(2_000)
    case 4: return Array(framed(query).dropLast(3))
    case 5: return framed(query) + [0, 0] + framed(query)
    case 6: return framed(query + mutator.random.octets(40))
    case 7: return mutator.random.octets(Int.random(in: 1...3_000, using: &mutator.random))
    case 8: return Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
    default: return (0..<20).flatMap { _ in framed(withoutRecursion(mutator.damagedQuery())) }
    }
  }
}

extension Socket {
  /// Lets the kernel reset the connection when it is closed.
  fileprivate func closeByReset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
  }
}
