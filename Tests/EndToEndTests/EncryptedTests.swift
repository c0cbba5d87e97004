// EncryptedTests.swift -- DNS over TLS with the real daemon: handshakes, queries and answers, its end, and its absence.

import DNSWire
import Foundation
import TLSTestSupport
import Testing

@Suite(.blocking) struct EncryptedTests {
  @Test(arguments: [0x0303, 0x0304])
  func `pipelined queries over TLS are answered, from the provider and from the cache`(version: Int) throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let connection = try scene.overTLS(TLSOffer(versions: version...version))
      #expect(connection.tls?.version == version)
      let queries = (0..<20).map { TestQuery("n\($0).bench.example") }
      for _ in 0..<2 {
        connection.send(queries.flatMap { framed($0.octets) })
        for (index, reply) in try connection.replies(to: queries).enumerated() {
          #expect(reply.code == .noError && reply.data == ["198.18.0.\(index)"])
        }
        #expect(try scene.simulator.count.transfers == 20)
      }
      // The same cache as that of port 53.
      #expect(try ask(scene.daemon.address, "n3.bench.example").data == ["198.18.0.3"])
      #expect(try scene.simulator.count.transfers == 20)
      try scene.daemon.waitForLog("transport=dot name=n19.bench.example. type=A outcome=hit")
    }
  }

  @Test func `an IPv6 address or interface that the machine lacks costs a line, and the others are served`() throws {
    try withLab { lab in
      let certificate = try lab.folder.write(Certificates.server, to: "server.pem")
      let key = try lab.folder.write(Certificates.serverKey, to: "server.key")
      var settings = Settings(Settings.doh(try lab.simulator().http))
      settings.addresses += ["[fe80::1%none]:0", "[2001:db8::1]:0"]
      settings.more = """
        [encrypted]
        dot = ["[fe80::1%none]:0", "[2001:db8::1]:0", "127.0.0.1:0"]
        certificate_file = "\(certificate)"
        key_file = "\(key)"
        """
      let log = try lab.daemon(settings.text).log
      for line in [
        "not listening on [fe80::1%none]:0: this machine has no such interface\n",
        "not listening on tcp [2001:db8::1]:0: ",
      ] { #expect(log.components(separatedBy: "WARNING \(line)").count == 3, "\(log)") }
      #expect(log.contains(/listening on 127.0.0.1:\d+, DoT\n/))
    }
  }

  @Test func `a query that arrives octet by octet, or in the middle of another record, is answered`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let connection = try scene.overTLS()
      let queries = [TestQuery("n1.bench.example"), TestQuery("n2.bench.example")]
      let octets = queries.flatMap { framed($0.octets) }
      for octet in octets { connection.send([octet]) }
      #expect(try connection.replies(to: queries).map(\.data) == [["198.18.0.1"], ["198.18.0.2"]])
      // A length that no query has ends the connection, after the answers before it.
      connection.send(framed(queries[0].octets) + [0, 11] + [UInt8](repeating: 0, count: 11))
      #expect(try connection.replies(to: [queries[0]])[0].data == ["198.18.0.1"])
      #expect(connection.waitForEnd() == .notified)
    }
  }

  @Test func `a client of TLS 1 2 gets no second handshake on its connection`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let connection = try scene.overTLS(TLSOffer(versions: 0x0303...0x0303))
      try connection.ask("n1.bench.example")
      #expect(connection.tls?.renegotiate() == false)
      #expect(try scene.overTLS().ask("n1.bench.example").data == ["198.18.0.1"])
    }
  }

  @Test(arguments: [(0x0303, true), (0x0303, false), (0x0304, true), (0x0304, false)])
  func `answers in flight come after the end of the client's direction`(version: Int, notifies: Bool) throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      try scene.simulator.fault("kind=delay&ms=200")
      let connection = try scene.overTLS(TLSOffer(versions: version...version))
      let queries = [TestQuery("n1.bench.example"), TestQuery("n2.bench.example")]
      connection.send(queries.flatMap { framed($0.octets) })
      connection.endInput(notifies: notifies)
      #expect(try connection.replies(to: queries).map(\.data) == [["198.18.0.1"], ["198.18.0.2"]])
      #expect(connection.waitForEnd() == .notified)
      #expect(connection.received.isEmpty)
    }
  }

  @Test func `each listener chooses its own protocols, and serves clients that offer none`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      for version in [0x0303, 0x0304] {
        func chosen(_ address: Address, _ protocols: String...) throws -> String {
          let offer = TLSOffer(versions: version...version, protocols: protocols)
          return try ClientConnection(to: address, offer).tls!.chosenProtocol
        }
        #expect(try chosen(scene.dot, "dot") == "dot")
        #expect(try chosen(scene.dot, "h2", "dot") == "dot")
        #expect(try chosen(scene.doh, "http/1.1", "h2") == "h2")
        #expect(try chosen(scene.doh, "http/1.1") == "http/1.1")
        #expect(try chosen(scene.dot) == "")
        #expect(try chosen(scene.doh) == "")
        let alert = HandshakeFailure.alert(120)
        #expect(throws: alert) { try chosen(scene.dot, "h2") }
        #expect(throws: alert) { try chosen(scene.doh, "dot") }
        let offer = TLSOffer(versions: version...version)
        #expect(try ClientConnection(to: scene.dot, offer).ask("n1.bench.example").data == ["198.18.0.1"])
        let query = TestQuery("n1.bench.example")
        #expect(
          try ClientConnection(to: scene.doh, offer).fetch(.get(query)).message(to: query).data == ["198.18.0.1"])
      }
    }
  }

  @Test(arguments: [0x0301, 0x0302])
  func `versions before TLS 1.2 are refused`(version: Int) throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      for address in [scene.dot, scene.doh] {
        #expect(throws: HandshakeFailure.alert(70)) {
          try ClientConnection(to: address, TLSOffer(versions: version...version))
        }
      }
    }
  }

  @Test(arguments: [0x0303, 0x0304])
  func `a session is resumed with a ticket, and permits no early data`(version: Int) throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      var offer = TLSOffer(versions: version...version)
      for isResumed in [false, true, true] {
        let connection = try scene.overTLS(offer)
        #expect(connection.tls?.isResumed == isResumed)
        #expect(try connection.ask("n1.bench.example").data == ["198.18.0.1"])
        offer.session = try #require(connection.tls?.session)
        #expect(offer.session?.earlyData == 0)
        connection.endInput(notifies: true)
      }
    }
  }

  @Test func `a padded query gets a padded response over TLS, and only there`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let options = [UInt8](arrayLiteral: 0, 12, 0, 8) + [UInt8](repeating: 0, count: 8)
      // From the provider, and then from the cache.
      for _ in 0..<2 {
        for (name, type, length) in [
          ("example.com", "A", 468), ("example.com", "TXT", 468), ("many-60.example", "A", 1404),
          ("nodata.example", "A", 468),
        ] {
          var query = TestQuery(name, type)
          query.options = options
          let reply = try scene.overTLS().ask(query)
          #expect(reply.octets.count == length, "\(name) \(type)")
          #expect(reply.message.edns?.option(.padding)?.allSatisfy { $0 == 0 } == true)
          for version in HTTPVersion.allCases {
            let reply = try scene.fetch(.get(query), over: version).message(to: query)
            #expect(reply.octets.count == length)
          }
          let plain = try scene.overHTTP().fetch(.get(query).with(\.host, "127.0.0.1")).message(to: query)
          #expect(plain.message.edns?.option(.padding) == nil)
          #expect(try ask(scene.daemon.address, query, over: .tcp).message.edns?.option(.padding) == nil)
        }
      }
      let reply = try scene.overTLS().ask("example.com")
      #expect(reply.message.edns?.option(.padding) == nil)
    }
  }

  @Test func `the idle time is told to clients over TLS that ask, and to no others`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "idle = \"42s\"")
      var query = TestQuery("n1.bench.example")
      query.options = [0, 11, 0, 0]
      for _ in 0..<2 {
        // In tenths of a second (RFC 7828 section 3.1).
        #expect(try scene.overTLS().ask(query).message.edns?.option(.tcpKeepalive) == [0x01, 0xA4])
        #expect(try scene.overTLS().ask("n1.bench.example").message.edns?.option(.tcpKeepalive) == nil)
        // HTTP has its own (RFC 7828 section 3.2.1 is about TCP).
        #expect(
          try scene.fetch(.get(query), over: .http2).message(to: query).message.edns?.option(.tcpKeepalive) == nil)
      }
    }
  }

  @Test func `answers in flight are sent at the end, and connections end by GOAWAY and close_notify`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "name = \"dns.test\"\nproxy_protocol = [\"127.0.0.2/32\"]")
      try scene.simulator.fault("kind=delay&ms=300")
      // A header that does not come, and a handshake that does not end.
      let silent = [
        try ClientConnection(to: scene.dot, from: "127.0.0.2", nil), try ClientConnection(to: scene.dot, nil),
      ]
      let (tls, idle) = (try scene.overTLS(), try scene.overTLS())
      let (first, second) = (try scene.overHTTPS(.http1), HTTP2Client(try scene.overHTTPS(.http2)))
      let idleOverHTTP = HTTP2Client(try scene.overHTTPS(.http2))
      let queries = (1...3).map { TestQuery("n\($0).bench.example") }
      tls.send(queries[0])
      first.send(HTTPAsk.get(queries[1]).octets)
      let stream = second.send(.post(queries[2]))
      try scene.simulator.waitForTransfers(3)
      scene.daemon.process.signal(SIGTERM)
      #expect(try tls.replies(to: [queries[0]])[0].data == ["198.18.0.1"])
      #expect(try first.response().message(to: queries[1]).data == ["198.18.0.2"])
      #expect(try second.response(stream).message(to: queries[2]).data == ["198.18.0.3"])
      for connection in [tls, idle, first] { #expect(connection.waitForEnd() == .notified) }
      for client in [second, idleOverHTTP] {
        #expect(client.waitForEnd() == .notified)
        #expect(client.goAway?.code == 0)
      }
      #expect(second.goAway?.lastStream == stream)
      for connection in silent { #expect(connection.waitForEnd() == .closed) }
      #expect(try scene.daemon.process.waitForEnd(within: .seconds(5)) == .exited(0))
      for word in [" ERROR ", "epoll"] { #expect(!scene.daemon.log.lowercased().contains(word.lowercased())) }
    }
  }

  @Test func `without encrypted listeners there is no thread for them`() throws {
    try withLab { lab in
      func threads(of daemon: Daemon) throws -> [String] {
        let folder = "/proc/\(daemon.process.pid)/task"
        return try FileManager.default.contentsOfDirectory(atPath: folder).map {
          try String(contentsOfFile: "\(folder)/\($0)/comm", encoding: .utf8).trimmingCharacters(in: .newlines)
        }
      }
      let scene = try EncryptedScene(in: lab)
      // A thread names itself.
      try scene.overTLS().ask("n1.bench.example")
      #expect(try threads(of: scene.daemon).filter { $0 == "encrypted" }.count == 1)
      let daemon = try lab.daemon(Settings(Settings.json(scene.simulator.http)).text)
      try ask(daemon.address, "n1.bench.example")
      #expect(try !threads(of: daemon).contains("encrypted"))
    }
  }

  @Test(.looksInside) func `without encrypted listeners there is no socket for them`() throws {
    try withLab { lab in
      /// The sockets over TCP that listen.
      func listeners(of daemon: Daemon) throws -> Int {
        let own = Set(
          daemon.descriptors.compactMap { number in
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(daemon.process.pid)/fd/\(number)")
          })
        return try daemon.kernelFile("net/tcp").split(separator: "\n").filter { line in
          let fields = line.split(separator: " ")
          return fields.count > 9 && fields[3] == "0A" && own.contains("socket:[\(fields[9])]")
        }.count
      }
      let scene = try EncryptedScene(in: lab)
      #expect(try listeners(of: scene.daemon) == 4)
      #expect(try listeners(of: lab.daemon(Settings(Settings.json(scene.simulator.http)).text)) == 1)
    }
  }
}
