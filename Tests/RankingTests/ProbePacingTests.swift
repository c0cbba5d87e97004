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

  @Test func `one to an address in a second`() {
    var pacing = ProbePacing(perMinute: 60)
    #expect(pacing.begin(address(1), now: 0) == nil)
    #expect(pacing.begin(address(1), now: second - 1) == .address)
    #expect(pacing.nextTime(for: address(1), now: second - 1) == second)
    #expect(pacing.begin(address(1), now: second) == nil)
  }
}
