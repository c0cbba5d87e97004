// QueryTapTests.swift -- what a listener thread leaves for the query log: all of it in order, or counted.

import DNSWire
import EventLoop
import Routing
import Glibc
import Telemetry
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `A query tap` {
  private let tap = QueryTap()
  private let client = SocketAddress(text: "192.0.2.7:4711")!

  private func add(_ number: Int, from client: SocketAddress? = nil) {
    let octets = RawQuery {
      $0.id = UInt16(truncatingIfNeeded: number)
      $0.name = RawQuery.name("n\(number).example")
    }.octets
    var query = Query()
    _ = QueryReader.read(octets.span, into: &query)
    octets.withUnsafeBufferPointer { message in
      withUnsafePointer(to: (client ?? self.client).storage) {
        tap.add(query, of: message, from: $0, .doh, QueryEnd(.hit, 3, rule: 7), receivedAt: Int64(number))
      }
    }
  }

  private func takeAll() -> [LoggedQuery] {
    var all: [LoggedQuery] = []
    while let query = tap.take({ LoggedQuery($0, name: $1) }) { all.append(query) }
    return all
  }

  @Test func `a query tap that is off takes nothing`() {
    #expect(!tap.isOn)
    add(1)
    #expect(!tap.publish(at: 2))
    #expect(takeAll().isEmpty)
  }

  @Test func `a query tap delivers what was published`() throws {
    tap.setOn(true)
    #expect(tap.isOn)
    add(5)
    #expect(takeAll().isEmpty)
    #expect(tap.publish(at: 12))
    let query = try #require(takeAll().first)
    #expect(query.client == [192, 0, 2, 7])
    #expect(query.name == DomainName(text: "n5.example")?.octets)
    #expect(query.transport == .doh)
    #expect(query.type == 1)
    #expect(query.code == 3)
    #expect(query.rule == 7)
    #expect(query.outcome == .atOnce(.hit))
    #expect(query.receivedAt.nanoseconds == 5)
    #expect(query.took == .nanoseconds(7))
  }

  @Test func `a query tap retains whole IPv6 addresses`() throws {
    tap.setOn(true)
    add(1, from: SocketAddress(text: "[2001:db8::5]:53"))
    _ = tap.publish(at: 1)
    #expect(try #require(takeAll().first).client == SocketAddress(text: "[2001:db8::5]:53")?.octets)
  }

  @Test func `a query tap wakes its reader once until it has read`() {
    tap.setOn(true)
    add(1)
    #expect(tap.publish(at: 1))
    add(2)
    #expect(!tap.publish(at: 2))
    #expect(!tap.publish(at: 2))
    tap.clearUnread()
    add(3)
    #expect(tap.publish(at: 3))
    #expect(takeAll().count == 3)
  }

  @Test func `a full query tap counts the queries it drops, and continues when it has room`() {
    tap.setOn(true)
    let count = TapSize.queries + 10
    for number in 0..<count { add(number) }
    _ = tap.publish(at: 0)
    var last = 0
    #expect(tap.takeLeftOut(&last) == 10)
    #expect(tap.takeLeftOut(&last) == 0)
    #expect(takeAll().map(\.receivedAt.nanoseconds) == (0..<Int64(TapSize.queries)).map { $0 })
    for round in 0..<5 {
      for number in 0..<700 { add(round * 700 + number) }
      _ = tap.publish(at: 0)
      #expect(takeAll().map(\.receivedAt.nanoseconds) == (0..<700).map { Int64(round * 700 + $0) })
    }
    #expect(tap.takeLeftOut(&last) == 0)
  }

  @Test func `a query tap between two threads loses only what it counts`() {
    tap.setOn(true)
    let total = 50_000
    final class Writer: @unchecked Sendable {
      let work: () -> Void
      init(_ work: @escaping () -> Void) { self.work = work }
    }
    let writer = Writer { [self] in
      for number in 0..<total {
        add(number)
        if number % 7 == 0 { _ = tap.publish(at: Int64(number)) }
      }
      _ = tap.publish(at: Int64(total))
    }
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { context in
        Unmanaged<Writer>.fromOpaque(context!).takeRetainedValue().work()
        return nil
      }, Unmanaged.passRetained(writer).toOpaque())
    var seen: [LoggedQuery] = []
    var (lost, last) = (0, 0)
    while seen.count + lost < total {
      seen += takeAll()
      lost += tap.takeLeftOut(&last)
    }
    pthread_join(thread, nil)
    #expect(seen.count + lost == total)
    let numbers = seen.map(\.receivedAt.nanoseconds)
    #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
    #expect(seen.allSatisfy { $0.name == DomainName(text: "n\($0.receivedAt.nanoseconds).example")?.octets })
  }
}

@Suite struct `A line of the query log` {
  private func query(_ name: [UInt8], _ outcome: LoggedQuery.Fate = .atOnce(.hit)) -> LoggedQuery {
    LoggedQuery(
      receivedAt: .now, took: .microseconds(1042),
      client: [0x20, 1, 0xD, 0xB8] + [UInt8](repeating: 0, count: 11) + [1],
      transport: .tcp, name: name, type: 65, code: 0, outcome: outcome)
  }

  @Test func `a line of the query log has client, question and result`() throws {
    let name = try #require(DomainName(text: "Www.Example.com"))
    let line = query(name.octets, .asked(.provider("alidns"))).line()
    #expect(
      line.written(as: .text, isJournal: true)
        == "<6>query client=2001:db8::1 transport=tcp name=Www.Example.com. type=HTTPS outcome=provider"
        + " provider=alidns rcode=NOERROR ms=1.042\n")
  }

  @Test func `a line of the query log has the rule that decided`() {
    var rules = RuleNames()
    _ = rules.number(of: "domestic")
    var query = query([0], .atOnce(.blocked))
    query.rule = 0
    let line = query.line(LogClock(), rules).written(as: .text, isJournal: true)
    #expect(line.contains(" outcome=blocked rule=domestic rcode="))
    #expect(query.sentence(LogClock(), rules).hasSuffix(" ms, rule domestic"))
    query.rule = RouteFinding.noCounter
    #expect(!query.line(LogClock(), rules).written(as: .text, isJournal: true).contains("rule="))
  }

  @Test func `a query with a name of any octets is one line of the log`() {
    for octet in UInt8.min...UInt8.max {
      let text = query([2, octet, 0x61, 0]).line().written(as: .text, isJournal: false)
      #expect(text.utf8.allSatisfy { $0 == 0x0A || 0x20...0x7E ~= $0 })
      #expect(text.split(separator: " ").count == 10)
    }
  }

  @Test(arguments: [[], [0, 0], [3, 1, 0], [64, 0], [192, 12], [1, 97]] as [[UInt8]])
  func `an unreadable name is a dash in the query log`(octets: [UInt8]) {
    #expect(query(octets).line().written(as: .text, isJournal: true).contains(" name=- "))
  }

  @Test(
    arguments: [
      (.asked(.cache), "hit"), (.asked(.localDNS), "localdns"), (.asked(.ourselves), "local"), (.stale, "stale"),
      (.failed, "failure"), (.atOnce(.blocked), "blocked"), (.atOnce(.refused), "refused"),
      (.atOnce(.invalid), "invalid"), (.atOnce(.overflow), "overflow"), (.atOnce(.stale), "stale"),
    ] as [(LoggedQuery.Fate, String)])
  func `the result of a query is one word in the query log`(outcome: LoggedQuery.Fate, word: String) {
    #expect(
      query([0], outcome).line().written(as: .text, isJournal: true).contains(" name=. type=HTTPS outcome=\(word) "))
  }
}

@Suite struct `What is said of slow and failed answers` {
  private let loop = SimulatedLoop()

  /// A watch, and what it has reported.
  private func withWatch(_ body: (AnswerWatch, () -> [String]) -> Void) {
    var told: [String] = []
    let watch = AnswerWatch(on: loop) { told.append($0) }
    body(watch) {
      defer { told = [] }
      return told
    }
  }

  @Test func `reasons of any number take one line of limited length`() {
    withWatch { watch, told in
      watch.answered(at: loop.now, took: .zero, failure: "first")
      _ = told()
      for number in 0..<10_000 { watch.answered(at: loop.now, took: .zero, failure: "code \(number)") }
      loop.advance(by: .seconds(1))
      let line = told()
      #expect(line.count == 1 && line[0].utf8.count < 500 && line[0].contains("9984 failed: other reasons"))
    }
  }

  @Test func `the first failed answer is logged at once, the others after a second`() {
    withWatch { watch, told in
      watch.answered(at: loop.now, took: .milliseconds(900), failure: nil)
      #expect(told() == [])
      watch.answered(at: loop.now, took: .milliseconds(1500), failure: nil)
      #expect(told() == ["answers that had to wait: 1 took longer than 1 s, the longest 1500 ms"])
      loop.advance(by: .milliseconds(600))
      watch.answered(at: loop.now, took: .milliseconds(4400), failure: "no answer in time")
      watch.answered(at: loop.now, took: .milliseconds(2), failure: "no answer in time")
      watch.answered(at: loop.now, took: .milliseconds(2), failure: "refused")
      loop.advance(by: .milliseconds(399))
      #expect(told() == [])
      loop.advance(by: .milliseconds(1))
      #expect(
        told() == [
          "answers that had to wait: 1 took longer than 1 s, the longest 4400 ms; 2 failed: no answer in time; "
            + "1 failed: refused"
        ])
      // A line begins another second, and nothing ticks where there is nothing to tell.
      watch.answered(at: loop.now, took: .zero, failure: "refused")
      #expect(told() == [])
      loop.advance(by: .seconds(1))
      #expect(told() == ["answers that had to wait: 1 failed: refused"])
      #expect(loop.timers.earliest == nil)
      loop.advance(by: .seconds(3600))
      #expect(told() == [])
    }
  }

  @Test func `counts of failed answers are flushed on request`() {
    withWatch { watch, told in
      watch.flush(at: loop.now)
      #expect(told() == [])
      for _ in 0..<30 { watch.answered(at: loop.now, took: .zero, failure: "refused") }
      #expect(told() == ["answers that had to wait: 1 failed: refused"])
      watch.flush(at: loop.now)
      #expect(told() == ["answers that had to wait: 29 failed: refused"])
      #expect(loop.timers.earliest == nil)
    }
  }
}
