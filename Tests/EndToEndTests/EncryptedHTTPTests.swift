// EncryptedHTTPTests.swift -- DNS over HTTPS with the real daemon: messages, statuses, JSON, X-Forwarded-For.

import DNSWire
import Foundation
import TLSTestSupport
import Testing

@Suite(.blocking) struct EncryptedHTTPTests {
  @Test(arguments: HTTPVersion.allCases)
  func `GET and POST are answered with the message, its ID and how long it lives`(version: HTTPVersion) throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let zone = """
        example. 900 SOA ns1.example. hostmaster.example. 1 3600 600 604800 25
        www.example. 60 CNAME target.example.
        target.example. 300 A 192.0.2.1
        """
      try scene.simulator.setZone(zone)
      for method in ["GET", "POST"] {
        for name in ["www.example", "nowhere.example"] {
          for type in ["A", "AAAA"] {
            let query = TestQuery(name, type)
            let reply = try scene.fetch(method == "GET" ? .get(query) : .post(query), over: version)
            let message = try reply.message(to: query)
            #expect(message.code == (name == "www.example" ? .noError : .nxDomain))
            #expect(message.data == (name == "www.example" && type == "A" ? ["192.0.2.1"] : []))
            let life = try #require(message.data.isEmpty ? message.soa.map(\.ttl).min() : message.ttl)
            #expect(life > 0 && life <= (message.data.isEmpty ? 25 : 60), "\(name) \(type)")
            #expect(reply.fields["cache-control"] == "max-age=\(life)", "\(name) \(type)")
            let known = ["date", "content-type", "content-length", "cache-control"]
            #expect(reply.fields.keys.filter { !known.contains($0) } == [])
          }
        }
      }
      #expect(try scene.simulator.count.transfers == 3, "that a name does not exist counts for all types")
    }
  }

  @Test(arguments: HTTPVersion.allCases)
  func `an answer is 200 whatever its code, and failures may not be cached`(version: HTTPVersion) throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      try scene.simulator.fault("kind=status&code=500&below=failing.example")
      var other = TestQuery("n1.bench.example")
      other.flags |= 0x1000
      for (query, code) in [
        (TestQuery("a.failing.example"), ResponseCode.servFail), (TestQuery("example.com", "AXFR"), .refused),
        (other, ResponseCode(rawValue: 4)),
      ] {
        let reply = try scene.fetch(.post(query), over: version)
        #expect(try reply.message(to: query).code == code)
        #expect(reply.fields["cache-control"] == "no-store")
      }
    }
  }

  @Test(arguments: HTTPVersion.allCases)
  func `nothing is truncated, and the type of a POST may have any case and parameters`(version: HTTPVersion) throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      var query = TestQuery("txt-30000.example", "TXT")
      for payload in [nil, 512] as [UInt16?] {
        query.payload = payload
        let reply = try scene.fetch(
          HTTPAsk.post(query.octets, type: "Application/DNS-Message; charset=utf-8"), over: version
        ).message(to: query)
        #expect(reply.octets.count > 30_000 && !reply.message.header.tc)
      }
    }
  }

  /// What gets another status than 200 over both versions.
  private static let refusals: [(ask: HTTPAsk, status: Int, what: String)] = {
    let query = TestQuery("n1.bench.example")
    var response = query
    response.flags |= 0x8000
    let good = HTTPAsk.get(query)
    var list: [(HTTPAsk, Int, String)] = [
      (.get(query).with(\.target, "/dns-query"), 400, "no parameter"),
      (.get(query).with(\.target, "/dns-query?dns="), 400, "an empty parameter"),
      (.get(query).with(\.target, "/dns-query?dns=AAAA"), 400, "fewer than 12 octets"),
      (.get(response), 400, "a response"), (.post(response), 400, "a response in a body"),
      (.post(Array(query.octets.prefix(11))), 400, "a short body"), (.post([]), 400, "an empty body"),
      (good.with(\.target, good.target + "="), 400, "padding"),
      (good.with(\.target, good.target + "%3D"), 400, "escapes"),
      (good.with(\.target, good.target.replacing("dns=", with: "dns=+/")), 400, "plain base64"),
      (good.with(\.target, "/"), 404, "the root"),
      (good.with(\.target, good.target.replacing("/dns-query", with: "/dns-query/")), 404, "a slash more"),
      (good.with(\.target, good.target.replacing("/dns-query", with: "/dns-query/x")), 404, "a path below"),
      (good.with(\.target, good.target.replacing("/dns-query", with: "/dns-querying")), 404, "a longer path"),
      (good.with(\.target, "/resolve?name=n1.bench.example"), 404, "JSON while it is off"),
      (.post(query.octets + [UInt8](repeating: 0, count: 65_536 - query.octets.count)), 413, "a body above the most"),
      (
        .get(query).with(\.target, "/dns-query?dns=" + String(repeating: "A", count: 2_732)), 414,
        "a parameter above the most"
      ),
      (.post(query.octets, type: "text/plain"), 415, "another type"),
      (.post(query.octets, type: nil), 415, "no type"),
      (.post(query.octets, type: "application/dns-json"), 415, "a similar type"),
      (good.with(\.fields, [("x-large", String(repeating: "a", count: 8_500))]), 431, "a large field"),
      (good.with(\.fields, (0..<40).map { ("x-\($0)", "a") }), 431, "many fields"),
    ]
    for method in ["PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "PROPFIND"] {
      list.append((good.with(\.method, method), 405, method))
    }
    for host in ["example.com", "dns.test.example.com", "xdns.test", "192.0.2.1", "localhost", "dns.test:x"] {
      list.append((good.with(\.host, host), 421, "host \(host)"))
    }
    return list
  }()

  @Test(arguments: HTTPVersion.allCases)
  func `each mistake has its status, with one line of text`(version: HTTPVersion) throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      for (ask, status, what) in Self.refusals {
        let reply = try scene.fetch(ask, over: version)
        #expect(reply.status == status, "\(what): \(reply.text)")
        #expect(reply.fields["allow"] == (status == 405 ? "GET, POST" : nil), "\(what)")
        guard ask.method != "HEAD" else { continue }
        #expect(reply.text.hasSuffix("\n") && reply.text.split(separator: "\n").count == 1, "\(what): \(reply.text)")
      }
      #expect(try scene.simulator.count.transfers == 0)
    }
  }

  @Test(arguments: HTTPVersion.allCases)
  func `the name, the addresses of listeners and published ones are this server, with any port`(version: HTTPVersion)
    throws
  {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "name = \"dns.test\"\npublished = [\"192.0.2.53\", \"2001:db8::53\"]")
      let query = TestQuery("n1.bench.example")
      for host in [
        "dns.test", "DNS.Test:8443", "127.0.0.1", "127.0.0.1:\(scene.doh.port)", "192.0.2.53", "[2001:DB8::53]:443",
      ] {
        #expect(try scene.fetch(.get(query).with(\.host, host), over: version).status == 200, "\(host)")
      }
    }
  }

  @Test func `without a name only listeners without TLS look at the host`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "")
      let query = TestQuery("n1.bench.example")
      for version in HTTPVersion.allCases {
        #expect(try scene.fetch(.get(query).with(\.host, "any.example"), over: version).status == 200)
      }
      for (host, status) in [("localhost:1", 200), ("10.9.8.7", 200), ("[::1]", 200), ("any.example", 421)] {
        let reply = try scene.overHTTP().fetch(.get(query).with(\.host, host))
        #expect(reply.status == status, "\(host)")
      }
    }
  }

  @Test func `a body over HTTP 1 needs one length`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let query = TestQuery("n1.bench.example")
      var chunked = HTTPAsk.post(query)
      chunked.hasLength = false
      chunked.fields.append(("Transfer-Encoding", "chunked"))
      chunked.body =
        Array("\(String(query.octets.count, radix: 16))\r\n".utf8) + query.octets + Array("\r\n0\r\n\r\n".utf8)
      let connection = try scene.overHTTPS(.http1)
      #expect(try connection.fetch(chunked).status == 411)
      #expect(connection.waitForEnd() == .notified)
      #expect(connection.received.isEmpty, "no octet of the body is a request")
      #expect(try scene.overHTTPS(.http1).fetch(.post(query).with(\.body, nil)).status == 411)
      // Over HTTP/2 the frames say where a body ends.
      #expect(try scene.fetch(.post(query).with(\.hasLength, false), over: .http2).status == 200)
    }
  }

  @Test func `the largest body over HTTP 2 is taken, and holds up no other request`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let client = HTTP2Client(try scene.overHTTPS(.http2))
      let query = TestQuery("n1.bench.example")
      // All that the windows have room for, and then nearly as much again.
      for count in [65_535, 60_000, 60_000] {
        let zeros = HTTPAsk.post([UInt8](repeating: 0, count: count))
        #expect(try client.fetch(zeros).status == 200, "a header of zeros is a query")
        #expect(try client.fetch(.post(query)).message(to: query).data == ["198.18.0.1"])
      }
    }
  }

  @Test(arguments: [
    ("two lengths", "POST /dns-query HTTP/1.1\r\nHost: dns.test\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab"),
    ("a length of two numbers", "POST /dns-query HTTP/1.1\r\nHost: dns.test\r\nContent-Length: 2, 2\r\n\r\nab"),
    ("a folded field", "GET /dns-query HTTP/1.1\r\nHost: dns.test\r\nX-A: a\r\n b\r\n\r\n"),
    ("a space before a colon", "GET /dns-query HTTP/1.1\r\nHost : dns.test\r\n\r\n"),
    ("NUL", "GET /dns-query HTTP/1.1\r\nHost: dns.test\r\nX-A: a\u{0}b\r\n\r\n"),
    ("two hosts", "GET /dns-query HTTP/1.1\r\nHost: dns.test\r\nHost: dns.test\r\n\r\n"),
    ("no host", "GET /dns-query HTTP/1.1\r\nX-A: a\r\n\r\n"),
    ("no HTTP", "\u{16}\u{3}\u{1}\u{0}\r\n\r\n"),
  ])
  func `HTTP that programs read in different ways ends the connection with 400`(what: String, text: String) throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let query = TestQuery("n1.bench.example")
      for connection in [try scene.overHTTPS(.http1), try scene.overHTTP()] {
        connection.send(Array(text.utf8) + HTTPAsk.get(query).octets)
        #expect(try connection.response().status == 400, "\(what)")
        #expect(connection.waitForEnd() != nil)
        #expect(connection.received.isEmpty, "what follows is not read")
      }
      #expect(try scene.simulator.count.transfers == 0)
    }
  }

  @Test func `requests on a connection of HTTP 1 are answered one after the other`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let (slow, hit) = (TestQuery("n1.bench.example"), TestQuery("n2.bench.example"))
      try ask(scene.daemon.address, "n2.bench.example")
      try scene.simulator.fault("kind=delay&ms=200&name=n1.bench.example")
      let connection = try scene.overHTTPS(.http1)
      connection.send(HTTPAsk.get(slow).octets + HTTPAsk.post(hit).octets + HTTPAsk.get(hit).octets)
      #expect(try connection.response().message(to: slow).data == ["198.18.0.1"])
      #expect(try connection.response().message(to: hit).data == ["198.18.0.2"])
      #expect(try connection.response().message(to: hit).data == ["198.18.0.2"])
      // Over HTTP/2 as they are ready.
      try scene.simulator.fault("kind=delay&ms=200&name=n3.bench.example")
      let client = HTTP2Client(try scene.overHTTPS(.http2))
      let other = TestQuery("n3.bench.example")
      let (first, second) = (client.send(.get(other)), client.send(.get(hit)))
      #expect(try client.response(second).message(to: hit).data == ["198.18.0.2"])
      #expect(try client.response(first).message(to: other).data == ["198.18.0.3"])
    }
  }

  @Test func `a connection of HTTP 2 has a hundred requests at once`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      try scene.simulator.fault("kind=delay&ms=300")
      let client = HTTP2Client(try scene.overHTTPS(.http2))
      let query = TestQuery("n1.bench.example")
      let streams = (0..<101).map { _ in client.send(.get(query)) }
      for stream in streams.dropLast() { #expect(try client.response(stream).message(to: query).code == .noError) }
      // REFUSED_STREAM: the client may send it again.
      #expect(client.resets == [streams[100]: 7])
      #expect(try client.fetch(.get(query)).status == 200)
    }
  }

  @Test func `an upgrade is not taken, Expect is ignored, and HTTP 1 ends where the client wants`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let query = TestQuery("n1.bench.example")
      let connection = try scene.overHTTP()
      let upgrade = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABk")]
      func plain(_ ask: HTTPAsk) -> HTTPAsk { ask.with(\.host, "127.0.0.1") }
      var expecting = plain(.post(query))
      expecting.fields.append(("Expect", "100-continue"))
      #expect(try connection.fetch(plain(.get(query)).with(\.fields, upgrade)).status == 200)
      #expect(
        try connection.fetch(expecting).status == 200)
      #expect(try connection.fetch(plain(.get(query)).with(\.fields, [("Connection", "close")])).status == 200)
      #expect(connection.waitForEnd() == .closed)
    }
  }

  @Test func `beyond the rate limit requests wait, and those that would wait for long get 429`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab) { $0.listen = "rate_limit = 2" }
      let query = TestQuery("localhost")
      let client = HTTP2Client(try scene.overHTTPS(.http2))
      let streams = (0..<8).map { _ in client.send(.get(query)) }
      let replies = try streams.map { try client.response($0) }
      #expect(replies[0].status == 200 && replies[1].status == 200)
      let refused = replies.filter { $0.status == 429 }
      #expect((1...5).contains(refused.count), "\(replies.map(\.status))")
      #expect(replies.allSatisfy { $0.status == 200 || $0.status == 429 })
      #expect(refused.allSatisfy { $0.fields["retry-after"] == "1" })
      // The limit counts all transports.
      let connections = try (0..<8).map { _ in try scene.overHTTPS(.http1) }
      for connection in connections { connection.send(HTTPAsk.get(query).octets) }
      let others = try connections.map { try $0.response() }
      #expect(others.contains { $0.status == 429 && $0.fields["retry-after"] == "1" })
    }
  }

  // MARK: - JSON

  @Test(arguments: HTTPVersion.allCases)
  func `the JSON interface answers GET with records, flags and how long they live`(version: HTTPVersion) throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "name = \"dns.test\"\njson = true")
      func fetch(_ query: String) throws -> (reply: HTTPReply, object: [String: Any]) {
        let reply = try scene.fetch(HTTPAsk(target: "/resolve?\(query)"), over: version)
        let object = (try? JSONSerialization.jsonObject(with: Data(reply.body))) as? [String: Any]
        return (reply, object ?? [:])
      }
      let (reply, object) = try fetch("name=www.example.com")
      #expect(reply.status == 200 && reply.fields["content-type"] == "application/dns-json")
      #expect(object["Status"] as? Int == 0)
      #expect(object["RD"] as? Bool == true && object["RA"] as? Bool == true && object["TC"] as? Bool == false)
      let questions = try #require(object["Question"] as? [[String: Any]])
      #expect(questions.count == 1 && questions[0]["name"] as? String == "www.example.com.")
      #expect(questions[0]["type"] as? Int == 1)
      let answers = try #require(object["Answer"] as? [[String: Any]])
      #expect(Set(answers.compactMap { $0["data"] as? String }) == ["192.0.2.1", "192.0.2.2"])
      let ttl = try #require(answers.compactMap { $0["TTL"] as? Int }.min())
      #expect(reply.fields["cache-control"] == "max-age=\(ttl)")
      #expect(object["Authority"] == nil)
      for type in ["AAAA", "aaaa", "28", "TYPE28"] {
        let answers = try fetch("name=www.example.com.&type=\(type)").object["Answer"] as? [[String: Any]]
        #expect(answers?.first?["data"] as? String == "2001:db8::1", "\(type)")
      }
      let negative = try fetch("name=nowhere.example.com&do=1&cd=1")
      #expect(negative.object["Status"] as? Int == 3 && negative.object["CD"] as? Bool == true)
      #expect(negative.object["Answer"] == nil && negative.object["Authority"] != nil)
      #expect(negative.reply.fields["cache-control"]?.hasPrefix("max-age=") == true)
      #expect(try fetch("name=servfail.example").object["Status"] as? Int == 2)
      #expect(try fetch("name=servfail.example").reply.fields["cache-control"] == "no-store")
      for query in [
        "", "type=A", "name=a..b", "name=a.example&type=NONE", "name=a.example&name=b.example", "name=a.example&do=2",
        "name=a.example&edns_client_subnet=here",
      ] { #expect(try fetch(query).reply.status == 400, "\(query)") }
      let post = try scene.fetch(HTTPAsk.post(TestQuery("a.example"), at: "/resolve"), over: version)
      #expect(post.status == 405 && post.fields["allow"] == "GET")
    }
  }

  @Test func `the daemon's own provider of kind json loses nothing of another daemon's answers`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "name = \"dns.test\"\njson = true")
      let secure = Settings.provider(
        "json",
        """
        url = "https://dns.test/resolve"
        servers = ["\(scene.doh)"]
        ca_file = "\(lab.folder.path)/authority.pem"
        """)
      for provider in [Settings.json(scene.plain), secure] {
        let second = try lab.daemon(Settings(provider).text)
        for (name, type) in [
          ("example.com", "A"), ("example.com", "AAAA"), ("example.com", "MX"), ("example.com", "TXT"),
          ("example.com", "CAA"), ("example.com", "HTTPS"), ("example.com", "NS"), ("example.com", "SOA"),
          ("alias2.example.com", "A"), ("long.example.com", "TXT"), ("_sip._tcp.example.com", "SRV"),
          ("sip.example.com", "NAPTR"), ("secure.example.com", "DS"), ("opaque.example.com", "TYPE65534"),
          ("many-60.example", "AAAA"), ("dangling.example.com", "A"), ("nowhere.example.com", "A"),
          ("v4only.example.com", "AAAA"),
        ] {
          let expected = try ask(scene.daemon.address, name, type, over: .tcp)
          let reply = try ask(second.address, name, type, over: .tcp)
          #expect(reply.code == expected.code, "\(name) \(type)")
          let (header, other) = (reply.message.header, expected.message.header)
          #expect(
            [header.tc, header.rd, header.ra, header.ad, header.cd] == [
              other.tc, other.rd, other.ra, other.ad, other.cd,
            ])
          for (records, others) in [
            (reply.message.answers, expected.message.answers),
            (reply.message.authorities, expected.message.authorities),
          ] {
            func texts(_ records: [ResourceRecord]) -> [String] {
              records.map { "\($0.owner) \($0.type) \($0.text)" }.sorted()
            }
            #expect(texts(records) == texts(others), "\(name) \(type)")
            // The second daemon asked a moment later, if not a moment earlier.
            for (record, other) in zip(records, others) {
              #expect(abs(Int(record.ttl) - Int(other.ttl)) <= 3, "\(name) \(type): \(record.ttl), \(other.ttl)")
            }
          }
        }
      }
    }
  }

  // MARK: - X-Forwarded-For

  @Test func `the last element that a trusted proxy adds is the client, for access and log`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(
        in: lab,
        """
        name = "dns.test"
        forwarded_from = ["127.0.0.2/32"]
        allow = ["192.0.2.0/24", "2001:db8::/32", "127.0.0.1/32"]
        """)
      let query = TestQuery("n1.bench.example")
      func fetch(_ values: [String], from host: String) throws -> HTTPReply {
        try scene.overHTTP(from: host).fetch(
          .get(query).with(\.fields, values.map { ("X-Forwarded-For", $0) }))
      }
      for (values, status) in [
        (["192.0.2.9"], 200), (["198.51.100.1, 192.0.2.9"], 200), (["192.0.2.9, 198.51.100.1"], 403),
        (["198.51.100.1", "192.0.2.9"], 200), (["192.0.2.9", "198.51.100.1"], 403), (["2001:db8::9"], 200),
        (["::ffff:192.0.2.9"], 200), (["unknown"], 400), (["192.0.2.9,"], 400), (["192.0.2.9:80"], 400), ([""], 400),
        // The proxy itself asks, and it is not in `allow`.
        ([], 403),
      ] { #expect(try fetch(values, from: "127.0.0.2").status == status, "\(values)") }
      try scene.daemon.waitForLog("client=192.0.2.9 transport=doh")
      try scene.daemon.waitForLog("client=2001:db8::9 transport=doh")
      // Over one connection each request is judged by itself.
      let connection = try scene.overHTTP(from: "127.0.0.2")
      for (value, status) in [
        ("192.0.2.9", 200), ("198.51.100.1", 403), ("192.0.2.10", 200), ("x", 400), ("192.0.2.9", 200),
      ] {
        #expect(try connection.fetch(.get(query).with(\.fields, [("x-forwarded-for", value)])).status == status)
      }
      // A client that is no proxy, and one that may not even connect.
      #expect(try fetch(["198.51.100.1"], from: "127.0.0.1").status == 200)
      try scene.daemon.waitForLog("client=127.0.0.1 transport=doh")
      let stranger = try scene.overHTTP(from: "127.0.0.3")
      #expect(stranger.waitForEnd() == .closed && stranger.received.isEmpty)
      #expect(!scene.daemon.log.contains("client=127.0.0.2"))
      #expect(!scene.daemon.log.contains("client=198.51.100.1"))
    }
  }

  @Test func `limits of a client are those of the client that the proxy names`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(
        in: lab,
        """
        forwarded_from = ["127.0.0.2/32"]
        allow = ["192.0.2.0/24"]
        per_client = 2
        new_per_second = 1
        """
      ) { $0.listen = "rate_limit = 2" }
      // Of the proxy itself there may be any number.
      let connections = try (0..<20).map { _ in try scene.overHTTP(from: "127.0.0.2") }
      func send(_ client: String, over connections: ArraySlice<ClientConnection>) throws -> [Int] {
        let ask = HTTPAsk.get(TestQuery("localhost")).with(\.host, "localhost")
          .with(\.fields, [("X-Forwarded-For", client)])
        for connection in connections { connection.send(ask.octets) }
        return try connections.map { try $0.response().status }
      }
      #expect(try Set(send("192.0.2.1", over: connections[0..<10])) == [200, 429])
      for host in 2..<12 { #expect(try send("192.0.2.\(host)", over: connections[(8 + host)...(8 + host)]) == [200]) }
      try scene.daemon.waitForLog("192.0.2.0/24")
    }
  }

  @Test func `X-Forwarded-For counts only without TLS`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(
        in: lab, "name = \"dns.test\"\nforwarded_from = [\"127.0.0.2/32\"]\nallow = [\"127.0.0.2/32\"]")
      let query = TestQuery("n1.bench.example")
      for version in HTTPVersion.allCases {
        let ask = HTTPAsk.get(query).with(\.fields, [("X-Forwarded-For", "198.51.100.1")])
        let connection = try scene.overHTTPS(version, from: "127.0.0.2")
        let reply = version == .http1 ? try connection.fetch(ask) : try HTTP2Client(connection).fetch(ask)
        #expect(reply.status == 200)
      }
      try scene.daemon.waitForLog("client=127.0.0.2 transport=doh")
    }
  }
}
