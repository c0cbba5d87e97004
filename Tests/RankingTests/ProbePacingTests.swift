// ProbePacingTests.swift -- probes in any minute, at a time, and to one address.

import DNSWire
import Testing

@testable import Ranking

private let second: Int64 = 1_000_000_000

private func address(_ number: Int) -> IPAddress {
  IPAddress(octets: [198, 18, UInt8(number >> 8), UInt8(number & 255)])!
}

@Suite struct `The pace of probes` {
  @Test(arguments: [1, 7, 60, 6000]) func `no minute has more than allowed`(limit: Int) {
    var pacing = ProbePacing(perMinute: limit)
    var random = SystemRandomNumberGenerator()
    var times: [Int64] = []
    var now: Int64 = 0
    for number in 0..<20_000 {
      now += Int64.random(in: 0...(120 * second / Int64(limit)), using: &random)
      if pacing.begin(address(number), now: now) == nil {
        times.append(now)
        pacing.end()
      } else {
        #expect(pacing.nextTime(now: now).map { $0 > now } == true)
      }
    }
    for index in times.indices.dropFirst(limit) { #expect(times[index] - times[index - limit] >= 60 * second) }
    #expect(times.count > limit)
  }

  @Test func `ten at a time`() {
    var pacing = ProbePacing(perMinute: 60)
    for number in 0..<10 { #expect(pacing.begin(address(number), now: 0) == nil) }
    #expect(pacing.begin(address(10), now: 0) == .busy)
    pacing.end()
    #expect(pacing.begin(address(10), now: 0) == nil)
  }

  @Test func `one client or domain leaves a quarter of the probes to others`() {
    var pacing = ProbePacing(perMinute: 60)
    func ask(_ number: Int, _ client: UInt64, _ domain: UInt64, at now: Int64) -> ProbePacing.Refusal? {
      defer { if pacing.inFlight > 0 { pacing.end() } }
      return pacing.begin(address(number), for: [client, domain], now: now)
    }
    // A client with names of many domains.
    for number in 0..<45 { #expect(ask(number, 1, 100 + UInt64(number), at: Int64(number)) == nil) }
    #expect(ask(100, 1, 10, at: 45) == .share)
    #expect(pacing.nextTime(for: [1, 10], now: 45) == 60 * second)
    #expect(ask(100, 3, 10, at: 45) == nil)
    // A domain with names of many clients, a minute later.
    let later = 100 * second
    for number in 0..<45 { #expect(ask(number, 200 + UInt64(number), 2, at: later + Int64(number)) == nil) }
    #expect(ask(100, 3, 2, at: later + 45) == .share)
    #expect(ask(100, 3, 10, at: later + 45) == nil)
    #expect(ask(100, 3, 2, at: later + 60 * second) == nil)
    // The daemon's own names have no share.
    #expect(pacing.begin(address(101), now: later + 45) == nil)
  }

  @Test func `one to an address in a second`() {
    var pacing = ProbePacing(perMinute: 60)
    #expect(pacing.begin(address(1), now: 0) == nil)
    #expect(pacing.begin(address(1), now: second - 1) == .address)
    #expect(pacing.nextTime(for: address(1), now: second - 1) == second)
    #expect(pacing.begin(address(1), now: second) == nil)
  }

  @Test func `another limit does not forget what the last minute had`() {
    var pacing = ProbePacing(perMinute: 3)
    for number in 0..<3 { #expect(pacing.begin(address(number), now: Int64(number)) == nil) }
    pacing.restart(perMinute: 4)
    #expect(pacing.inFlight == 0)
    #expect(pacing.begin(address(3), now: 10) == nil)
    #expect(pacing.begin(address(4), now: 20) == .budget)
    pacing.restart(perMinute: 2)
    #expect(pacing.begin(address(5), now: 60 * second + 1) == .budget)
    #expect(pacing.begin(address(5), now: 60 * second + 2) == nil)
  }
}
