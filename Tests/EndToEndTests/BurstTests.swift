// BurstTests.swift -- many new names at once, and a provider that takes 300 ms for each.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct BurstTests {
  enum Way: String, CaseIterable { case http, https, http2 }

  @Test(arguments: [(Way.http, 200), (.https, 200), (.http2, 200), (.http2, 1000)])
  func `names of 20 domains at once are all answered by the provider within 2 s`(over: Way, count: Int) throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let provider =
        switch over {
        case .http: Settings.json(simulator.http)
        case .https: Settings.secure("json", simulator.https!.address, simulator.https!.authority)
        case .http2: try HTTP2Proxy(in: lab, before: simulator.http).provider()
        }
      let daemon = try lab.daemon(Settings(provider).text)
      try ask(daemon.address, "example.com")
      try simulator.fault("kind=delay&ms=300")
      // The simulator knows no such names.
      let codes = try burst(daemon.address, (0..<count).map { "n\($0).d\($0 % 20).example" })
      #expect(codes.count { $0.code == .nxDomain } == count)
      let last = try #require(codes.map(\.duration).max())
      #expect(last >= .milliseconds(300))
      #expect(last < .seconds(2))
      #expect(try simulator.count.transfers == count + 1)
    }
  }

  /// Asks for names at once, a hundred by each socket.
  private func burst(_ server: Address, _ names: [String]) throws -> [(code: ResponseCode, duration: Duration)] {
    let start = ContinuousClock.now
    let groups = stride(from: 0, to: names.count, by: 100).map { Array(names[$0..<min($0 + 100, names.count)]) }
    let sockets = try groups.map { group in
      let socket = try Socket(SOCK_DGRAM, family: server.family)
      try socket.connect(to: server)
      for (number, name) in group.enumerated() {
        var query = TestQuery(name)
        query.id = UInt16(number)
        socket.send(query.octets)
      }
      return socket
    }
    var answers: [(ResponseCode, Duration)] = []
    for (socket, group) in zip(sockets, groups) {
      for _ in group {
        guard let octets = socket.receive() else {
          throw Failure("\(names.count - answers.count) names have no answer")
        }
        answers.append((try Message.parse(octets).responseCode, .now - start))
      }
    }
    return answers
  }
}
