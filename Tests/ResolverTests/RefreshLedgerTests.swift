// RefreshLedgerTests.swift -- a restart does not reset the daily budget of refreshing.

import EventLoop
import Glibc
import Persistence
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Refresh
@testable import Resolver
@testable import Upstreams

@Suite struct RefreshLedgerTests {
  private let loop = SimulatedLoop()
  private let folder = TemporaryFolder()
  private let problems = Notes()

  private func ledger(_ path: String? = nil) -> RefreshLedger {
    RefreshLedger(StateFile(path: path ?? "\(folder.path)/refreshes") { [problems] in problems.add($0) }, on: loop)
  }

  /// How many transfers a budget of ten still has, with what the file says.
  private func left() -> Int {
    var budget = RefreshBudget(perMinute: 100, perDay: 10)
    ledger().restore(&budget)
    return (0..<20).filter { _ in budget.take(now: loop.now.nanoseconds) }.count
  }

  @Test func `the spending of the last day survives a restart, and expires after a day`() {
    var budget = RefreshBudget(perMinute: 100, perDay: 10)
    let first = ledger()
    first.save { [loop] in budget.spentOfDay(now: loop.now.nanoseconds) }
    for _ in 0..<7 {
      _ = budget.take(now: loop.now.nanoseconds)
      first.didSpend()
    }
    first.close()
    #expect(problems.all.isEmpty)
    #expect(left() == 3)
    loop.advance(by: .seconds(86_000))
    #expect(left() == 3)
    loop.advance(by: .seconds(1_100))
    #expect(left() == 10)
  }

  @Test func `new spending is saved after five minutes, and nothing without any`() {
    let idle = ledger()
    idle.close()
    #expect(access("\(folder.path)/refreshes", F_OK) != 0)
    let busy = ledger()
    busy.didSpend()
    loop.advance(by: .seconds(299))
    #expect(access("\(folder.path)/refreshes", F_OK) != 0)
    #expect(loop.timers.count == 1)
    busy.close()
    #expect(access("\(folder.path)/refreshes", F_OK) == 0)
    #expect(loop.timers.count == 0)
  }

  @Test(arguments: [
    "", "something else\n1 2\n", "httpdnsd refreshes 1\n",
    "httpdnsd refreshes 1\nx y\n-5 9\n5\n7 99999999999999999999\n",
    "httpdnsd refreshes 1\n9999999999 5 6\n9999999999 5 -1\n9999999999 5 x\n9999999999 5 1 1\n",
    "httpdnsd refreshes 1\n5 1000\n", "httpdnsd refreshes 1\n\u{0}\u{ff}",
    "httpdnsd refreshes 1\n-9223372036854775808 4\n", "httpdnsd refreshes 1\n9223372036854775807 4\n",
  ])
  func `a damaged or old file spends nothing`(_ text: String) throws {
    let file = try #require(fopen("\(folder.path)/refreshes", "w"))
    fputs(text, file)
    fclose(file)
    #expect(left() == 10)
  }

  @Test func `spending from the future counts as spent now`() throws {
    let file = try #require(fopen("\(folder.path)/refreshes", "w"))
    fputs("httpdnsd refreshes 1\n\(loop.wallTime + 1_000_000) 4\n", file)
    fclose(file)
    #expect(left() == 6)
  }

  @Test func `spending for the keep list does not count for other names`() throws {
    let file = try #require(fopen("\(folder.path)/refreshes", "w"))
    fputs("httpdnsd refreshes 1\n\(loop.wallTime - 9) 5 5\n", file)
    fclose(file)
    var budget = RefreshBudget(perMinute: 100, perDay: 10)
    budget.needOfKeepList = 100
    ledger().restore(&budget)
    let now = loop.now.nanoseconds
    #expect((0..<9).count { _ in budget.take(now: now) } == 5)
  }

  @Test func `a ledger that cannot be written is reported`() {
    let ledger = ledger("\(folder.path)/missing/refreshes")
    ledger.didSpend()
    ledger.close()
    #expect(problems.all.count == 1)
  }
}
