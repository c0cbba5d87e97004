// SubnetSharesTests.swift -- the limit of client subnets per name.

import FairShares
import Testing

/// Subnet shares by reference, because macros do not accept mutating calls.
private final class Shares {
  private var shares: SubnetShares

  init(names: Int = 1024) { shares = SubnetShares(names: names) }

  var count: Int { shares.count }

  func admits(name: UInt64, subnet: UInt64, most: Int, now: Int64) -> Bool {
    shares.admits(name: name, subnet: subnet, most: most, now: now)
  }
}

@Suite struct SubnetSharesTests {
  private let second: Int64 = 1_000_000_000

  @Test func `a name has a limited number of subnets, which stay admitted`() {
    let shares = Shares()
    for subnet in 0..<64 as Range<UInt64> { #expect(shares.admits(name: 1, subnet: subnet, most: 64, now: 0)) }
    for subnet in 64..<1000 as Range<UInt64> { #expect(!shares.admits(name: 1, subnet: subnet, most: 64, now: 0)) }
    for subnet in 0..<64 as Range<UInt64> { #expect(shares.admits(name: 1, subnet: subnet, most: 64, now: second)) }
    #expect(shares.admits(name: 2, subnet: 1000, most: 64, now: 0))
  }

  @Test func `an unused subnet expires after an hour`() {
    let shares = Shares()
    for subnet in 0..<4 as Range<UInt64> { #expect(shares.admits(name: 1, subnet: subnet, most: 4, now: 0)) }
    #expect(shares.admits(name: 1, subnet: 0, most: 4, now: 3000 * second))
    #expect(!shares.admits(name: 1, subnet: 9, most: 4, now: 3590 * second))
    #expect(shares.admits(name: 1, subnet: 9, most: 4, now: 3600 * second))
    #expect(shares.admits(name: 1, subnet: 0, most: 4, now: 3600 * second))
    for subnet in 1..<3 as Range<UInt64> {
      #expect(shares.admits(name: 1, subnet: subnet, most: 4, now: 3601 * second))
    }
    #expect(!shares.admits(name: 1, subnet: 3, most: 4, now: 3601 * second))
  }

  @Test func `a limit of 0 admits everything, and the number of names is limited`() {
    let shares = Shares(names: 100)
    for subnet in 0..<1000 as Range<UInt64> { #expect(shares.admits(name: 1, subnet: subnet, most: 0, now: 0)) }
    for name in 0..<10_000 as Range<UInt64> { _ = shares.admits(name: name, subnet: 1, most: 1, now: 0) }
    #expect(shares.count <= 200)
    // A subnet in constant use does not expire.
    for name in 0..<10_000 as Range<UInt64> {
      _ = shares.admits(name: name, subnet: 1, most: 1, now: 0)
      #expect(shares.admits(name: 77_777, subnet: 1, most: 1, now: 0))
      #expect(!shares.admits(name: 77_777, subnet: 2, most: 1, now: 0))
    }
  }
}
