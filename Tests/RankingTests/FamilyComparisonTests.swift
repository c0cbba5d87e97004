// FamilyComparisonTests.swift -- when IPv6 counts as worse than IPv4.

import Testing

@testable import Ranking

private func works(_ milliseconds: UInt32) -> Measurement {
  Measurement(microseconds: milliseconds * 1_000, failures: 0, measuredAt: 0)
}

private func failed(_ times: Int) -> Measurement { Measurement(microseconds: nil, failures: times, measuredAt: 0) }

private func isWorse(_ ipv4: [[Measurement?]], _ ipv6: [[Measurement?]], wasWorse: Bool = false) -> Bool {
  FamilyComparison(threshold: 50_000).isIPv6Worse(ipv4: ipv4, ipv6: ipv6, wasWorse: wasWorse)
}

@Suite struct `A comparison of address families` {
  @Test func `the best addresses are compared, and the threshold decides`() {
    #expect(isWorse([[works(90)], [works(20)]], [[works(70)], [works(90)]]))
    #expect(!isWorse([[works(90)], [works(20)]], [[works(69)], [works(90)]]))
    #expect(!isWorse([[works(80)]], [[works(20)]]))
  }

  @Test func `a verdict stays until the difference is below half of the threshold`() {
    #expect(isWorse([[works(20)]], [[works(45)]], wasWorse: true))
    #expect(!isWorse([[works(20)]], [[works(44)]], wasWorse: true))
  }

  @Test func `every IPv6 address has to fail twice`() {
    #expect(isWorse([[works(20)], [nil]], [[failed(2)], [failed(3)]]))
    #expect(!isWorse([[works(20)]], [[failed(2)], [failed(1)]]))
    #expect(!isWorse([[failed(2)]], [[failed(2)]]))
  }

  @Test func `what is unknown counts for IPv6`() {
    #expect(!isWorse([[works(20)]], [[nil]]))
    #expect(!isWorse([[works(20)]], [[failed(2)], [nil]]))
    #expect(!isWorse([[nil]], [[works(500)]]))
    #expect(!isWorse([], [[works(500)]]))
    #expect(!isWorse([[works(20)]], []))
  }

  @Test func `only figures of the same kind are compared`() {
    #expect(!isWorse([[nil, works(20)]], [[works(500), nil]]))
    #expect(isWorse([[failed(1), works(20)]], [[failed(1), works(500)]]))
    // IPv6 is reached by the preferred kind, IPv4 is not.
    #expect(!isWorse([[failed(2), works(20)]], [[works(500), works(500)]]))
  }
}
