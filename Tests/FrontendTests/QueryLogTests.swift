// QueryLogTests.swift -- queries of several threads are ordered by their answers, at no cost without a reader.

import DNSWire
import Routing
import EventLoop
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `The query log` {
  private let loop: EventLoop
  private let log: QueryLog

  init() throws {
    loop = try EventLoop()
    log = QueryLog(loop)
  }

  private func add(_ number: Int, to tap: QueryTap, answeredAt instant: Int64) {
    let octets = RawQuery { $0.name = RawQuery.name("n\(number).example") }.octets
    var query = Query()
    _ = QueryReader.read(octets.span, into: &query)
    octets.withUnsafeBufferPointer { message in
      withUnsafePointer(to: SocketAddress(text: "192.0.2.7:4711")!.storage) {
        tap.add(
          query, of: message, from: $0, .udp, QueryEnd(.hit, number % 2 == 0 ? 2 : 0, rule: RouteFinding.noCounter),
          receivedAt: 1)
      }
    }
    _ = tap.publish(at: instant)
  }

  private func query(_ number: Int, answeredAt instant: Int64) -> LoggedQuery {
    LoggedQuery(
      receivedAt: BootInstant(nanoseconds: 2), took: .nanoseconds(instant - 2), client: [192, 0, 2, 7],
      transport: .tcp, name: DomainName(text: "n\(number).example")!.octets, type: 1, code: 0, outcome: .stale)
  }

  private func numbers(_ lines: [String]) -> [Int] {
    lines.compactMap { $0.firstMatch(of: /\sn(\d+)\.example\.\s/).flatMap { Int($0.1) } }
  }

  @Test func `the query log has the queries of all threads in the order of their answers`() {
    let taps = [log.makeTap(), log.makeTap()]
    var lines: [String] = []
    let watch = QueryWatch(of: nil, onlyFailed: false, asJSON: false) { lines += $0 }
    log.add(watch)
    add(1, to: taps[0], answeredAt: 10)
    add(4, to: taps[0], answeredAt: 40)
    log.add(query(3, answeredAt: 30))
    add(2, to: taps[1], answeredAt: 20)
    add(5, to: taps[1], answeredAt: 50)
    log.finish()
    #expect(numbers(lines) == [1, 2, 3, 4, 5])
    log.finish()
    #expect(lines.count == 5)
  }

  @Test func `the query log takes queries only while it is on or a tail watches`() {
    let tap = log.makeTap()
    #expect(!tap.isOn)
    log.add(query(9, answeredAt: 5))
    var (all, failed) = ([String](), [String]())
    let first = QueryWatch(of: nil, onlyFailed: false, asJSON: false) { all += $0 }
    let second = QueryWatch(of: nil, onlyFailed: true, asJSON: false) { failed += $0 }
    log.add(first)
    #expect(tap.isOn && !log.isOn)
    add(1, to: tap, answeredAt: 10)
    log.add(second)
    add(2, to: tap, answeredAt: 20)
    add(3, to: tap, answeredAt: 30)
    log.finish()
    #expect(numbers(all) == [1, 2, 3] && numbers(failed) == [2])
    log.remove(first)
    #expect(tap.isOn)
    log.remove(second)
    #expect(!tap.isOn)
    log.add(query(8, answeredAt: 40))
    log.finish()
    #expect(all.count == 3 && failed.count == 1)
  }

  @Test func `the query log stays bounded under more answers than it can pass on`() {
    var lines: [String] = []
    let watch = QueryWatch(of: nil, onlyFailed: false, asJSON: false) { lines += $0 }
    log.add(watch)
    for number in 0...QueryLog.mostPending { log.add(query(number, answeredAt: Int64(number) + 2)) }
    #expect(lines.count == QueryWatch.linesAtOnce + 1)
    let leftOut = QueryLog.mostPending - QueryWatch.linesAtOnce
    #expect(lines.last == "(\(leftOut) queries are left out: too many at once)\n")
  }
}
