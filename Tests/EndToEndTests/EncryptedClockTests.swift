// EncryptedClockTests.swift -- what the encrypted listeners have to do within a time, or after one.

import DNSWire
import Foundation
import TLSTestSupport
import TestSupport
import Testing

@Suite(.blocking) struct EncryptedClockTests {
  @Test func `a handshake that does not end is closed after five seconds, however slowly it goes on`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      // The beginning of a client's first message, and an octet of it now and then.
      let hello: [UInt8] = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3]
      for address in [scene.dot, scene.doh] {
        let (silent, slow) = (
          try ClientConnection(to: address, nil), try ClientConnection(to: address, prologue: hello, nil)
        )
        let start = ContinuousClock.now
        var isOver = false
        while !isOver, .now - start < .seconds(12) {
          isOver = !slow.receiveMore(within: .milliseconds(300)) && slow.end != nil || !slow.socket.send([0])
        }
        let time = ContinuousClock.now - start
        #expect(time > .seconds(4) && time < .seconds(6.5), "\(time)")
        #expect(silent.waitForEnd(within: .seconds(2)) == .closed)
        #expect(silent.received.isEmpty)
      }
      #expect(try scene.overTLS().ask("n1.bench.example").data == ["198.18.0.1"])
    }
  }

  @Test func `a proxy that does not end its header is closed after a second`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "proxy_protocol = [\"127.0.0.2/32\"]")
      let (end, time) = try timed {
        try ClientConnection(to: scene.dot, from: "127.0.0.2", prologue: [0x0D, 0x0A], nil).waitForEnd()
      }
      #expect(end == .closed)
      #expect(time > .milliseconds(900) && time < .seconds(2), "\(time)")
    }
  }

  /// How the answers of a client come that takes none of them.
  enum Greed: String, CaseIterable { case dot, http1, http2 }

  @Test(arguments: Greed.allCases)
  func `a client that takes none of its answers is reset, and costs a bounded amount of memory`(greed: Greed) throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let query = TestQuery("txt-60000.example", "TXT")
      try ask(scene.daemon.address, query, over: .tcp)
      let before = scene.daemon.residentMebibytes
      let connection = try ClientConnection(
        to: greed == .dot ? scene.dot : scene.doh, room: 4_096,
        TLSOffer(serverName: "dns.test", protocols: greed == .dot ? [] : greed == .http1 ? ["http/1.1"] : ["h2"]))
      // Far more than the kernel has room for.
      var client: HTTP2Client?
      switch greed {
      case .dot: connection.send((0..<2_000).flatMap { _ in framed(query.octets) })
      case .http1: connection.send((0..<400).flatMap { _ in HTTPAsk.get(query).octets })
      case .http2:
        let new = HTTP2Client(connection)
        // As large as windows may be.
        connection.send(new.frame(.settings, 0, 0, [0, 4, 0x7F, 0xFF, 0xFF, 0xFF]))
        connection.send(new.frame(.window, 0, 0, HTTP2Client.octets(0x7FFF_0000)))
        for _ in 0..<1_000 { new.send(.get(query)) }
        client = new
      }
      let (isReset, time) = timed {
        let deadline = Deadline(.seconds(25))
        while !deadline.isOver {
          var entry = pollfd(fd: connection.socket.descriptor, events: 0, revents: 0)
          guard poll(&entry, 1, 200) == 0 else { return true }
          // Others are served meanwhile.
          _ = try? scene.overTLS().ask(query)
        }
        return false
      }
      #expect(isReset)
      #expect(time > .seconds(9) && time < .seconds(14), "\(time)")
      #expect(scene.daemon.residentMebibytes - before < 16)
      #expect(try scene.overTLS().ask("n1.bench.example").data == ["198.18.0.1"])
      withExtendedLifetime(client) {}
    }
  }

  @Test func `clients of HTTP 2 that open no window are reset, and cost a bounded amount of memory`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "per_client = 100")
      let query = TestQuery("txt-60000.example", "TXT")
      try ask(scene.daemon.address, query, over: .tcp)
      let before = scene.daemon.residentMebibytes
      let clients = try (0..<20).map { _ in
        let client = HTTP2Client(try scene.overHTTPS(.http2))
        client.connection.send(client.frame(.settings, 0, 0, [0, 4, 0, 0, 0, 0]))
        return client
      }
      let start = ContinuousClock.now
      // All of their answers are 120 MB.
      for client in clients { for _ in 0..<100 { client.send(.get(query)) } }
      let deadline = Deadline(.seconds(25))
      while clients.contains(where: { $0.connection.end == nil }), !deadline.isOver {
        for client in clients where client.connection.end == nil {
          // Other frames are no progress.
          client.connection.send(client.frame(.ping, 0, 0, [UInt8](repeating: 7, count: 8)))
          client.connection.receiveMore(within: .milliseconds(20))
        }
        #expect(scene.daemon.residentMebibytes - before < 40)
      }
      let time = ContinuousClock.now - start
      #expect(time > .seconds(9) && time < .seconds(15), "\(time)")
      #expect(clients.allSatisfy { $0.connection.end == .closed })
    }
  }

  @Test func `a renewed certificate is in use within five seconds`() throws {
    try withLab { lab in
      let folder = TestSupport.TemporaryFolder()
      let maker = try TestCertificates(in: folder)
      for name in ["one", "two"] {
        try maker.make(name, for: "DNS:dns.test")
        #expect(chmod(folder.path(of: "\(name).key"), 0o600) == 0)
      }
      let keys = "certificate_file = \"\(folder.path(of: "one.pem"))\"\nkey_file = \"\(folder.path(of: "one.key"))\""
      let scene = try EncryptedScene(in: lab, keys)
      for file in ["key", "pem"] { folder.move("two.\(file)", to: "one.\(file)") }
      let (_, time) = try timed {
        try eventually("the new certificate", within: .seconds(10)) {
          try scene.overTLS().tls?.subject == "/CN=two" ? true : nil
        }
      }
      #expect(time < .seconds(5), "\(time)")
    }
  }

  @Test func `the end does not wait for clients that do not end`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      try scene.simulator.fault("kind=stall")
      let tls = try scene.overTLS()
      let client = HTTP2Client(try scene.overHTTPS(.http2))
      let silent = try ClientConnection(to: scene.doh, nil)
      tls.send(TestQuery("n1.bench.example"))
      client.send(.get(TestQuery("n2.bench.example")))
      client.send(HTTPAsk.post(TestQuery("n3.bench.example")).with(\.body, nil), isWhole: false)
      try scene.simulator.waitForTransfers(2)
      let (ending, time) = try timed {
        scene.daemon.process.signal(SIGTERM)
        return try scene.daemon.process.waitForEnd()
      }
      #expect(ending == .exited(0))
      #expect(time < .seconds(3), "\(time)")
      #expect(tls.waitForEnd() != nil && silent.waitForEnd() != nil && client.waitForEnd() != nil)
    }
  }
}
