// AddressReportsTests.swift -- when reports put an address last, for how long, and what ends it.

import DNSWire
import Testing

@testable import Ranking

private let second: Int64 = 1_000_000_000
private let name = DomainName(text: "www.example.com")!
private let other = DomainName(text: "other.example")!
private let address = IPAddress(text: "192.0.2.1")!

@Suite struct `Reports about an address` {
  private var reports = AddressReports(badFor: 600 * second)

  private mutating func note(_ result: AddressReport.Result, at now: Int64, of reported: DomainName = name) -> Bool {
    reports.record(AddressReport(name: reported, address: address, result: result), now: now)
  }

  @Test mutating func `three failures within a minute put it last, for that name`() {
    #expect(!note(.failed, at: 0))
    #expect(!note(.failed, at: 30 * second))
    // The first one is too old.
    #expect(!note(.failed, at: 60 * second))
    #expect(note(.failed, at: 61 * second))
    #expect(reports.isBad(address, of: name, now: 661 * second - 1))
    #expect(!reports.isBad(address, of: name, now: 661 * second))
    #expect(!reports.isBad(address, of: other, now: 61 * second))
  }

  @Test mutating func `one report is enough if it says bad, and each further time lasts twice as long, up to an hour`()
  {
    var now: Int64 = 0
    for length in [600, 1200, 2400, 3600, 3600] as [Int64] {
      #expect(note(.bad, at: now))
      #expect(reports.reports(about: address, of: name, now: now)?.badUntil == now + length * second)
      #expect(!note(.bad, at: now + second))
      now += length * second
    }
  }

  @Test mutating func `a day stays a day, however often an address was reported`() {
    reports.badFor = 86_400 * second
    for number in Int64(0)..<30 {
      let now = number * 86_400 * second
      #expect(note(.bad, at: now))
      #expect(reports.reports(about: address, of: name, now: now)?.badUntil == now + 86_400 * second)
    }
  }

  @Test mutating func `a success ends it and is remembered`() {
    _ = note(.bad, at: 0)
    #expect(note(.works(milliseconds: 23), at: second))
    #expect(reports.reports(about: address, of: name, now: second) == ReportedAddress(milliseconds: 23))
    #expect(note(.bad, at: 2 * second))
    #expect(reports.reports(about: address, of: name, now: 2 * second)?.badUntil == 602 * second)
  }

  @Test mutating func `its end is announced once`() {
    _ = note(.bad, at: 0)
    #expect(reports.nextEnd(now: 0) == 600 * second)
    #expect(reports.takeEnded(now: 599 * second) == [])
    #expect(reports.takeEnded(now: 600 * second) == [name])
    #expect(reports.takeEnded(now: 600 * second) == [])
    #expect(reports.nextEnd(now: 600 * second) == nil)
  }

  @Test mutating func `the table does not grow without limit`() {
    for number in 0..<5000 {
      _ = note(.bad, at: Int64(number), of: DomainName(text: "n\(number).example")!)
    }
    #expect(reports.count == AddressReports.capacity)
    #expect(reports.isBad(address, of: DomainName(text: "n4999.example")!, now: 5000))
    #expect(!reports.isBad(address, of: DomainName(text: "n0.example")!, now: 5000))
  }
}
