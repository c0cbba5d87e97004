// NameTests.swift -- names that are answered here or by the network's resolver, and never by a provider.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct NameTests {
  @Test(arguments: Dig.allCases) func `special names never leave the machine`(_ program: Dig) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let server = try lab.daemon(Settings(Settings.json(simulator.http)).text).address
      for (name, type, status, data) in [
        ("localhost", "A", "NOERROR", ["127.0.0.1"]),
        ("localhost", "AAAA", "NOERROR", ["::1"]),
        ("www.localhost", "A", "NOERROR", ["127.0.0.1"]),
        ("localhost", "MX", "NOERROR", []),
        ("1.0.0.127.in-addr.arpa", "PTR", "NOERROR", ["localhost."]),
        ("test", "A", "NXDOMAIN", []),
        ("www.test", "AAAA", "NXDOMAIN", []),
        ("www.invalid", "A", "NXDOMAIN", []),
        ("printer.local", "A", "NXDOMAIN", []),
        ("abc.onion", "A", "NXDOMAIN", []),
        ("www.alt", "TXT", "NXDOMAIN", []),
        ("_dns.resolver.arpa", "SVCB", "NOERROR", []),
        ("internal", "A", "NXDOMAIN", []),
        ("db.internal", "A", "NXDOMAIN", []),
        ("router.home.arpa", "AAAA", "NXDOMAIN", []),
        ("printer", "A", "NXDOMAIN", []),
        ("printer", "AAAA", "NXDOMAIN", []),
        ("1.2.3.10.in-addr.arpa", "PTR", "NXDOMAIN", []),
        ("1.0.168.192.in-addr.arpa", "PTR", "NXDOMAIN", []),
        ("1.0.31.172.in-addr.arpa", "PTR", "NXDOMAIN", []),
        ("1.0.127.100.in-addr.arpa", "PTR", "NXDOMAIN", []),
        ("1.2.0.192.in-addr.arpa", "PTR", "NXDOMAIN", []),
        ("1.d.f.ip6.arpa", "PTR", "NXDOMAIN", []),
        ("192.0.2.1", "A", "NXDOMAIN", []),
        ("use-application-dns.net", "A", "NXDOMAIN", []),
      ] {
        let answer = try program.ask(server, "-q", name, "-t", type == "SVCB" ? "TYPE64" : type)
        #expect(answer.status == status, "\(name) \(type)")
        #expect(answer.data == data, "\(name) \(type)")
        // Stub resolvers that keep negative answers need to know for how long.
        #expect(answer.authorities.count == (data.isEmpty ? 1 : 0), "\(name) \(type)")
      }
      #expect(try simulator.count.transfers == 0)
    }
  }

  @Test func `names of the network go to its resolver`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let network = try PlainServer(addresses: [
        "printer.": "10.0.0.9", "db.internal.": "10.0.0.10", "router.home.arpa.": "10.0.0.1",
      ])
      var settings = Settings(Settings.json(simulator.http))
      settings.localServers = [network.address]
      let server = try lab.daemon(settings.text).address
      #expect(try ask(server, "printer").data == ["10.0.0.9"])
      #expect(try ask(server, "db.internal").data == ["10.0.0.10"])
      #expect(try ask(server, "router.home.arpa").data == ["10.0.0.1"])
      #expect(try ask(server, "9.0.0.10.in-addr.arpa", "PTR").code == .nxDomain)
      #expect(network.queries.count == 4)
      #expect(try ask(server, "www.test").code == .nxDomain)
      #expect(network.queries.count == 4, "names below test are not sent to LocalDNS")
      #expect(try simulator.count.transfers == 0)
    }
  }

  @Test(arguments: [true, false])
  func `the network answers for its router's page, and the provider if the network does not know it`(isOn: Bool) throws
  {
    try withLab { lab in
      let zone = try lab.folder.write(
        """
        $ORIGIN .
        $TTL 300
        fritz.box. SOA ns.example. hostmaster.example. ( 1 3600 600 86400 60 )
        fritz.box. A 192.0.2.80
        tplogin.cn. SOA ns.example. hostmaster.example. ( 1 3600 600 86400 60 )
        tplogin.cn. A 192.0.2.81
        """, to: "zone")
      let simulator = try lab.simulator("--zone", zone)
      let network = try PlainServer(addresses: ["fritz.box.": "192.168.178.1", "nas.fritz.box.": "192.168.178.9"])
      var settings = Settings(Settings.json(simulator.http))
      settings.localServers = [network.address]
      settings.local = "portal_names = \(isOn)"
      let text = settings.text.replacing("[names]\n", with: "[names]\nrebind_protection = true\n")
      let daemon = try lab.daemon(text)
      #expect(try ask(daemon.address, "fritz.box").data == [isOn ? "192.168.178.1" : "192.0.2.80"])
      #expect(try ask(daemon.address, "nas.fritz.box").data == (isOn ? ["192.168.178.9"] : []))
      #expect(try ask(daemon.address, "tplogin.cn").data == ["192.0.2.81"])
      #expect(try simulator.requests.contains { $0.name?.hasPrefix("fritz.box") == true } == !isOn)
      #expect(network.queries.contains { "\($0.message.questions[0].question.name)" == "tplogin.cn." } == isOn)
    }
  }

  @Test func `a name of the hosts file is never NXDOMAIN, before and after it is in the file`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let hosts = try lab.folder.write("", to: "hosts")
      var settings = Settings(Settings.doh(simulator.http))
      settings.openControl(in: lab)
      let daemon = try lab.daemon(settings.text.replacing("hosts_file = \"\"", with: "hosts_file = \"\(hosts)\""))
      #expect(try ask(daemon.address, "box.example.com", "MX").code == .nxDomain)
      // What was cached as NXDOMAIN does not count from now on.
      _ = try lab.folder.write("192.0.2.9 box.example.com example.com box.test\n", to: "hosts")
      try daemon.reload(try String(contentsOfFile: daemon.configuration, encoding: .utf8))
      for type in ["MX", "TXT", "SSHFP", "HTTPS"] {
        for name in ["box.example.com", "box.test"] {
          let reply = try ask(daemon.address, name, type)
          #expect(reply.code == .noError && reply.message.answers.isEmpty && reply.soa.count == 1, "\(name) \(type)")
        }
      }
      #expect(try ask(daemon.address, "box.example.com").data == ["192.0.2.9"])
      #expect(try ask(daemon.address, "example.com", "MX").data.count == 2)
      #expect(try ask(daemon.address, "other.example.com", "MX").code == .nxDomain)
    }
  }

  @Test func `rules decide before the cache and the provider`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let corporate = try PlainServer(addresses: ["www.corp.example.": "10.1.1.1", "mail.corp.example.": "10.1.1.2"])
      var settings = Settings(Settings.doh(simulator.http))
      settings.more = """
        [[rule]]
        names = ["=pinned.example.com"]
        use = "pinned"
        addresses = ["192.0.2.77", "2001:db8::77"]
        [[rule]]
        names = ["*.blocked.example"]
        use = "nxdomain"
        [[rule]]
        names = ["forbidden.example"]
        use = "refused"
        [[rule]]
        names = ["corp.example"]
        use = "localdns"
        servers = ["\(corporate.address)"]
        """
      let server = try lab.daemon(settings.text).address
      #expect(try ask(server, "pinned.example.com", "A").data == ["192.0.2.77"])
      #expect(try ask(server, "PINNED.example.com", "AAAA").data == ["2001:db8::77"])
      let none = try ask(server, "pinned.example.com", "MX")
      #expect(none.code == .noError && none.message.answers.isEmpty && none.soa.count == 1)
      let blocked = try ask(server, "ads.blocked.example")
      #expect(blocked.code == .nxDomain)
      #expect(blocked.errors == [15])
      let refused = try ask(server, "www.forbidden.example", "TXT")
      #expect(refused.code == .refused)
      #expect(refused.errors == [15])
      #expect(try ask(server, "www.corp.example").data == ["10.1.1.1"])
      #expect(try ask(server, "www.corp.example").data == ["10.1.1.1"])
      #expect(try ask(server, "none.corp.example").code == .nxDomain)
      #expect(corporate.queries.count == 2, "the second time it was kept")
      #expect(try simulator.count.transfers == 0)
      #expect(try ask(server, "example.com").data == ["192.0.2.1"])
    }
  }

  @Test(arguments: Dig.allCases)
  func `rules by type hide IPv6, "default" makes an exception, and a reload applies both`(_ program: Dig) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try simulator.setZone(
        """
        www.example. 300 A 192.0.2.1
        www.example. 300 AAAA 2001:db8::1
        www.example. 300 TXT "text"
        six.example. 300 AAAA 2001:db8::6
        """)
      var settings = Settings(Settings.doh(simulator.http))
      let exception = "[[rule]]\nnames = [\"six.example\"]\nuse = \"default\"\n"
      let suppression = "[[rule]]\nname = \"ipv4\"\nnames = [\".\"]\ntypes = [\"AAAA\", \"HTTPS\"]\nuse = \"nodata\"\n"
      settings.more = exception + suppression
      let daemon = try lab.daemon(settings.text)
      func data(_ name: String, _ type: String) throws -> [String] {
        let answer = try program.ask(daemon.address, "-q", name, "-t", type)
        #expect(answer.status == "NOERROR", "\(name) \(type)")
        #expect(answer.authorities.count == (answer.data.isEmpty ? 1 : 0), "\(name) \(type)")
        return answer.data
      }
      #expect(try data("www.example", "AAAA").isEmpty)
      #expect(try data("www.example", "TYPE65").isEmpty)
      #expect(try ask(daemon.address, "www.example", "AAAA").errors == [15])
      #expect(try simulator.count.transfers == 0)
      #expect(try data("www.example", "A") == ["192.0.2.1"])
      #expect(try data("www.example", "TXT") == ["\"text\""])
      #expect(try data("six.example", "AAAA") == ["2001:db8::6"])
      settings.more = suppression
      try daemon.reload(settings.text)
      #expect(try data("six.example", "AAAA").isEmpty)
      settings.more = suppression.replacing("\"AAAA\", \"HTTPS\"", with: "\"HTTPS\"")
      try daemon.reload(settings.text)
      let before = try simulator.count.transfers
      #expect(try data("six.example", "AAAA") == ["2001:db8::6"])
      #expect(try simulator.count.transfers == before, "the default route's answer is still there")
      #expect(try data("www.example", "AAAA") == ["2001:db8::1"])
    }
  }

  @Test(arguments: Dig.allCases)
  func `a rule for some clients is nothing to others, nor to the daemon itself`(_ program: Dig) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let corporate = try PlainServer(addresses: ["www.example.com.": "10.1.1.1"])
      var settings = Settings(Settings.json(simulator.http))
      settings.more = """
        [[rule]]
        names = ["n1.bench.example"]
        clients = ["127.0.0.2"]
        use = "nxdomain"
        [[rule]]
        names = ["www.example.com"]
        clients = ["127.0.0.0/30"]
        use = "localdns"
        servers = ["\(corporate.address)"]
        """
      let daemon = try lab.daemon(settings.text)
      func answer(_ name: String, from client: String, _ options: String...) throws -> Dig.Answer {
        try program.ask(daemon.address, "-b", client, "-q", name, "-t", "A", options.first ?? "+notcp")
      }
      #expect(try answer("n1.bench.example", from: "127.0.0.2").status == "NXDOMAIN")
      #expect(try answer("n1.bench.example", from: "127.0.0.2", "+tcp").status == "NXDOMAIN")
      for client in ["127.0.0.1", "127.0.0.3"] {
        #expect(try answer("n1.bench.example", from: client).data == ["198.18.0.1"])
      }
      #expect(try answer("n1.bench.example", from: "127.0.0.2").status == "NXDOMAIN", "also once it is cached")
      // Each is cached by its own route.
      for _ in 1...2 {
        #expect(try answer("www.example.com", from: "127.0.0.2").data == ["10.1.1.1"])
        #expect(try answer("www.example.com", from: "127.0.0.4").data == ["192.0.2.1", "192.0.2.2"])
      }
      #expect(corporate.queries.count == 1)
      func query(_ arguments: String...) throws -> String {
        try lab.run(["query", "--config", daemon.configuration] + arguments).output
      }
      #expect(try query("n1.bench.example").contains("route        no rule: json\n"))
      #expect(try query("n1.bench.example", "--client", "127.0.0.3").contains("route        no rule: json\n"))
      #expect(try query("n1.bench.example", "--client", "::ffff:127.0.0.2").contains("NXDOMAIN\n"))
      let blocked = try query("n1.bench.example", "--client", "127.0.0.2")
      #expect(blocked.contains("route        rule 1 (n1.bench.example.): answered by httpdnsd itself\n"), "\(blocked)")
      #expect(blocked.contains("status       NXDOMAIN\n"))
    }
  }

  @Test func `a plain resolver that truncates is asked over TCP`() throws {
    try withLab { lab in
      let corporate = try PlainServer { query, transport in
        let question = query.questions[0].question
        let texts = (0..<8).map { index in
          ResourceRecord(
            owner: question.name, type: .txt, ttl: 60, rdata: [200] + [UInt8](repeating: 97 + index, count: 200))
        }
        return transport == .udp ? query.reply(isTruncated: true) : query.reply(answers: texts)
      }
      let simulator = try lab.simulator()
      var settings = Settings(Settings.doh(simulator.http))
      settings.more = "[[rule]]\nnames = [\"corp.example\"]\nuse = \"localdns\"\nservers = [\"\(corporate.address)\"]"
      let server = try lab.daemon(settings.text).address
      #expect(try ask(server, "big.corp.example", "TXT").message.header.tc)
      #expect(try ask(server, "big.corp.example", "TXT", over: .tcp).data.count == 8)
      #expect(corporate.queries.map(\.transport) == [.udp, .tcp])
    }
  }

  @Test(arguments: ["json", "alidns"])
  func `kind json carries names of any octets, alidns only letters, digits, - and _`(
    _ kind: String
  ) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let provider = kind == "json" ? Settings.json(simulator.http) : Settings.alidns(simulator.http)
      let server = try lab.daemon(Settings(provider).text).address
      let queries = (0...255).map { octet in
        var query = TestQuery("x.bench.example")
        query.labels[0] = [UInt8(ascii: "a"), UInt8(octet), UInt8(ascii: "b")]
        return query
      }
      // Whatever the name, there is an answer; `Reply` checks that it is to this very question.
      let answers = try queries.chunked(by: 32).flatMap { try askAll(server, Array($0)) }
      let allowed = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_".utf8)
      for (octet, answer) in answers.enumerated() {
        let isAllowed = kind == "json" || allowed.contains(UInt8(octet))
        #expect(answer.reply.code == (isAllowed ? .nxDomain : .servFail), "octet \(octet)")
        #expect(answer.reply.errors == (isAllowed ? [] : [21]), "octet \(octet)")
      }
      let names = try simulator.requests.compactMap { $0.parameters["name"] }
      #expect(names.count == (kind == "json" ? 256 - 26 : 26 + 10 + 2), "case does not matter")
      guard kind == "alidns" else { return }
      #expect(names.allSatisfy { name in name.utf8.allSatisfy { allowed.contains($0) || $0 == UInt8(ascii: ".") } })
      #expect(names.allSatisfy { $0.utf8.count == "axb.bench.example".utf8.count })
    }
  }
}

extension Array {
  /// The elements in groups of at most `count`.
  func chunked(by count: Int) -> [ArraySlice<Element>] {
    stride(from: 0, to: self.count, by: count).map { self[$0..<Swift.min($0 + count, self.count)] }
  }
}
