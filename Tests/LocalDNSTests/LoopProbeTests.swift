// LoopProbeTests.swift -- names that lead back to us, and names that do not.

import DNSWire
import EventLoop
import Testing

@testable import LocalDNS

private let servers = [SocketAddress(text: "192.0.2.1:53")!, SocketAddress(text: "[2001:db8::1]:53")!]

@Suite struct `The loop probe` {
  private var probe = LoopProbe(token: 0x0123_4567_89AB_CDEF)

  private func server(_ name: String) -> SocketAddress? { probe.server(for: DomainName(text: name)!) }

  @Test mutating func `every server is asked for a name of its own, which is recognised in any case`() {
    let probes = probe.begin(servers)
    #expect(probe.zone.text == "0123456789abcdef.example.")
    #expect(probes.map(\.question.name.text) == ["s0.0123456789abcdef.example.", "s1.0123456789abcdef.example."])
    #expect(probes.allSatisfy { $0.question.type == .txt } && probes.map(\.server) == servers)
    #expect(probes.map { probe.server(for: $0.question.name) } == servers)
    #expect(server("S1.0123456789ABCDEF.eXaMpLe.") == servers[1])
  }

  @Test mutating func `other names belong to no server`() {
    _ = probe.begin(servers)
    for name in [
      ".", "example.", "0123456789abcdef.example.", "s2.0123456789abcdef.example.", "s.0123456789abcdef.example.",
      "s-1.0123456789abcdef.example.", "s+1.0123456789abcdef.example.", "x0.0123456789abcdef.example.",
      "s0.1123456789abcdef.example.", "s0.s0.0123456789abcdef.example.", "s0.0123456789abcdef.invalid.",
      "s99999999999999999999999.0123456789abcdef.example.",
    ] { #expect(server(name) == nil, "\(name)") }
  }

  @Test mutating func `a name of an earlier round, or one that was forgotten, means nothing`() {
    let first = probe.begin(servers)
    let second = probe.begin([servers[1]])
    #expect(second[0].question.name.text == "s2.0123456789abcdef.example.")
    #expect(first.allSatisfy { probe.server(for: $0.question.name) == nil })
    #expect(probe.server(for: second[0].question.name) == servers[1])
    probe.forget()
    #expect(probe.server(for: second[0].question.name) == nil)
  }

  @Test func `two programs have different zones, of 16 digits`() {
    let zones = (0..<100).map { _ in LoopProbe().zone }
    #expect(Set(zones).count == 100)
    #expect(zones.allSatisfy { $0.octets.count == 1 + 16 + 1 + 7 + 1 })
    #expect(LoopProbe(token: 7).zone.text == "0000000000000007.example.")
  }

  @Test func `the servers are asked at the same time for text, with RD, and one that is silent does no harm`() throws {
    try onLoop { loop in
      let answering = ScriptedServer(on: loop) { query in
        var response = query
        response.header.qr = true
        response.header.rcode = UInt8(ResponseCode.nxDomain.rawValue)
        return [.reply(try! response.compose())]
      }
      let silent = ScriptedServer(on: loop) { _ in [] }
      var probe = LoopProbe()
      let probes = probe.begin([silent.address, answering.address, silent.address])
      await LoopProbe.send(probes, by: LocalDNSClient(loop: loop), timeout: .milliseconds(300))
      #expect(answering.datagrams.count == 1)
      #expect(answering.datagrams[0].questions.map(\.question) == [probes[1].question])
      #expect(answering.datagrams[0].header.rd)
      // Both before one of them is asked a second time: no probe waits for another's silence.
      let names = silent.datagrams.map { $0.questions[0].question.name }
      #expect(Set(names.prefix(2)) == Set([0, 2].map { probes[$0].question.name }))
    }
  }
}
