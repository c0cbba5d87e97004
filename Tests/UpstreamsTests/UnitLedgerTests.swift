// UnitLedgerTests.swift -- spending survives a restart; a damaged or unwritable file does no harm.

import EventLoop
import Files
import Glibc
import Persistence
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct UnitLedgerTests {
  private let loop = SimulatedLoop()
  private let folder = TemporaryFolder()
  private let problems = Notes()

  private func file(_ path: String? = nil) -> StateFile {
    StateFile(path: path ?? "\(folder.path)/units") { [problems] in problems.add($0) }
  }

  @Test(arguments: ["9223372036854775807", "-1", "2932897", "106751991167300"])
  func `a day that no calendar has is not believed`(day: String) {
    folder.write("httpdnsd units 1\na \(day) 100\nb 20000 100\n", to: "units")
    let ledger = UnitLedger(file(), on: loop)
    #expect(ledger.budget(of: "a", perDay: 100) == UnitBudget(perDay: 100))
    #expect(ledger.budget(of: "b", perDay: 100).spent == 100)
  }

  @Test func `the report of a provider bears every day that a file can have`() {
    for day in [0, 20_000, NumberRange.days.upperBound, .max] {
      let budget = UnitBudget(perDay: 100, day: day, spent: .max)
      #expect(NumberRange.days.contains(budget.day) && budget.spent == NumberRange.units.upperBound)
      folder.write("httpdnsd units 1\nfirst \(day) 100\n", to: "units")
      let ledger = UnitLedger(file(), on: loop)
      let scene = ProviderScene(
        [{ _ in (.failure(.init(.refused, "")), .zero) }], .tested(name: "first", unitsPerDay: 100), ledger: ledger)
      _ = scene.provider.report
    }
  }

  @Test func `units spent today survive a restart, yesterday's do not`() {
    let today: Int64 = 20_000 * 86_400
    var spent = UnitBudget(perDay: 100)
    spent.spend(70, unixTime: today, now: 0)
    let first = UnitLedger(file(), on: loop)
    first.add("a") { spent }
    first.didSpend()
    first.close()
    let second = UnitLedger(file(), on: loop)
    var budget = second.budget(of: "a", perDay: 70)
    let isOpenToday = budget.isOpen(unixTime: today + 10, now: 0)
    #expect(!isOpenToday)
    let isOpenTomorrow = budget.isOpen(unixTime: today + 86_400, now: 86_400_000_000_000)
    #expect(isOpenTomorrow)
    #expect(second.budget(of: "b", perDay: 70).spent == 0)
    var status = stat()
    #expect(stat("\(folder.path)/units", &status) == 0)
    #expect(status.st_mode & 0o777 == 0o600)
    #expect(problems.all.isEmpty)
  }

  @Test func `without anything new there is no write at the end`() {
    let ledger = UnitLedger(file(), on: loop)
    ledger.add("a") { UnitBudget(perDay: 1) }
    ledger.close()
    #expect(access("\(folder.path)/units", F_OK) != 0)
  }

  @Test(arguments: [
    "", "something else\na 1 2\n",
    "httpdnsd units 1\na\nb 1\nc x y\nd -1 5\ne 1 99999999999999999999\nf 1 9223372036854775807\n\u{0}\u{ff}",
  ])
  func `a damaged file is no reason to stop`(content: String) {
    file().saveNow(Array(content.utf8))
    let ledger = UnitLedger(file(), on: loop)
    for name in ["a", "b", "c", "d", "e", "f"] { #expect(ledger.budget(of: name, perDay: 5).spent == 0) }
  }

  @Test func `a state folder that is not writable is reported by name`() {
    file("\(folder.path)/no/such/folder").saveNow([1])
    #expect(problems.all.first?.contains("no/such/folder: No such file or directory") == true)
  }

  @Test func `the last of many contents is in the file at the end`() {
    let file = file()
    for number in 0..<200 { file.save(Array("\(number)".utf8)) }
    file.saveNow(Array("last".utf8))
    #expect(file.read(limit: 100) == Array("last".utf8))
  }
}
