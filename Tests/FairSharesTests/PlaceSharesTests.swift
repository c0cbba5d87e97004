// PlaceSharesTests.swift -- which place is reassigned to a new question.

import FairShares
import TestSupport
import Testing

@Suite struct PlaceSharesTests {
  private final class Holder {
    let number: Int
    init(_ number: Int) { self.number = number }
  }

  /// Places, used as the resolver does.
  private final class Scene {
    let shares: PlaceShares
    var now: Int64 = 0
    private(set) var places: [Int: PlaceShares.Place] = [:]
    private var holders: [Int: Holder] = [:]
    private(set) var lost: [Int] = []

    init(_ capacity: Int) { shares = PlaceShares(capacity: capacity) }

    /// Takes a place for a new question; returns false if it is refused.
    @discardableResult
    func come(_ number: Int, client: UInt64, domain: UInt64) -> Bool {
      let (client, domain) = (ClientKey(value: client), DomainKey(value: domain))
      if shares.isFull {
        guard let candidate = shares.candidate(for: client, domain, now: now) else { return false }
        guard let holder = candidate.place.holder as? Holder else { preconditionFailure("no holder of this test's") }
        lost.append(holder.number)
        go(holder.number)
      }
      let holder = Holder(number)
      holders[number] = holder
      places[number] = shares.enter(holder, client, domain, now: now)
      return true
    }

    func go(_ number: Int) {
      shares.leave(places.removeValue(forKey: number)!)
      holders[number] = nil
    }

    func join(_ number: Int, client: UInt64) { shares.join(places[number]!, ClientKey(value: client), now: now) }

    func count(_ client: UInt64) -> Int { shares.count(of: ClientKey(value: client)) }
  }

  @Test func `a single client may have all places, and no more`() {
    let scene = Scene(100)
    for number in 0..<100 { #expect(scene.come(number, client: 1, domain: 1)) }
    #expect(!scene.come(100, client: 1, domain: 1))
    #expect(scene.lost.isEmpty)
  }

  @Test func `a second client gets places at once, up to half, the oldest first`() {
    let scene = Scene(100)
    for number in 0..<100 { scene.come(number, client: 1, domain: UInt64(number)) }
    for number in 100..<150 { #expect(scene.come(number, client: 2, domain: 1)) }
    #expect(scene.lost.count == 50)
    #expect(scene.count(1) == 50)
    #expect(scene.count(2) == 50)
    #expect(!scene.come(200, client: 2, domain: 1))
    #expect(!scene.come(200, client: 1, domain: 1))
    // A third client gets places from both.
    for number in 200..<233 { #expect(scene.come(number, client: 3, domain: 1)) }
    #expect([scene.count(1), scene.count(2), scene.count(3)].sorted() == [33, 33, 34])
  }

  @Test func `a second domain of one client gets places at once`() {
    let scene = Scene(100)
    for number in 0..<10 { scene.come(number, client: 1, domain: UInt64(100 + number)) }
    for number in 10..<100 { scene.come(number, client: 1, domain: 7) }
    for number in 100..<120 { #expect(scene.come(number, client: 1, domain: UInt64(number + 100))) }
    #expect(scene.lost == Array(10..<30))
    #expect(!scene.come(200, client: 1, domain: 7))
  }

  @Test func `the client with the most places takes none from a client with fewer`() {
    let scene = Scene(100)
    for number in 0..<10 { scene.come(number, client: 2, domain: 1) }
    for number in 10..<100 { scene.come(number, client: 1, domain: UInt64(number)) }
    scene.now = 10_000_000_000
    for number in 100..<200 { scene.come(number, client: 1, domain: UInt64(number)) }
    #expect(scene.count(2) == 10)
  }

  @Test func `among equals, the oldest place of at least 200 ms is reassigned`() {
    let scene = Scene(10)
    for number in 0..<10 {
      scene.now += 1_000_000
      scene.come(number, client: UInt64(number + 1), domain: 1)
    }
    #expect(!scene.come(10, client: 20, domain: 1))
    scene.now = 201_000_000 - 1
    #expect(!scene.come(10, client: 20, domain: 1))
    scene.now = 201_000_000
    #expect(scene.come(10, client: 20, domain: 1))
    #expect(scene.lost == [0])
    #expect(!scene.come(11, client: 21, domain: 1))
  }

  @Test func `a shared place is reassigned for its age after the others, a second after it was first shared`() {
    let scene = Scene(2)
    scene.come(0, client: 1, domain: 1)
    scene.come(1, client: 2, domain: 1)
    scene.now = 100_000_000
    scene.join(0, client: 3)
    scene.now = 1_000_000_000
    #expect(scene.come(2, client: 4, domain: 1))
    #expect(scene.lost == [1])
    // Further clients do not restart its age.
    scene.join(0, client: 5)
    #expect(!scene.come(3, client: 6, domain: 1))
    scene.now = 1_100_000_000
    #expect(scene.come(3, client: 6, domain: 1))
    #expect(scene.lost == [1, 0])
  }

  @Test func `a client with two addresses cannot keep places forever by asking twice`() {
    let scene = Scene(100)
    for number in 0..<100 {
      scene.come(number, client: UInt64(number % 50 + 1), domain: 1)
      scene.join(number, client: UInt64(number % 50 + 2))
    }
    scene.now = 1_000_000_000
    for number in 100..<110 { #expect(scene.come(number, client: UInt64(number), domain: 2)) }
  }

  @Test func `the reason for reassigning a place is reported`() {
    let scene = Scene(4)
    for number in 0..<4 { scene.come(number, client: 1, domain: 1) }
    func reason(_ client: UInt64, _ domain: UInt64) -> PlaceShares.Reason? {
      scene.shares.candidate(for: ClientKey(value: client), DomainKey(value: domain), now: scene.now)?.reason
    }
    #expect(reason(2, 1) == .client)
    #expect(reason(1, 2) == .domain)
    #expect(reason(1, 1) == nil)
    scene.now = 200_000_000
    #expect(reason(1, 1) == .age)
  }

  @Test func `a place shared by a greedy client counts for the other one`() {
    let scene = Scene(100)
    for number in 0..<100 { scene.come(number, client: 1, domain: 1) }
    scene.join(0, client: 2)
    #expect(scene.count(2) == 1)
    #expect(scene.count(1) == 99)
    for number in 100..<130 { scene.come(number, client: 3, domain: 1) }
    #expect(scene.lost == Array(1...30))
    // Joining by the same client, or by one with as many places, changes nothing.
    scene.join(99, client: 1)
    #expect(scene.count(1) == 69)
  }

  @Test func `the daemon's own places are never reassigned`() {
    let scene = Scene(2)
    scene.come(0, client: 0, domain: 0)
    scene.come(1, client: 0, domain: 0)
    scene.now = 1_000_000_000
    #expect(!scene.come(2, client: 1, domain: 1))
    scene.go(0)
    #expect(scene.come(2, client: 1, domain: 1))
    #expect(scene.shares.count == 2)
  }

  @Test func `no client is refused in favour of one with more places, for random changes`() {
    var generator = SeededGenerator(seed: testSeed)
    for _ in 0..<10 {
      let scene = Scene(32)
      var model: [Int: UInt64] = [:]
      for number in 0..<3000 {
        scene.now += 1_000_000
        if Bool.random(using: &generator), let gone = model.keys.sorted().randomElement(using: &generator) {
          scene.go(gone)
          model[gone] = nil
        }
        // A few clients with many questions, and many with few.
        let client = UInt64.random(in: 1...12, using: &generator) / 4 + 1
        let domain = UInt64.random(in: 1...40, using: &generator)
        let most = Dictionary(grouping: model.values) { $0 }.values.map(\.count).max() ?? 0
        let has = model.values.count { $0 == client }
        let wasFull = model.count == 32
        let lost = scene.lost.count
        let isIn = scene.come(number, client: client, domain: domain)
        if scene.lost.count > lost { model[scene.lost.last!] = nil }
        if isIn { model[number] = client }
        #expect(isIn || (wasFull && most <= has + 1), "seed \(testSeed)")
        #expect(scene.shares.count == model.count, "seed \(testSeed)")
        for client in 1...4 as ClosedRange<UInt64> {
          #expect(scene.count(client) == model.values.count { $0 == client }, "seed \(testSeed)")
        }
      }
    }
  }

  @Test func `a new question takes a few steps when all places are occupied`() {
    let scene = Scene(1024)
    for number in 0..<1024 { scene.come(number, client: UInt64(number % 300 + 1), domain: UInt64(number)) }
    let before = scene.shares.steps
    for number in 1024..<11_024 {
      scene.now += 1_000_000
      scene.come(number, client: UInt64(number % 700 + 1), domain: UInt64(number % 97))
    }
    // Each changes four heaps of at most ten levels.
    #expect(scene.shares.steps - before < 10_000 * 40)
  }
}
