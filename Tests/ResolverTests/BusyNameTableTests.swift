// BusyNameTableTests.swift -- busy names stay in the table, however many others pass; counters match the events.

import TestSupport
import Testing
import Upstreams

@testable import BusyNames
@testable import Resolver

@Suite struct `The table of busy names` {
  private func use(_ table: inout BusyNameTable, _ number: Int, times: Int = 1) {
    table.count(UInt64(number), name: [UInt8(number & 0xFF)], type: 1, now: 0) { row in
      for _ in 0..<times { row.counts.asked(nil, rtt: nil) }
    }
    if table.isFull { table.prune { _ in 0 } }
  }

  @Test func `the table of busy names is bounded for any sequence of names`() {
    var table = BusyNameTable(most: 10)
    for number in 0..<10_000 {
      use(&table, number)
      #expect(table.count < 15)
    }
  }

  @Test func `the table examines three rows for each new name, regardless of its size`() {
    for most in [100, 1000] {
      var (table, looks) = (BusyNameTable(most: most), 0)
      for number in 0..<20_000 {
        table.count(UInt64(number), name: [1], type: 1, now: 0) { $0.counts.asked(nil, rtt: nil) }
        guard table.isFull else { continue }
        table.prune { _ in
          looks += 1
          return 0
        }
      }
      #expect(looks <= 3 * 20_000)
    }
  }

  @Test func `the table keeps a busy name and its counts while thousands of names are queried once`() {
    var table = BusyNameTable(most: 10)
    for number in 1...5000 {
      use(&table, number)
      if number % 4 == 0 { use(&table, 0) }
    }
    #expect(table[0]?.counts.requestPDnsNum == 1250)
  }

  @Test func `a formerly busy name makes room for currently busy ones`() {
    var table = BusyNameTable(most: 5)
    use(&table, 0, times: 1000)
    for round in 0..<100 {
      for number in 1...4 { use(&table, number, times: 10) }
      use(&table, 100 + round * 2)
      use(&table, 101 + round * 2)
    }
    #expect(table[0] == nil)
    for number in 1...4 { #expect(table[UInt64(number)]?.counts.requestPDnsNum == 1000) }
  }

  @Test func `an eviction considers hits that are not counted in a row yet`() {
    var table = BusyNameTable(most: 2)
    for number in 0..<3 {
      table.count(UInt64(number), name: [UInt8(number)], type: 1, now: 0) { row in
        for _ in 0..<(3 - number) { row.counts.asked(nil, rtt: nil) }
      }
    }
    #expect(table.isFull)
    // The least queried name has a thousand cache hits.
    table.prune { $0.name == [2] ? 1000 : 0 }
    #expect(table.contains(0) && !table.contains(1) && table.contains(2))
    #expect(table.threshold == 3)
    table.prune { _ in 0 }
    #expect(table.count == 2)
  }

  @Test(arguments: 0..<20) func `the table holds the busiest names of a skewed load`(seed: Int) {
    var generator = SeededGenerator(seed: UInt64(seed))
    var table = BusyNameTable(most: 100)
    for _ in 0..<50_000 {
      // Similar to the names of a household: the n-th is queried 1/n as often as the first.
      let number = Int(pow2(Double.random(in: 0..<13, using: &generator)))
      use(&table, number)
    }
    #expect((1...10).allSatisfy { table.contains(UInt64($0)) }, "seed \(seed)")
  }

  private func pow2(_ exponent: Double) -> Double {
    var (result, rest) = (1.0, exponent)
    while rest >= 1 { (result, rest) = (result * 2, rest - 1) }
    return result * (1 + rest)
  }
}

@Suite struct `Counters of a name` {
  @Test func `the counters of a name distinguish every failure`() {
    var counts = NameCounts()
    let failures: [TransferFailureCause?] = [
      nil, .noResponse(.timeout), .noResponse(.reset), .noAnswer(.account), .noAnswer(.badParameter),
      .noAnswer(.badPath),
    ]
    for (index, failure) in failures.enumerated() {
      for _ in 0...index { counts.asked(failure, rtt: nil) }
    }
    let numbers = [
      counts.successNum, counts.timeoutErro, counts.noResponseErro, counts.noPermissionErro, counts.urlParameterErro,
      counts.urlPathErro,
    ]
    #expect(numbers == [1, 2, 3, 4, 5, 6])
    #expect(counts.requestPDnsNum == 21 && counts.localErro == 0)
  }

  @Test func `each cause of a failed transfer has one counter of a name`() {
    func labels(_ counter: KeyPath<NameCounts, UInt64>) -> [String] {
      TransferFailureCause.allCases.filter { cause in
        var counts = NameCounts()
        counts.asked(cause, rtt: nil)
        return counts[keyPath: counter] == 1
      }.map(\.label)
    }
    #expect(labels(\.successNum).isEmpty)
    #expect(labels(\.timeoutErro) == ["timeout", "slept"])
    #expect(labels(\.noPermissionErro) == ["authentication", "expired", "account", "quota"])
    #expect(labels(\.urlParameterErro) == ["name", "bad_parameter"])
    #expect(labels(\.urlPathErro) == ["bad_path"])
    #expect(labels(\.noResponseErro).count == TransferFailureCause.allCases.count - 9)
  }

  @Test func `the counters of a name have the mean and the longest time of responses`() {
    var counts = NameCounts()
    #expect(counts.avgRtt == 0 && counts.maxRtt == 0)
    counts.asked(nil, rtt: 10)
    counts.asked(.noResponse(.timeout), rtt: nil)
    counts.asked(.noAnswer(.quota), rtt: 40)
    counts.asked(nil, rtt: 25)
    #expect(counts.avgRtt == 25 && counts.maxRtt == 40)
  }

  @Test func `the counters of a name include LocalDNS as a substitute, and failures on our side`() {
    var counts = NameCounts()
    counts.wentToLocalDNS(isAnswered: true)
    #expect(counts.gobackLocaldnsNum == 1 && counts.localErro == 0)
    counts.wentToLocalDNS(isAnswered: false)
    counts.wasRefusedHere()
    #expect(counts.gobackLocaldnsNum == 2 && counts.localErro == 2)
    #expect(counts.requestPDnsNum == 0 && counts.activity == 2)
  }
}
