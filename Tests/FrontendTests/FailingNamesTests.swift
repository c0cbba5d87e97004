// FailingNamesTests.swift -- names that fail are counted with their last reason, and they are bounded.

import DNSWire
import EventLoop
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `Failing names` {
  private let names = FailingNames()

  private func fail(_ name: String, _ reason: String = "no answer in time", at seconds: Int64) {
    names.failed(
      DomainName(text: name)!, type: 1, reason: reason, now: BootInstant(nanoseconds: seconds * 1_000_000_000))
  }

  private func report(at seconds: Int64) -> [FailingName] {
    names.report(now: BootInstant(nanoseconds: seconds * 1_000_000_000))
  }

  @Test func `failing names are counted regardless of case, the latest first, with its latest reason`() {
    fail("A.example", at: 1)
    fail("b.example", at: 2)
    fail("a.EXAMPLE", "refused", at: 3)
    let seen = report(at: 10)
    #expect(seen.map(\.name.text) == ["a.example.", "b.example."] && seen.map(\.count) == [2, 1])
    #expect(seen[0].reason == "refused" && seen[0].age == .seconds(7) && seen[0].type == .a)
  }

  @Test func `the names that failed longest ago make room for others`() {
    for number in 0..<(3 * FailingNames.most) {
      fail("n\(number).example", at: Int64(number))
      fail("always.example", at: Int64(number))
      #expect(report(at: 0).count <= FailingNames.most)
    }
    let seen = report(at: 0)
    #expect(seen.contains { $0.name.text == "always.example." && $0.count == UInt64(3 * FailingNames.most) })
    #expect(seen.contains { $0.name.text == "n\(3 * FailingNames.most - 1).example." })
  }
}
