// ProviderMemoryTests.swift -- what is remembered of a provider: bounds, ends, and the time that it uses.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ProviderMemoryTests {
  private let now = BootInstant(nanoseconds: 1_000_000_000_000)

  private func question(_ number: Int, _ type: RecordType = .a) -> HTTPDNSQuestion {
    HTTPDNSQuestion(name: name("n\(number).example.com"), type: type)
  }

  @Test func `a name is a pair from the question after both families on`() {
    var pairs = PairedNames()
    let notes = [(1, RecordType.a), (1, .a), (1, .aaaa), (1, .aaaa), (2, .a), (1, .a)].map {
      pairs.note(question($0, $1))
    }
    #expect(notes == [false, false, false, true, false, true])
  }

  @Test func `ten thousand names are remembered as pairs, and one more makes room for itself`() {
    var pairs = PairedNames()
    for number in 0..<10_000 {
      for type in [RecordType.a, .aaaa] {
        let isPair = pairs.note(question(number, type))
        #expect(!isPair)
      }
    }
    let before = [0, 9999].map { pairs.note(question($0)) }
    #expect(before == [true, true])
    _ = pairs.note(question(10_000))
    let after = [0, 9999].map { pairs.note(question($0)) }
    #expect(after == [false, false])
  }

  @Test func `an unlisted name is forgotten after its time, each type by itself`() {
    var names = NotListedNames()
    names.insert(question(1), until: now + .seconds(10), now: now)
    #expect(names.contains(question(1), now: now + .milliseconds(9999)))
    #expect(!names.contains(question(1), now: now + .seconds(10)))
    #expect(!names.contains(question(1, .aaaa), now: now))
    #expect(!names.contains(question(2), now: now))
  }

  @Test func `unlisted names make room when they expire, or all at once`() {
    var names = NotListedNames()
    for number in 0..<10_000 {
      names.insert(question(number), until: now + .seconds(number < 5000 ? 1 : 100), now: now)
    }
    let later = now + .seconds(2)
    names.insert(question(10_000), until: later + .seconds(100), now: later)
    #expect(names.contains(question(9999), now: later) && names.contains(question(10_000), now: later))
    for number in 20_000..<24_999 { names.insert(question(number), until: later + .seconds(100), now: later) }
    #expect(names.contains(question(9999), now: later))
    names.insert(question(30_000), until: later + .seconds(100), now: later)
    #expect(names.contains(question(30_000), now: later))
    #expect(!names.contains(question(9999), now: later))
  }

  @Test func `a refusal corrects the clock, and a time that the service states goes before Date`() {
    var clock = ProviderClock()
    clock.note(1_800_007_200, isAuthenticated: false, wallTime: 1_800_000_000)
    #expect(clock.offset == 0 && clock.oddDifference == 7200)
    clock.correct(to: 1_800_007_200, isStated: false, wallTime: 1_800_000_000)
    #expect(clock.offset == 7200 && clock.oddDifference == nil)
    clock.note(1_800_000_600, isAuthenticated: true, wallTime: 1_800_000_000)
    #expect(clock.offset == 600)
    clock.correct(to: 1_800_000_900, isStated: true, wallTime: 1_800_000_000)
    clock.note(1_800_000_000, isAuthenticated: true, wallTime: 1_800_000_000)
    #expect(clock.offset == 900 && clock.differenceOfMachine == 0)
  }

  @Test func `clock differences up to two seconds are ignored`() {
    var clock = ProviderClock()
    for difference in [-2, -1, 0, 1, 2] as [Int64] {
      clock.note(1_800_000_000 + difference, isAuthenticated: true, wallTime: 1_800_000_000)
      #expect(clock.unixTime(wallTime: 1_800_000_000) == 1_800_000_000)
    }
    clock.note(1_800_000_003, isAuthenticated: true, wallTime: 1_800_000_000)
    #expect(clock.offset == 3)
    #expect(clock.unixTime(wallTime: 1_800_000_010) == 1_800_000_013)
    // Around what was learned the same tolerance holds, and a clock that was set right needs no difference.
    clock.note(1_800_000_005, isAuthenticated: true, wallTime: 1_800_000_000)
    #expect(clock.unixTime(wallTime: 1_800_000_000) == 1_800_000_003)
    clock.note(1_800_000_000, isAuthenticated: true, wallTime: 1_800_000_000)
    #expect(clock.unixTime(wallTime: 1_800_000_000) == 1_800_000_000)
  }

  @Test func `a signature that has expired is made once more with the time that the reply has taught`() throws {
    let loop = SimulatedLoop()
    let expired = #"{"code":"SignatureExpired"}"#
    func transfers(offsets: [Int64], fails: @escaping (Int) -> Bool) -> (count: Int, isSuccess: Bool) {
      let only: ProviderScene.Script = { number in
        let date = loop.wallTime + offsets[min(number, offsets.count - 1)]
        let body = fails(number) ? expired : #"{"host":"www.example.com","ips":["192.0.2.7"],"ttl":300}"#
        return (
          .response(
            HTTPResponse(
              status: fails(number) ? 403 : 200, contentType: "application/json", date: date, body: Array(body.utf8))),
          .milliseconds(10)
        )
      }
      let scene = ProviderScene(
        on: loop, [only], .tested(name: "first"),
        dialect: EMASDialect(accountID: "100000", secretKey: Secret("key"), isEncrypted: true))
      let result = scene.ask(isLastResort: true)
      return (scene.servers[0].sent.count, result.isAnswer)
    }
    #expect(transfers(offsets: [90_000]) { $0 == 0 } == (2, true))
    // The last second of the year 9999, which is the latest that a Date field can have.
    #expect(transfers(offsets: [253_402_300_799 - loop.wallTime]) { $0 == 0 } == (2, true))
    // Never more than once, not even where each reply teaches another time; and not at all where it teaches nothing.
    #expect(transfers(offsets: [90_000, 180_000, 270_000]) { _ in true } == (2, false))
    #expect(transfers(offsets: [1]) { _ in true } == (1, false))
  }
}
