// AnswerTests.swift -- what dig and kdig understand of the answers, and what they do with those that do not fit.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct AnswerTests {
  /// A daemon that gets everything octet by octet.
  private func withDaemon(_ body: (Address) throws -> Void) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try body(try lab.daemon(Settings(Settings.doh(simulator.http)).text).address)
    }
  }

  /// Data as both programs print it, but for blanks in hexadecimal, quotation marks and case.
  private func plain(_ data: [String]) -> [String] {
    data.map { $0.lowercased().filter { $0 != " " && $0 != "\"" } }.sorted()
  }

  @Test(arguments: Dig.allCases) func `records of many types are understood`(_ program: Dig) throws {
    try withDaemon { server in
      for (name, type, data) in [
        ("www.example.com", "A", ["192.0.2.1", "192.0.2.2"]),
        ("www.example.com", "AAAA", ["2001:db8::1"]),
        ("example.com", "NS", ["ns1.example.com."]),
        ("example.com", "SOA", ["ns1.example.com. hostmaster.example.com. 2024010101 3600 600 604800 60"]),
        ("example.com", "MX", ["10 mx.example.com.", "20 mx2.example.com."]),
        ("_sip._tcp.example.com", "SRV", ["10 60 5060 sip.example.com."]),
        ("example.com", "CAA", ["0 issue \"ca.example.net\""]),
        ("example.com", "TYPE65", ["1 . alpn=\"h3,h2\" ipv4hint=192.0.2.1"]),
        ("sip.example.com", "NAPTR", ["100 10 \"u\" \"E2U+sip\" \"!^.*$!sip:info@example.com!\" ."]),
        ("secure.example.com", "DS", ["12345 13 2 49fd46e6c4b45c55d4ac49fd46e6c4b45c55d4ac49fd46e6c4b45c55d4acabcd"]),
        ("opaque.example.com", "TYPE65534", ["\\# 4 c0000201"]),
        (
          "long.example.com", "TXT",
          ["\"the first of several strings\" \"the second one, with \\\"quotes\\\" and a \\\\ in it\" \"the third\""]
        ),
      ] {
        let answer = try program.ask(server, name, type)
        #expect(answer.status == "NOERROR", "\(name) \(type)")
        #expect(plain(answer.data) == plain(data), "\(name) \(type)")
        #expect(answer.flags == ["qr", "rd", "ra"], "\(name) \(type)")
      }
    }
  }

  @Test(arguments: Dig.allCases, [3, 16])
  func `a chain comes in its order, each link with its own TTL`(_ program: Dig, _ length: Int) throws {
    try withDaemon { server in
      let answer = try program.ask(server, "chain-\(length).example", "A", "+tcp")
      #expect(answer.status == "NOERROR")
      #expect(answer.answers.count == length + 1)
      let fields = answer.answers.map { $0.split(separator: " ").map(String.init) }
      #expect(fields.map(\.[0]) == (0...length).reversed().map { "chain-\($0).example." })
      #expect(fields.dropLast().map(\.[4]) == (0..<length).reversed().map { "chain-\($0).example." })
      #expect(fields.last?[3...] == ["A", "198.18.0.0"])
    }
  }

  @Test func `each link of a chain has its own TTL`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let server = try lab.daemon(Settings(Settings.json(simulator.http)).text).address
      for _ in 0..<2 {
        let records = try ask(server, "alias.example.com").message.answers
        #expect(records.map(\.owner.text) == ["alias.example.com."] + Array(repeating: "www.example.com.", count: 2))
        #expect(zip(records, [600, 300, 300] as [UInt32]).allSatisfy { ($1 - 2...$1).contains($0.ttl) })
      }
    }
  }

  @Test(arguments: [2, 17]) func `a chain without end, or too long, is no answer`(_ length: Int) throws {
    try withLab { lab in
      // Asked without a provider between, which would give up by itself.
      let network = try PlainServer { query, _ in
        let links = (0..<length).map { index in
          ResourceRecord(
            owner: DomainName(text: "link-\(index).example.")!, type: .cname, ttl: 60,
            rdata: DomainName(text: "link-\((index + 1) % (length == 2 ? 2 : 100)).example.")!.octets)
        }
        return query.reply(answers: links)
      }
      var settings = Settings(Settings.json(network.address))
      settings.more = "[[rule]]\nnames = [\"example\"]\nuse = \"localdns\"\nservers = [\"\(network.address)\"]"
      let reply = try ask(lab.daemon(settings.text).address, "link-0.example")
      #expect(reply.code == .servFail)
      #expect(reply.errors == [24])
      #expect(reply.message.answers.isEmpty)
    }
  }

  @Test func `a chain without data retains its links`() throws {
    try withDaemon { server in
      let reply = try ask(server, "dangling.example.com")
      #expect(reply.code == .nxDomain)
      #expect(reply.message.answers.map(\.type) == [.cname])
      #expect(reply.soa.count == 1)
    }
  }

  @Test(arguments: Dig.allCases)
  func `an answer that does not fit is truncated to the addresses that fit, and whole over TCP`(_ program: Dig) throws {
    try withDaemon { server in
      for (name, type, count) in [("txt-1600.example", "TXT", 1), ("many-60.example", "A", 60)] {
        let small = try program.ask(server, name, type, "+noedns", "+ignore")
        #expect(small.flags.contains("tc"))
        #expect(small.answers.count == (type == "A" ? 29 : 0) && small.authorities.isEmpty)
        let whole = try program.ask(server, name, type, "+tcp")
        #expect(!whole.flags.contains("tc"))
        #expect(whole.answers.count == count)
        // As a stub resolver does it: UDP, and TCP because of TC.
        let retried = try program.ask(server, name, type, "+noedns")
        #expect(retried.answers.count == count)
      }
      let text = try program.ask(server, "txt-1600.example", "TXT", "+tcp").data.joined()
      #expect(text.filter { $0 != "\"" && $0 != " " }.count == 1_600)
    }
  }

  @Test func `a response is never longer than the client or listen.max_udp_payload allows`() throws {
    try withDaemon { server in
      for (payload, name, isWhole) in [
        (nil, "many-25.example", true), (nil, "many-30.example", false), (100, "many-25.example", true),
        (100, "many-30.example", false), (1_000, "many-60.example", false), (1_232, "many-60.example", true),
        (4_096, "txt-1100.example", true), (4_096, "txt-1300.example", false),
      ] as [(UInt16?, String, Bool)] {
        var query = TestQuery(name, name.hasPrefix("txt") ? "TXT" : "A")
        query.payload = payload
        let reply = try ask(server, query)
        #expect(reply.octets.count <= Int(min(1_232, max(512, payload ?? 512))))
        #expect(reply.message.header.tc == !isWhole, "\(name) for \(payload ?? 0)")
        #expect(reply.message.answers.isEmpty == (!isWhole && query.type == RecordType.txt.rawValue))
        #expect((reply.message.edns != nil) == (payload != nil))
      }
    }
  }

  @Test(arguments: Dig.allCases)
  func `a negative answer has the zone's SOA record`(_ program: Dig) throws {
    try withDaemon { server in
      let absent = try program.ask(server, "nowhere.example.com", "A")
      #expect(absent.status == "NXDOMAIN")
      #expect(absent.answers.isEmpty)
      #expect(absent.authorities.first?.hasPrefix("example.com. 30 IN SOA ns1.example.com. ") == true)
      let empty = try program.ask(server, "v4only.example.com", "AAAA")
      #expect(empty.status == "NOERROR")
      #expect(empty.answers.isEmpty)
      #expect(empty.authorities.first?.hasPrefix("example.com. 30 IN SOA ns1.example.com. ") == true)
    }
  }

  @Test func `several queries of one TCP connection are all answered`() throws {
    try withDaemon { server in
      let socket = try Socket.stream(to: server)
      var queries = (0..<5).map { TestQuery("n\($0).bench.example") }
      for index in queries.indices { queries[index].id = UInt16(index) }
      // One segment, then one octet after the other.
      socket.send(queries[..<4].flatMap { framed($0.octets) })
      for octet in framed(queries[4].octets) { socket.send([octet]) }
      var data: [UInt16: [String]] = [:]
      for _ in queries {
        let octets = try #require(receiveFramed(socket))
        let id = UInt16(octets[0]) << 8 | UInt16(octets[1])
        data[id] = try Reply(octets, to: queries[Int(id)]).data
      }
      #expect(data == Dictionary(uniqueKeysWithValues: (0..<5).map { (UInt16($0), ["198.18.0.\($0)"]) }))
    }
  }
}
