// EncryptedClientTests.swift -- who a client of the encrypted listeners is: its token, and its address behind a proxy.

import DNSWire
import Foundation
import TLSTestSupport
import Testing

private let phone = "6f1ed002ab559585"
private let laptop = "Laptop-0123456789"

@Suite(.blocking) struct EncryptedClientTests {
  /// A daemon that answers clients with a token only.
  private func scene(in lab: Lab, _ tokens: String) throws -> EncryptedScene {
    let file = try lab.folder.write(tokens, to: "tokens")
    return try EncryptedScene(in: lab, "name = \"dns.test\"\njson = true\ntokens_file = \"\(file)\"")
  }

  /// A server's name with a token.
  private func offer(_ token: String, _ version: Int = 0x0304, protocols: [String] = []) -> TLSOffer {
    TLSOffer(serverName: "\(token).dns.test", versions: version...version, protocols: protocols)
  }

  @Test func `a token is part of the server's name or of the path, and the log has its label alone`() throws {
    try withLab { lab in
      let scene = try scene(in: lab, "# devices\nphone \(phone)\nlaptop \(laptop)\n")
      for version in [0x0303, 0x0304] {
        for name in [phone, phone.uppercased()] {
          #expect(try scene.overTLS(offer(name, version)).ask("n1.bench.example").data == ["198.18.0.1"])
        }
        #expect(try scene.overTLS(offer(laptop, version)).ask("n2.bench.example").data == ["198.18.0.2"])
        for name in ["dns.test", "0\(phone).dns.test", "\(phone).example.com", phone, "\(phone).x.dns.test", nil] {
          #expect(throws: HandshakeFailure.alert(112), "\(name ?? "none")") {
            try scene.overTLS(TLSOffer(serverName: name, versions: version...version))
          }
        }
      }
      let query = TestQuery("n3.bench.example")
      for version in HTTPVersion.allCases {
        for (path, status) in [
          ("/dns-query/\(phone)", 200), ("/dns-query/\(laptop)", 200), ("/dns-query", 404), ("/dns-query/", 404),
          ("/dns-query/\(phone)0", 404), ("/dns-query/\(phone.uppercased())", 404), ("/dns-query/\(phone)/", 404),
        ] {
          #expect(try scene.fetch(.get(query, at: path), over: version).status == status, "\(path)")
          #expect(try scene.fetch(.post(query, at: path), over: version).status == status, "\(path)")
        }
        for (path, status) in [("/resolve/\(phone)", 200), ("/resolve", 404), ("/resolve/\(phone)x", 404)] {
          let ask = HTTPAsk(target: "\(path)?name=n4.bench.example")
          #expect(try scene.fetch(ask, over: version).status == status, "\(path)")
          // A stranger learns nothing of what there is.
          let put = try scene.fetch(ask.with(\.method, "PUT"), over: version)
          #expect(put.status == (status == 200 ? 405 : 404))
        }
      }
      #expect(
        try scene.overHTTP().fetch(.get(query, at: "/dns-query/\(phone)").with(\.host, "127.0.0.1")).status == 200)
      for (label, transport, name) in [
        ("phone", "dot", "n1"), ("laptop", "dot", "n2"), ("phone", "doh", "n3"), ("laptop", "doh", "n3"),
        ("phone", "doh", "n4"),
      ] {
        try scene.daemon.waitForLog(
          "client=127.0.0.1 token=\(label) transport=\(transport) name=\(name).bench.example.")
      }
      // Port 53 knows none.
      try ask(scene.daemon.address, "n5.bench.example")
      try scene.daemon.waitForLog("client=127.0.0.1 transport=udp name=n5.bench.example.")
      scene.daemon.end()
      for token in [phone, laptop] { #expect(!scene.daemon.log.lowercased().contains(token.lowercased())) }
    }
  }

  @Test func `a token that is removed from the file counts no more, and its connections are closed`() throws {
    try withLab { lab in
      let scene = try scene(in: lab, "phone \(phone)\nlaptop \(laptop)\n")
      let query = TestQuery("n1.bench.example")
      func overHTTPS(_ token: String, _ version: HTTPVersion) throws -> (ClientConnection, HTTP2Client?) {
        let connection = try scene.overHTTPS(version)
        let client = version == .http2 ? HTTP2Client(connection) : nil
        let ask = HTTPAsk.get(query, at: "/dns-query/\(token)")
        #expect(try client?.fetch(ask).status ?? connection.fetch(ask).status == 200)
        return (connection, client)
      }
      let (removed, kept) = (try scene.overTLS(offer(phone)), try scene.overTLS(offer(laptop)))
      for connection in [removed, kept] { try connection.ask(query) }
      let (removed1, removed2) = (try overHTTPS(phone, .http1), try overHTTPS(phone, .http2))
      let kept2 = try overHTTPS(laptop, .http2)
      _ = try lab.folder.write("laptop \(laptop)\ntablet \(phone)1\n", to: "tokens")
      #expect(removed.waitForEnd() == .notified)
      #expect(removed1.0.waitForEnd() == .notified)
      #expect(removed2.1?.waitForEnd() == .notified)
      #expect(throws: HandshakeFailure.alert(112)) { try scene.overTLS(offer(phone)) }
      #expect(try kept.ask(query).data == ["198.18.0.1"])
      #expect(try kept2.1?.fetch(.get(query, at: "/dns-query/\(laptop)")).status == 200)
      #expect(try kept2.1?.fetch(.get(query, at: "/dns-query/\(phone)")).status == 404)
      #expect(try scene.overTLS(offer("\(phone)1")).ask(query).data == ["198.18.0.1"])
      try scene.daemon.waitForLog("token=tablet")
      #expect(!scene.daemon.log.contains(phone))
    }
  }

  @Test func `a session of a token that was removed cannot be resumed`() throws {
    try withLab { lab in
      let scene = try scene(in: lab, "phone \(phone)\nlaptop \(laptop)\n")
      for version in [0x0303, 0x0304] {
        _ = try lab.folder.write("phone \(phone)\nlaptop \(laptop)\n", to: "tokens")
        try eventually("the token of the phone", within: .seconds(20)) { try? scene.overTLS(offer(phone, version)) }
        let connection = try scene.overTLS(offer(phone, version))
        try connection.ask("n1.bench.example")
        var again = offer(phone, version)
        again.session = try #require(connection.tls?.session)
        _ = try lab.folder.write("laptop \(laptop)\n", to: "tokens")
        #expect(connection.waitForEnd() == .notified)
        #expect(throws: HandshakeFailure.alert(112)) { try scene.overTLS(again) }
        // Nor with the name of another token, as long as that one counts: the session is the phone's.
        again.serverName = "\(laptop).dns.test"
        let other = try scene.overTLS(again)
        try other.ask("n2.bench.example")
        try scene.daemon.waitForLog("token=laptop transport=dot name=n2.bench.example.")
        #expect(!scene.daemon.log.contains("token=phone transport=dot name=n2.bench.example."))
      }
    }
  }

  @Test func `a broken file leaves the tokens before it in use, with one line`() throws {
    try withLab { lab in
      let scene = try scene(in: lab, "phone \(phone)\n")
      let connection = try scene.overTLS(offer(phone))
      let path = try lab.folder.write("phone \(phone)\nlaptop\n", to: "tokens")
      let line =
        "ERROR encrypted.tokens_file: \(path): line 2: is not \"LABEL TOKEN\"; the file before it stays in use\n"
      try scene.daemon.waitForLog(line)
      // The same fault again is no news.
      try scene.daemon.hangUp(expecting: "INFO configuration reloaded in ")
      #expect(try connection.ask("n1.bench.example").data == ["198.18.0.1"])
      #expect(try scene.overTLS(offer(phone)).ask("n1.bench.example").data == ["198.18.0.1"])
      _ = try lab.folder.write("phone \(phone)\n", to: "tokens")
      try scene.daemon.waitForLog("INFO encrypted.tokens_file: in use again\n")
      #expect(chmod(path, 0o644) == 0)
      try scene.daemon.waitForLog("other users can access the file (mode 0644)")
      _ = try lab.folder.write("laptop \(laptop)\n", to: "tokens")
      #expect(connection.waitForEnd() == .notified)
      #expect(try scene.overTLS(offer(laptop)).ask("n1.bench.example").data == ["198.18.0.1"])
      #expect(scene.daemon.log.components(separatedBy: line).count == 2)
      #expect(!scene.daemon.log.contains(phone))
    }
  }

  // MARK: - PROXY

  /// A PROXY header of version 2 over IPv4, as haproxy sends it.
  private func header(
    _ source: [UInt8] = [192, 0, 2, 7], command: UInt8 = 0x21, family: UInt8 = 0x11, more: [UInt8] = []
  ) -> [UInt8] {
    let content =
      source + (source.count == 4 ? [198, 51, 100, 1] : [UInt8](repeating: 0, count: source.count))
      + [0x9C, 0x40, 0x03, 0x55] + more
    return [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A, command, family]
      + [UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
  }

  private let proxyKeys = """
    name = "dns.test"
    proxy_protocol = ["127.0.0.2/32"]
    allow = ["192.0.2.0/24", "2001:db8::/32", "127.0.0.1/32"]
    """

  @Test func `the client that a proxy's header names is the client, for access, limits and log`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, proxyKeys + "\nper_client = 2\nnew_per_second = 1")
      func connect(_ header: [UInt8]) throws -> ClientConnection {
        try scene.overTLS(from: "127.0.0.2", prologue: header)
      }
      #expect(try connect(header()).ask("n1.bench.example").data == ["198.18.0.1"])
      try scene.daemon.waitForLog("client=192.0.2.7 transport=dot name=n1.bench.example.")
      // What follows the addresses is skipped.
      let types = [UInt8](repeating: 4, count: 300)
      #expect(try connect(header([192, 0, 2, 8], more: types)).ask("n2.bench.example").data == ["198.18.0.2"])
      try scene.daemon.waitForLog("client=192.0.2.8 transport=dot name=n2.bench.example.")
      let address: [UInt8] = [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]
      #expect(try connect(header(address, family: 0x21)).ask("n3.bench.example").data == ["198.18.0.3"])
      try scene.daemon.waitForLog("client=2001:db8::9 transport=dot name=n3.bench.example.")
      #expect(throws: HandshakeFailure.closed) { try connect(header([198, 51, 100, 7])) }
      try scene.daemon.waitForLog("refused 1 connection from 198.51.100.0/24: not in encrypted.allow")
      // Before the other two listeners as well.
      let query = TestQuery("n4.bench.example")
      let secure = try ClientConnection(
        to: scene.doh, from: "127.0.0.2", prologue: header([192, 0, 2, 9]), TLSOffer(protocols: ["h2"]))
      #expect(try HTTP2Client(secure).fetch(.get(query)).status == 200)
      try scene.daemon.waitForLog("client=192.0.2.9 transport=doh name=n4.bench.example.")
      let plain = try ClientConnection(to: scene.plain, from: "127.0.0.2", prologue: header([192, 0, 2, 10]), nil)
      #expect(try plain.fetch(.get(query)).status == 200)
      try scene.daemon.waitForLog("client=192.0.2.10 transport=doh name=n4.bench.example.")
      // The third connection of one client takes the place of its first one; of many clients each has its own places.
      let first = try connect(header([192, 0, 2, 11]))
      let others = try (12..<30).map { try connect(header([192, 0, 2, $0])) }
      let second = try connect(header([192, 0, 2, 11]))
      let third = try connect(header([192, 0, 2, 11]))
      #expect(first.waitForEnd() == .notified)
      for connection in others + [second, third] { #expect(try connection.ask("n1.bench.example").code == .noError) }
    }
  }

  @Test func `by LOCAL a proxy speaks for itself`() throws {
    try withLab { lab in
      let allowed = proxyKeys.replacing("\"127.0.0.1/32\"", with: "\"127.0.0.0/8\"")
      let scene = try EncryptedScene(in: lab, allowed + "\nper_client = 2\nnew_per_second = 1")
      var connections: [ClientConnection] = []
      // No limit of one client is the proxy's.
      for index in 0..<20 {
        let local = index == 0 ? header(command: 0x20) : Array(header(command: 0x20, family: 0).prefix(14)) + [0, 0]
        connections.append(try scene.overTLS(from: "127.0.0.2", prologue: local))
      }
      for connection in connections { #expect(try connection.ask("n1.bench.example").data == ["198.18.0.1"]) }
      try scene.daemon.waitForLog("client=127.0.0.2 transport=dot")
      #expect(!scene.daemon.log.contains("client=192.0.2.7"))
    }
  }

  @Test func `a proxy without a header, or with a wrong one, is closed`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, proxyKeys)
      // TLS at once.
      #expect(throws: HandshakeFailure.closed) { try scene.overTLS(from: "127.0.0.2") }
      for (what, octets) in [
        ("version 1", Array("PROXY TCP4 192.0.2.7 198.51.100.1 40000 853\r\n".utf8)),
        ("another version", header(command: 0x11)), ("another command", header(command: 0x22)),
        ("UDP", header(family: 0x12)), ("Unix", header(family: 0x31)), ("no family", header(family: 0)),
        ("no room for the addresses", Array(header().prefix(15)) + [4, 192, 0, 2, 7]),
        ("more than 536 octets", header(more: [UInt8](repeating: 4, count: 600))),
      ] {
        let connection = try ClientConnection(to: scene.dot, from: "127.0.0.2", prologue: octets, nil)
        #expect(connection.waitForEnd() == .closed, "\(what)")
        #expect(connection.received.isEmpty, "\(what)")
      }
      // Nothing, and half of a header: closed after a second.
      for octets in [[], Array(header().prefix(20))] {
        let connection = try ClientConnection(to: scene.dot, from: "127.0.0.2", prologue: octets, nil)
        #expect(connection.waitForEnd() == .closed)
      }
      // Others go on.
      #expect(try scene.overTLS(from: "127.0.0.2", prologue: header()).ask("n1.bench.example").code == .noError)
    }
  }

  @Test func `a header that comes octet by octet is read, and the handshake follows it`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, proxyKeys)
      let socket = try Socket.stream(to: scene.dot, from: "127.0.0.2")
      var one: Int32 = 1
      setsockopt(socket.descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
      for octet in header() { socket.send([octet]) }
      let tls = try ClientStream(socket.descriptor, TLSOffer())
      let query = TestQuery("n1.bench.example")
      #expect(tls.write(framed(query.octets)))
      guard case .octets(let octets) = tls.read() else { throw Failure("no response") }
      #expect(try Reply(Array(octets.dropFirst(2)), to: query).data == ["198.18.0.1"])
    }
  }

  @Test func `a header of a peer that is no proxy is not read`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, proxyKeys)
      #expect(throws: HandshakeFailure.self) { try scene.overTLS(from: "127.0.0.1", prologue: header()) }
      let plain = try ClientConnection(to: scene.plain, prologue: header(), nil)
      plain.send(HTTPAsk.get(TestQuery("n1.bench.example")).octets)
      #expect(try plain.response().status == 400)
      #expect(try scene.simulator.count.transfers == 0)
      #expect(!scene.daemon.log.contains("client=192.0.2.7"))
    }
  }
}
