// HTTP2FaultTests.swift -- the daemon and a server of HTTP/2 that goes away, is narrow, or says nothing.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct HTTP2FaultTests {
  @Test func `a server that allows one stream at a time answers all queries`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let proxy = try HTTP2Proxy(in: lab, before: simulator.http, "--frontend-http2-max-concurrent-streams=1")
      let daemon = try lab.daemon(Settings(proxy.provider()).text)
      // The limit counts from the server's SETTINGS on.
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      for round in 0..<4 {
        let queries = (0..<25).map { TestQuery("n\(round * 25 + $0).bench.example") }
        for (index, answer) in try askAll(daemon.address, queries).enumerated() {
          #expect(answer.reply.data == ["198.18.0.\(round * 25 + index)"])
        }
      }
      #expect(try proxy.accessLog(lines: 101).allSatisfy { $0.hasPrefix("h2 ") })
    }
  }

  @Test func `a transfer in flight at a GOAWAY is answered, and later ones go to the next provider`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let next = try lab.simulator()
      let proxy = try HTTP2Proxy(in: lab, before: simulator.http, handlesSignals: true)
      let daemon = try lab.daemon(Settings(proxy.provider(), Settings.json(next.http)).text)
      #expect(try ask(daemon.address, "n0.bench.example").data == ["198.18.0.0"])
      try simulator.fault("kind=delay&ms=700")
      let queries = (1..<9).map { TestQuery("n\($0).bench.example") }
      let sockets = try queries.map { query in
        let socket = try Socket(SOCK_DGRAM, family: daemon.address.family)
        try socket.connect(to: daemon.address)
        socket.send(query.octets)
        return socket
      }
      try simulator.waitForTransfers(9)
      // Its graceful end: it takes no more, says so, and ends what it has.
      proxy.process.signal(SIGQUIT)
      for (index, socket) in sockets.enumerated() {
        let reply = try Reply(try #require(socket.receive()), to: queries[index])
        #expect(reply.data == ["198.18.0.\(index + 1)"])
      }
      #expect(try next.count.transfers == 0)
      #expect(try proxy.process.waitForEnd() == .exited(0))
      let (reply, duration) = try timed { try ask(daemon.address, "n9.bench.example") }
      #expect(reply.data == ["198.18.0.9"])
      #expect(duration < .seconds(1))
      #expect(try next.count.transfers == 1)
    }
  }

  @Test func `silence after the handshake costs one timeout, and a probe ends the outage`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let next = try lab.simulator()
      let proxy = try HTTP2Proxy(in: lab, before: simulator.http)
      let daemon = try lab.daemon(
        Settings(proxy.provider("timeout = \"1s\"\nattempts_before_switch = 1"), Settings.json(next.http)).text)
      #expect(try ask(daemon.address, "n0.bench.example").data == ["198.18.0.0"])
      proxy.process.signal(SIGSTOP)
      let (late, lateness) = try timed { try ask(daemon.address, "n1.bench.example") }
      #expect(late.data == ["198.18.0.1"])
      #expect(lateness >= .milliseconds(900) && lateness < .seconds(3))
      for index in 2..<6 {
        let (reply, duration) = try timed { try ask(daemon.address, "n\(index).bench.example") }
        #expect(reply.data == ["198.18.0.\(index)"])
        #expect(duration < .milliseconds(800))
      }
      let before = try next.count.transfers
      #expect(before == 5)
      proxy.process.signal(SIGCONT)
      var index = 6
      try eventually("the first provider's turn", within: .seconds(20)) {
        let before = try next.count.transfers
        #expect(try ask(daemon.address, "n\(index).bench.example").code == .noError)
        index += 1
        return try next.count.transfers == before ? true : nil
      }
    }
  }
}
