// CacheTests.swift -- what is answered without another transfer, and how it differs from the first answer.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct CacheTests {
  /// A daemon with one provider, and the simulator behind it.
  private func withDaemon(_ body: (Address, Simulator) throws -> Void) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      try body(try lab.daemon(Settings(Settings.doh(simulator.http)).text).address, simulator)
    }
  }

  @Test(arguments: Transport.allCases)
  func `the response has the case of the question`(_ transport: Transport) throws {
    try withDaemon { server, simulator in
      // `Reply` compares the question octet by octet.
      for name in ["wWw.eXaMpLe.CoM", "WWW.example.com", "www.example.com"] {
        let reply = try ask(server, name, over: transport)
        #expect(reply.data.sorted() == ["192.0.2.1", "192.0.2.2"])
        #expect(reply.message.answers.allSatisfy { $0.owner.text == "\(name)." })
      }
      #expect(try simulator.count.transfers == 1)
    }
  }

  @Test func `TTLs count down to the end, and then the name is fetched again`() throws {
    try withDaemon { server, simulator in
      try simulator.setZone("short.example.com. 3 A 192.0.2.1\nshort.example.com. 1000 TXT \"other\"")
      let before = ContinuousClock.now
      #expect(try ask(server, "short.example.com").ttl == 3)
      let after = ContinuousClock.now
      var seen: Set<UInt32> = []
      try eventually("second transfer", within: .seconds(6)) {
        let asked = ContinuousClock.now
        let ttl = try #require(try ask(server, "short.example.com").ttl)
        let transfers = try simulator.count.transfers
        if transfers == 1 {
          seen.insert(ttl)
          #expect(ttl <= 3 - (asked - after).components.seconds)
          #expect(Int64(ttl) >= 3 - (ContinuousClock.now - before).components.seconds)
        }
        return transfers > 1 ? true : nil
      }
      #expect(ContinuousClock.now - before >= .seconds(3))
      #expect(seen.isSuperset(of: [1, 2]))
    }
  }

  @Test func `the first address changes from answer to answer`() throws {
    try withDaemon { server, simulator in
      let first = try (0..<12).map { _ in try #require(try ask(server, "many-3.example").data.first) }
      #expect(Set(first) == ["198.18.0.0", "198.18.0.1", "198.18.0.2"])
      #expect(try simulator.count.transfers == 1)
      // The chain stays in front of what it leads to.
      for _ in 0..<4 {
        let types = try ask(server, "alias2.example.com").message.answers.map(\.type)
        #expect(types == [.cname, .cname, .a, .a])
      }
    }
  }

  @Test func `equal questions at once are one transfer`() throws {
    try withDaemon { server, simulator in
      try simulator.fault("kind=delay&ms=400&count=1")
      let queries = (0..<200).map { TestQuery($0 % 2 == 0 ? "www.example.com" : "WWW.Example.COM") }
      for answer in try askAll(server, queries) { #expect(answer.reply.data.sorted() == ["192.0.2.1", "192.0.2.2"]) }
      #expect(try simulator.count.transfers == 1)
    }
  }

  @Test func `a name that does not exist has no other types and no names below`() throws {
    try withDaemon { server, simulator in
      for (name, type) in [
        ("nowhere.example.com", "A"), ("nowhere.example.com", "AAAA"), ("Nowhere.Example.com", "TXT"),
        ("nowhere.example.com", "HTTPS"), ("below.nowhere.example.com", "A"),
      ] {
        let reply = try ask(server, name, type)
        #expect(reply.code == .nxDomain)
        #expect(reply.soa.count == 1)
      }
      #expect(try simulator.count.transfers == 1)
    }
  }

  @Test func `NODATA for one type does not affect other types`() throws {
    try withDaemon { server, simulator in
      for (type, data) in [("AAAA", []), ("A", ["192.0.2.4"]), ("AAAA", [])] {
        let reply = try ask(server, "v4only.example.com", type)
        #expect(reply.code == .noError)
        #expect(reply.data == data)
      }
      #expect(try simulator.count.transfers == 2)
    }
  }

  @Test func `an answer with TTL 0 is served and not cached`() throws {
    try withDaemon { server, simulator in
      let replies = try (0..<3).map { _ in try ask(server, "ttl-0.example") }
      #expect(replies.map(\.ttl) == [0, 0, 0])
      #expect(try simulator.count.transfers == 3)
    }
  }

  @Test func `a query without RD is answered from the cache only`() throws {
    try withDaemon { server, simulator in
      var query = TestQuery("example.com")
      query.flags = 0
      #expect(try ask(server, query).code == .refused)
      #expect(try simulator.count.transfers == 0)
      try ask(server, "example.com")
      #expect(try ask(server, query).data == ["192.0.2.1"])
    }
  }

  @Test func `the names of refresh.keep are fetched at start and at three quarters of their TTL`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.doh(simulator.http))
      settings.more = "[refresh]\nkeep = [\"ttl-8.example\"]\ntypes = [\"A\"]\nmin_ttl = \"1s\""
      let daemon = try lab.daemon(settings.text)
      try simulator.waitForTransfers(1)
      try eventually("the second fetch", within: .seconds(10)) {
        // Every query is answered from the cache, also during the fetch.
        #expect(try ask(daemon.address, "ttl-8.example").ttl ?? 0 >= 1)
        return try simulator.count.transfers >= 2 ? true : nil
      }
      let times = try simulator.requests.map(\.time)
      #expect(times.count == 2)
      #expect((5_400...7_000).contains(times[1] - times[0]), "\(times)")
    }
  }
}
