// AddressOrderTests.swift -- the four groups, the band and its two limits.

import Testing

@testable import Ranking

private func works(_ milliseconds: Double, rank: Int = 0, wasIn: Bool = false, reported: Bool = false)
  -> AddressStanding
{
  AddressStanding(
    condition: .works(rank: rank, microseconds: UInt32(milliseconds * 1000)), isReported: reported, wasInBand: wasIn)
}
private let unknown = AddressStanding(condition: .unknown)
private let failing = AddressStanding(condition: .failing)

@Suite struct `The order of addresses` {
  @Test func `the band is first, then the unknown, the slower by time, and the failing`() {
    let order = AddressOrder([failing, works(80), unknown, works(40), works(20), works(24), unknown])
    #expect(order.indices == [4, 5, 2, 6, 3, 1, 0])
    #expect(order.bandCount == 2)
    #expect(order.hasWorking)
  }

  @Test(arguments: [
    (10.0, 15.0, false, true), (10, 15.1, false, false), (100, 125, false, true), (100, 125.1, false, false),
    (10, 20, true, true), (10, 20.1, true, false), (100, 150, true, true), (100, 150.1, true, false),
  ])
  func `who is in the band stays longer than others may come in`(
    best: Double, other: Double, wasIn: Bool, isIn: Bool
  ) {
    let order = AddressOrder([works(other, wasIn: wasIn), works(best)])
    #expect(order.bandCount == (isIn ? 2 : 1))
    #expect(order.indices == (isIn ? [0, 1] : [1, 0]))
  }

  @Test func `an address that answers the preferred kind comes before a faster one that does not`() {
    let order = AddressOrder([works(1, rank: 1), works(200), works(2, rank: 1)])
    #expect(order.indices == [1, 0, 2])
    #expect(order.bandCount == 1)
  }

  @Test func `nothing known, or all failing: the order stays, and all take turns`() {
    for standings in [[unknown, unknown, unknown], [failing, failing, failing]] {
      let order = AddressOrder(standings)
      #expect(order.indices == [0, 1, 2])
      #expect(order.bandCount == 3)
      #expect(!order.hasWorking)
    }
  }

  @Test func `without a working one the unknown take turns before the failing`() {
    let order = AddressOrder([failing, unknown, unknown])
    #expect(order.indices == [1, 2, 0])
    #expect(order.bandCount == 2)
  }

  @Test func `a reported address is last, but the last good one cannot be reported away`() {
    #expect(AddressOrder([works(10, reported: true), works(90)]).indices == [1, 0])
    #expect(AddressOrder([failing, works(10, reported: true), works(90, reported: true)]).indices == [1, 2, 0])
    #expect(AddressOrder([AddressStanding(condition: .unknown, isReported: true), failing]).indices == [0, 1])
  }

  @Test func `an order is a permutation, and the same figures give the same order`() {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<2000 {
      let standings = (0..<Int.random(in: 1...12, using: &random)).map { _ in
        let condition: AddressStanding.Condition =
          switch Int.random(in: 0..<4, using: &random) {
          case 0: .unknown
          case 1: .failing
          default:
            .works(rank: Int.random(in: 0..<3, using: &random), microseconds: .random(in: 1...200_000, using: &random))
          }
        return AddressStanding(
          condition: condition, isReported: Bool.random(using: &random), wasInBand: Bool.random(using: &random))
      }
      let order = AddressOrder(standings)
      #expect(order.indices.sorted() == Array(standings.indices))
      #expect(order == AddressOrder(standings))
      #expect((1...standings.count).contains(order.bandCount))
      // A good address is never behind one that fails.
      if let first = order.indices.first, standings.contains(where: { $0.condition != .failing }) {
        #expect(standings[first].condition != .failing)
      }
    }
  }
}
