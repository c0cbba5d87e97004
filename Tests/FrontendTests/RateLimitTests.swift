// RateLimitTests.swift -- listen.rate_limit: an empty answer with TC over UDP, a wait over TCP, and others go on.

import DNSWire
import EventLoop
import FairShares
import Listener
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct RateLimitTests {
  private func scene(rateLimit: Int) throws -> QueryPathScene {
    let scene = try QueryPathScene(allow: ["127.0.0.0/8", "2001:db8::/32"], rateLimit: rateLimit)
    try scene.keep("www.example.com", [address("www.example.com", 1)])
    return scene
  }

  private func message(_ result: PathResult) throws -> Message {
    guard case .reply(let octets) = result else {
      Issue.record("\(result)")
      return try Message.parse([])
    }
    return try Message.parse(octets)
  }

  /// How many of `count` queries at one moment are answered, and not with TC.
  private func answered(
    _ scene: QueryPathScene, _ count: Int, from client: String = "127.0.0.1", at now: Double
  ) throws -> Int {
    try (0..<count).count { _ in try !message(scene.ask(RawQuery().octets, from: client, now: now)).header.tc }
  }

  @Test func `beyond the limit an answer over UDP is empty, with TC and the question`() throws {
    let scene = try scene(rateLimit: 5)
    #expect(try answered(scene, 5, at: 1) == 5)
    let query = RawQuery { $0.records = [opt(option(3))] }
    let reply = try message(scene.ask(query.octets, now: 1))
    #expect(reply.header.tc && reply.header.qr)
    #expect(reply.responseCode == .noError)
    #expect(reply.questions.count == 1)
    #expect(reply.answers.isEmpty && reply.authorities.isEmpty)
    #expect(reply.edns != nil)
    #expect(scene.totals.count(.limited, over: .udp) == 1)
    #expect(scene.totals.count(.hit) == 5)
    // A fifth of a second later there is one more, a second later all five.
    #expect(try answered(scene, 9, at: 1.2) == 1)
    #expect(try answered(scene, 9, at: 3) == 5)
  }

  @Test func `another client is not touched, and a client is an IPv4 address or an IPv6 /56`() throws {
    let scene = try scene(rateLimit: 5)
    #expect(try answered(scene, 9, at: 1) == 5)
    #expect(try answered(scene, 9, from: "127.0.0.2", at: 1) == 5)
    #expect(try answered(scene, 3, from: "2001:db8::1", at: 1) == 3)
    #expect(try answered(scene, 9, from: "2001:db8:0:ff::2", at: 1) == 2)
    #expect(try answered(scene, 9, from: "2001:db8:0:100::2", at: 1) == 5)
  }

  @Test func `excesses of the previous table do not count for the new one`() {
    let (before, after) = (BucketTable(rate: 1, burst: 1), BucketTable(rate: 2, burst: 1))
    var reports = ExcessReports()
    func isReported(_ table: BucketTable) -> Bool { reports.next(of: table) != nil }
    #expect(!isReported(before))
    for _ in 0..<9 { _ = before.take(key("192.0.2.7"), now: 1) }
    #expect(isReported(before))
    #expect(!isReported(before))
    // After a reload.
    #expect(!isReported(after))
    for _ in 0..<3 { _ = after.take(key("192.0.2.7"), now: 1) }
    #expect(isReported(after))
    #expect(!isReported(after))
  }

  private func key(_ client: String) -> UInt64 {
    withUnsafePointer(to: SocketAddress(octets: IPAddress(text: client)!.octets, port: 53)!.storage) {
      ClientKey($0).value
    }
  }

  @Test(arguments: [
    ("192.0.2.77", "192.0.2.0/24"), ("255.255.255.255", "255.255.255.0/24"), ("::ffff:198.51.100.7", "198.51.100.0/24"),
    ("2001:db8:1:2ff::9", "2001:db8:1:200::/56"),
  ]) func `the log names the network of the first client, whether it was refused or waits`(
    client: String, network: String
  ) {
    for patience in [0, Int64.max / 2] {
      let table = BucketTable(rate: 1, burst: 1)
      var reports = ExcessReports()
      for _ in 0..<2 { _ = table.take(key(client), now: 1, patience: patience) }
      for _ in 0..<9 { _ = table.take(key("203.0.113.1"), now: 1, patience: patience) }
      #expect(reports.next(of: table)?.hasPrefix("a client in \(network) sends more queries than") == true)
      _ = table.take(key("203.0.113.1"), now: 1)
      #expect(reports.next(of: table)?.hasPrefix("a client in 203.0.113.0/24 ") == true)
    }
  }

  @Test func `a miss beyond rate_limit is not forwarded, and an invalid query beyond it is dropped`() throws {
    let scene = try scene(rateLimit: 1)
    let miss = RawQuery { $0.name = RawQuery.name("miss.example.com") }
    #expect(scene.ask(miss.octets, now: 1) == .forward(0))
    #expect(try message(scene.ask(miss.octets, now: 1)).header.tc)
    #expect(scene.ask(RawQuery { $0.flags |= 1 << 11 }.octets, now: 1) == .drop)
    #expect(scene.totals.count(.limited) == 2)
  }

  @Test func `a client that is not allowed takes no token`() throws {
    let scene = try scene(rateLimit: 1)
    for _ in 0..<10 {
      #expect(try message(scene.ask(RawQuery().octets, from: "192.0.2.1", now: 1)).responseCode == .refused)
    }
    #expect(scene.totals.count(.limited) == 0)
  }

  @Test func `the query path does not limit TCP, nor anything without rate_limit`() throws {
    let limited = try scene(rateLimit: 1)
    for _ in 0..<10 { #expect(try !message(limited.ask(RawQuery().octets, .tcp, now: 1)).answers.isEmpty) }
    let free = try scene(rateLimit: 0)
    #expect(try answered(free, 10_000, at: 1) == 10_000)
  }

  @Test func `all threads share one table, also after a reload that leaves the limit as it is`() throws {
    let limits = RateLimits()
    let table = limits.table(perSecond: 5)
    #expect(limits.table(perSecond: 5) === table)
    #expect(limits.table(perSecond: 6) !== table)
    #expect(!limits.table(perSecond: 0).isOn)
  }

  @Test(.enabled(if: AllocationTrap.isAvailable)) func `limiting allocates nothing`() throws {
    let scene = try scene(rateLimit: 5)
    // The clock of `allocations` hardly moves: most of these are beyond the limit.
    #expect(scene.allocations(for: RawQuery().octets) == .clean)
    #expect(scene.totals.count(.limited) > 0)
  }

  @Test func `the loop is to be woken for a log line once a minute`() throws {
    let scene = try scene(rateLimit: 1)
    let second: Int64 = 1_000_000_000
    #expect(!scene.path.hasUnreported(now: second))
    for _ in 0..<3 { _ = scene.ask(RawQuery().octets, now: 1) }
    #expect(scene.path.hasUnreported(now: second))
    #expect(!scene.path.hasUnreported(now: second))
    for _ in 0..<3 { _ = scene.ask(RawQuery().octets, now: 2) }
    #expect(!scene.path.hasUnreported(now: 60 * second))
    #expect(scene.path.hasUnreported(now: 61 * second))
  }

  @Test func `over TCP a query beyond the limit waits, a second at most, and is answered`() throws {
    let scene = try QueryPathScene(rateLimit: 50)
    scene.storedAt = BootInstant.now.nanoseconds
    try scene.keep("www.example.com", [address("www.example.com", 1)])
    let tcp = try TCPScene(scene)
    let begin = BootInstant.now
    tcp.send((0..<60).map { number in RawQuery { $0.id = UInt16(number) } })
    tcp.client.finish()
    let replies = try tcp.messages()
    let time = BootInstant.now - begin
    #expect(Set(replies.map(\.id)) == Set(0..<60))
    #expect(replies.allSatisfy { $0.addresses == ["192.0.2.1"] && !$0.header.tc })
    // Ten more than a second's worth, at 50 a second: 0.2 s, less what clocks of timers are coarse by.
    #expect(time >= .milliseconds(180))
    #expect(time < longestStep)
    #expect(scene.totals.countDelayed(over: .tcp) == 10)
  }

  /// The delay of a query at that time, in milliseconds; negative where there is 429.
  private func delay(_ scene: QueryPathScene, _ transport: QueryTransport, at now: Double) -> Int64 {
    withUnsafePointer(to: SocketAddress(octets: [127, 0, 0, 1], port: 53)!.storage) {
      let delay = scene.path.delay(of: $0, over: transport, now: Int64(now * 1e9))
      return delay < 0 ? delay : delay / 1_000_000
    }
  }

  @Test func `all transports take from one bucket`() throws {
    let scene = try scene(rateLimit: 4)
    #expect(try answered(scene, 1, at: 1) == 1)
    #expect(QueryTransport.streams.map { delay(scene, $0, at: 1) } == [0, 0, 0])
    // The bucket of a second is empty.
    #expect(try answered(scene, 1, at: 1) == 0)
    #expect(QueryTransport.streams.map { delay(scene, $0, at: 1) } == [250, 500, 750])
    #expect(delay(scene, .doh, at: 1) == 1000)
    #expect(QueryTransport.streams.map { scene.totals.countDelayed(over: $0) } == [1, 1, 2])
  }

  @Test func `a query that would wait longer than a second waits a second, and gets 429 over DoH`() throws {
    let scene = try scene(rateLimit: 1)
    #expect(delay(scene, .doh, at: 1) == 0)
    #expect(delay(scene, .doh, at: 1) == 1000)
    #expect(delay(scene, .doh, at: 1) == BucketLimit.refused)
    #expect(delay(scene, .tcp, at: 1) == 1000)
    #expect(delay(scene, .dot, at: 1) == 1000)
    #expect(QueryTransport.allCases.map { scene.totals.count(.limited, over: $0) } == [0, 0, 0, 1])
    // None of the three has taken a token.
    #expect(delay(scene, .doh, at: 3) == 0)
  }

  @Test func `without rate_limit nothing waits`() throws {
    let scene = try scene(rateLimit: 0)
    for transport in QueryTransport.streams { for _ in 0..<1000 { #expect(delay(scene, transport, at: 1) == 0) } }
  }

  @Test func `delayed queries take at most 4 MiB, an eighth of it for a client, and are answered in their time`() {
    let loop = SimulatedLoop()
    let delayed = DelayedQueries(on: loop)
    var answered: [Int] = []
    func add(_ count: Int, of client: UInt64, for seconds: Int64) -> Bool {
      [UInt8](repeating: 7, count: count).withUnsafeBufferPointer {
        delayed.add($0, of: ClientKey(value: client), delayedBy: seconds * 1_000_000_000) { answered.append($0.count) }
      }
    }
    let most = DelayLimit.octetsOfClient
    #expect(most * 8 == 4 << 20)
    #expect(add(most - 100, of: 1, for: 2))
    #expect(add(100, of: 1, for: 1))
    #expect(!add(1, of: 1, for: 1))
    for client in 2...8 as ClosedRange<UInt64> { #expect(add(most, of: client, for: 2)) }
    // Then there is no room for any client.
    #expect(!add(1, of: 9, for: 1))
    loop.advance(by: .seconds(1))
    #expect(answered == [100])
    #expect(!add(1, of: 2, for: 1))
    #expect(add(99, of: 1, for: 1))
    #expect(add(1, of: 9, for: 1))
    loop.advance(by: .seconds(1))
    #expect(answered.sorted() == [1, 99, 100, most - 100] + [Int](repeating: most, count: 7))
    #expect(add(most, of: 1, for: 1))
  }
}
