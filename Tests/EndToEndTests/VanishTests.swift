// VanishTests.swift -- a provider that is gone from one moment to the next: no FIN, no RST, no ICMP.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct VanishTests {
  @Test(.enabled(if: NetworkNamespace.isPossible, "needs root and network namespaces"))
  func `a provider that vanishes is given up within 3 s, is made good meanwhile, and is found again`() throws {
    try withLab { lab in
      let machine = try NetworkNamespace(in: lab)
      let elsewhere = try lab.simulator(in: machine)
      let network = try PlainServer { query, _ in
        let question = query.questions[0].question
        let octets: [UInt8] = question.type == .a ? [10, 0, 0, 1] : IPAddress(text: "fd00::1")!.octets
        return query.reply(answers: [ResourceRecord(owner: question.name, type: question.type, ttl: 300, rdata: octets)]
        )
      }
      var settings = Settings(Settings.secure("doh", elsewhere.address, elsewhere.authority))
      settings.localServers = [network.address]
      let daemon = try lab.daemon(settings.text)
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      let before = try daemon.connections(to: elsewhere.address)
      #expect(before.count == 1)

      try machine.cut()
      let cutAt = ContinuousClock.now
      var number = 1
      var quick: ContinuousClock.Instant?
      while quick == nil, ContinuousClock.now - cutAt < .seconds(10) {
        number += 1
        // As a stub resolver asks for both families. The simulator's answers would begin with 198.18.
        let queries = ["A", "AAAA"].map { TestQuery("n\(number).bench.example", $0) }
        let askedAt = ContinuousClock.now
        let answers = try askAll(daemon.address, queries)
        #expect(answers.map(\.reply.data) == [["10.0.0.1"], ["fd00::1"]])
        // A provider's attempt has two seconds.
        #expect(answers.allSatisfy { $0.duration < .milliseconds(2_600) })
        if answers.allSatisfy({ $0.duration < .milliseconds(500) }) { quick = askedAt }
      }
      // No query waits for the dead provider any more, and the daemon closes the connection.
      #expect(try #require(quick) - cutAt < .seconds(3))
      try daemon.waitForLog("unreachable: ")
      try eventually("the connection is given up", within: .seconds(4) - (.now - cutAt)) {
        try daemon.connections(to: elsewhere.address).isDisjoint(with: before) ? true : nil
      }

      try machine.restore()
      try eventually("the provider answers again", within: .seconds(10)) {
        number += 1
        return try ask(daemon.address, "n\(number).bench.example").data.first?.hasPrefix("198.18.") == true ? true : nil
      }
      let after = try daemon.connections(to: elsewhere.address)
      #expect(!after.isEmpty && after.isDisjoint(with: before))
    }
  }
}

extension Lab {
  /// Starts a simulator in a namespace; gives where it serves HTTPS, and the file with the CA's certificate.
  fileprivate func simulator(in machine: NetworkNamespace) throws -> (address: Address, authority: String) {
    let authority = "\(folder.path)/elsewhere.pem"
    let process = try start(
      machine.prefix + [Programs.simulator, "--listen-tls", "0.0.0.0:0", "--ca-out", authority])
    let port = try process.wait(for: "an address", in: .output) { text in
      text.firstMatch(of: /listening https \S+:(\d+)/).flatMap { UInt16($0.1) }
    }
    let address = Address(machine.host, port)
    // The first packets over a new link may be lost.
    _ = try Socket.stream(to: address)
    return (address, authority)
  }
}

extension Daemon {
  /// Its local ports of established connections to an IPv4 address, as /proc/net/tcp has them: hexadecimal, the address's
  /// octets from the last to the first.
  fileprivate func connections(to address: Address) throws -> Set<String> {
    let host = address.host.split(separator: ".").reversed().map { hex(UInt16($0)!, digits: 2) }.joined()
    let remote = "\(host):\(hex(address.port, digits: 4))"
    let isEstablished = "01"
    let lines = try kernelFile("net/tcp").split(separator: "\n").map { $0.split(separator: " ") }
    let ports = lines.filter { $0.count > 3 && $0[2] == remote && $0[3] == isEstablished }.map {
      String($0[1].suffix(4))
    }
    return Set(ports)
  }

  private func hex(_ number: UInt16, digits: Int) -> String {
    let text = String(number, radix: 16, uppercase: true)
    return String(repeating: "0", count: digits - text.count) + text
  }
}
