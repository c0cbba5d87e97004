// MeasurementTableTests.swift -- smoothing, failures, age, and the limit of rows.

import DNSWire
import Testing

@testable import Ranking

private let second: Int64 = 1_000_000_000
private let interval = 600 * second

@Suite struct `The table of measurements` {
  private let address = IPAddress(text: "192.0.2.1")!
  private var table = MeasurementTable()

  private func find(_ now: Int64, network: UInt32 = 7, _ kind: ProbeKind = .tcp(port: 443)) -> Measurement? {
    table.measurement(of: address, by: kind, network: network, now: now, interval: interval)
  }

  private mutating func note(_ result: ProbeResult, at now: Int64, network: UInt32 = 7) {
    table.record(result, of: address, by: .tcp(port: 443), network: network, now: now, interval: interval)
  }

  @Test mutating func `round trips are smoothed with a weight of a quarter`() {
    note(.answered(microseconds: 20_000), at: 0)
    #expect(find(0)?.microseconds == 20_000)
    note(.answered(microseconds: 40_000), at: interval)
    #expect(find(interval)?.microseconds == 25_000)
  }

  @Test mutating func `one failure is enough for an address that never answered, otherwise two in a row`() {
    note(.failed, at: 0)
    #expect(find(0)?.isFailing == true)
    note(.answered(microseconds: 100), at: second)
    #expect(find(second)?.isFailing == false)
    note(.failed, at: 2 * second)
    #expect(find(2 * second)?.isFailing == false)
    // Less than 5 s apart: the same trouble.
    note(.failed, at: 6 * second)
    #expect(find(6 * second)?.isFailing == false)
    note(.failed, at: 7 * second)
    #expect(find(7 * second)?.isFailing == true)
  }

  @Test mutating func `a failure counts for two intervals, a round trip for a day`() {
    note(.answered(microseconds: 100), at: 0)
    note(.failed, at: second)
    note(.failed, at: 10 * second)
    #expect(find(10 * second + 2 * interval - 1)?.isFailing == true)
    #expect(find(10 * second + 2 * interval)?.isFailing == false)
    #expect(find(86_410 * second) == nil)
    // What comes then does not mix with what has expired.
    note(.answered(microseconds: 900), at: 200_000 * second)
    #expect(find(200_000 * second)?.microseconds == 900)
  }

  @Test mutating func `failures that have expired do not count with new ones`() {
    note(.answered(microseconds: 100), at: 0)
    note(.failed, at: second)
    note(.failed, at: 10 * second)
    let later = 10 * second + 2 * interval
    note(.failed, at: later)
    #expect(find(later)?.failures == 1)
    #expect(find(later)?.isFailing == false)
  }

  @Test mutating func `with a short interval a dead address stays failing between its measurements`() {
    for time in stride(from: Int64(0), to: 60, by: 1) {
      note(.failed, at: time * second)
      let found = table.measurement(
        of: address, by: .tcp(port: 443), network: 7, now: time * second + second - 1, interval: second)
      #expect(found?.isFailing == true)
    }
  }

  @Test mutating func `failures do not keep a round trip alive`() {
    note(.answered(microseconds: 100), at: 0)
    note(.failed, at: 86_399 * second)
    #expect(find(86_401 * second)?.microseconds == nil)
  }

  @Test mutating func `what is known belongs to a network and a kind`() {
    note(.answered(microseconds: 100), at: 0)
    #expect(find(0, network: 8) == nil)
    #expect(find(0, .icmp) == nil)
    #expect(find(0, .tcp(port: 80)) == nil)
    let mapped = IPAddress(text: "::c000:201")!
    #expect(table.measurement(of: mapped, by: .tcp(port: 443), network: 7, now: 0, interval: interval) == nil)
  }

  @Test mutating func `nothing learned changes nothing`() {
    note(.unknown, at: 0)
    #expect(table.count == 0)
  }

  @Test mutating func `failures are forgotten together, round trips stay`() {
    note(.answered(microseconds: 100), at: 0)
    note(.failed, at: second)
    note(.failed, at: 10 * second)
    table.forgetFailures()
    #expect(find(10 * second) == Measurement(microseconds: 100, failures: 0, measuredAt: 10 * second))
  }

  @Test mutating func `the least recently measured row makes room`() {
    func address(_ number: Int) -> IPAddress {
      IPAddress(octets: [10, UInt8(number >> 16), UInt8(number >> 8 & 255), UInt8(number & 255)])!
    }
    for number in 0..<MeasurementTable.capacity {
      table.record(
        .answered(microseconds: 1), of: address(number), by: .icmp, network: 1, now: Int64(number), interval: interval)
    }
    table.record(.answered(microseconds: 2), of: address(0), by: .icmp, network: 1, now: 10_000, interval: interval)
    for number in 0..<1000 {
      table.record(
        .answered(microseconds: 3), of: address(100_000 + number), by: .icmp, network: 1, now: 20_000,
        interval: interval)
    }
    #expect(table.count == MeasurementTable.capacity)
    #expect((400_000...1_000_000).contains(table.octets))
    let filled = table
    func isKnown(_ number: Int) -> Bool {
      filled.measurement(of: address(number), by: .icmp, network: 1, now: 20_000, interval: interval) != nil
    }
    #expect(isKnown(0))
    #expect(!(1...1000).contains(where: isKnown))
    #expect((1001..<MeasurementTable.capacity).allSatisfy(isKnown))
    #expect((0..<1000).allSatisfy { isKnown(100_000 + $0) })
  }
}
