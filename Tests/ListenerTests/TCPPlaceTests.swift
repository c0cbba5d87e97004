// TCPPlaceTests.swift -- which connection is closed when all places are taken.

import EventLoop
import FairShares
import Glibc
import Listener
import TestSupport
import Testing

@Suite struct `Places for TCP connections` {
  @Test func `128 idle connections of 9 addresses block no client`() throws {
    let server = try StreamServer(.echo, limits: TCPLimits(connections: 128, perClient: 16, idle: .seconds(600)))
    let hostile = try (0..<128).map { try StreamClient(to: server.address, from: "127.0.0.\(2 + $0 % 9)") }
    #expect(server.until { $0.table.count == 128 })
    for host in 100..<120 {
      let client = try StreamClient(to: server.address, from: "127.0.0.\(host)")
      client.send(frame(numbered(host)))
      #expect(client.receive() == numbered(host))
    }
    // An occasional query on each does not keep the places either.
    for client in hostile { client.send(frame(numbered(1))) }
    for host in 120..<140 {
      let client = try StreamClient(to: server.address, from: "127.0.0.\(host)")
      client.send(frame(numbered(host)))
      #expect(client.receive() == numbered(host))
    }
    #expect(server.onLoop { $0.table.refused } == 0)
  }

  @Test func `a new connection replaces the longest idle one`() throws {
    let server = try StreamServer(.echo, limits: TCPLimits(connections: 3, perClient: 2, idle: .seconds(600)))
    let clients = try ["127.0.0.2", "127.0.0.3", "127.0.0.4"].map { try StreamClient(to: server.address, from: $0) }
    #expect(server.until { $0.table.count == 3 })
    clients[0].send(frame(numbered(1)))
    #expect(clients[0].receive() == numbered(1))
    let newcomer = try StreamClient(to: server.address, from: "127.0.0.5")
    #expect(clients[1].end() == .closed)
    for client in [clients[0], clients[2], newcomer] {
      client.send(frame(numbered(9)))
      #expect(client.receive() == numbered(9))
    }
    #expect(server.onLoop { [$0.table.displaced, $0.table.refused] } == [1, 0])
  }

  @Test func `a client at its limit loses its own longest idle connection`() throws {
    let server = try StreamServer(.echo, limits: TCPLimits(connections: 10, perClient: 2, idle: .seconds(600)))
    let other = try StreamClient(to: server.address, from: "127.0.0.2")
    #expect(server.until { $0.table.count == 1 })
    let clients = try (0..<3).map { _ in try StreamClient(to: server.address) }
    #expect(clients[0].end() == .closed)
    for client in [clients[1], clients[2], other] {
      client.send(frame(numbered(9)))
      #expect(client.receive() == numbered(9))
    }
  }

  @Test func `the client with the most connections loses one first, and busy connections go last`() throws {
    let server = try StreamServer(.hold, limits: TCPLimits(connections: 5, perClient: 4, idle: .seconds(600)))
    let shortages = Box<[String]>([])
    server.onLoop { server in
      server.table.onShortage = { shortages.value.append("\($0.isRefused) \($0.isOwnLimit) \($0.most.count)") }
    }
    let oldest = try StreamClient(to: server.address, from: "127.0.0.2")
    #expect(server.until { $0.table.count == 1 })
    let greedy = try (0..<4).map { _ in try StreamClient(to: server.address, from: "127.0.0.3") }
    for (held, client) in greedy.dropLast().enumerated() {
      client.send(frame(numbered(3)))
      // Queries that the server reads in one turn have no certain order.
      try #require(server.awaitHeld(held + 1))
    }
    let first = try StreamClient(to: server.address, from: "127.0.0.4")
    #expect(greedy[3].end() == .closed)
    first.send(frame(numbered(4)))
    oldest.send(frame(numbered(2)))
    try #require(server.awaitHeld(5))
    // All are busy: the client with three loses one to the client without any.
    let second = try StreamClient(to: server.address, from: "127.0.0.5")
    #expect(greedy[0].end() == .closed)
    second.send(frame(numbered(5)))
    try #require(server.awaitHeld(6))
    // With two it has only one more than the new client, which would then have as many.
    let third = try StreamClient(to: server.address, from: "127.0.0.5")
    #expect(third.end() != .timeout)
    #expect(server.onLoop { [$0.table.displaced, $0.table.refused] } == [2, 1])
    for held in 0..<6 {
      server.onLoop { server in
        let (connection, message) = server.held[held]
        if connection.isOpen { connection.answer(message) }
      }
    }
    for (client, number) in [(oldest, 2), (greedy[1], 3), (first, 4), (second, 5)] {
      #expect(client.receive() == numbered(number))
    }
    #expect(server.onLoop { _ in shortages.value } == ["false false 4", "false false 3", "true false 2"])
  }

  @Test func `the idle timeout shrinks from half full on, also for open connections`() throws {
    let server = try StreamServer(.echo, limits: TCPLimits(connections: 8, perClient: 8, idle: .seconds(10)))
    var clients = try (0..<4).map { _ in try StreamClient(to: server.address) }
    #expect(server.until { $0.table.count == 4 })
    #expect(server.onLoop { $0.table.idleTimeout } == .seconds(10))
    clients.append(try StreamClient(to: server.address))
    #expect(server.until { $0.table.count == 5 })
    #expect(server.onLoop { $0.table.idleTimeout } == .milliseconds(7_500))
    clients += try (0..<3).map { _ in try StreamClient(to: server.address) }
    #expect(server.until { $0.table.count == 8 })
    #expect(server.onLoop { $0.table.idleTimeout } == .seconds(1))
    // The first one is closed after a second, which ends the shortage.
    #expect(clients[0].end() == .closed)
    #expect(server.until { $0.table.count == 7 })
    #expect(server.onLoop { $0.table.idleTimeout } == .milliseconds(2_500))
  }

  @Test(arguments: [
    ("192.0.2.1:1", "192.0.2.1:2", true), ("192.0.2.1:1", "192.0.2.2:1", false),
    ("[2001:db8:0:1::1]:1", "[2001:db8:0:1:ffff::2]:1", true), ("[2001:db8:0:1::1]:1", "[2001:db8:0:ff::1]:1", true),
    ("[2001:db8:0:1::1]:1", "[2001:db8:0:100::1]:1", false), ("[::ffff:192.0.2.1]:1", "192.0.2.1:1", true),
    ("[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:1", false), ("[::1]:1", "0.0.0.0:1", false),
  ])
  func `a client is an IPv4 address or an IPv6 /56`(one: String, other: String, isSame: Bool) throws {
    let clients = try [one, other].map { ClientKey(try #require(SocketAddress(text: $0))) }
    #expect((clients[0] == clients[1]) == isSame)
  }

  @Test func `the connection to close is the one that a full search finds`() {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<20 {
      var (places, model) = (TCPPlaces(), Model())
      var now = BootInstant(nanoseconds: 0)
      for _ in 0..<400 {
        now = now + .milliseconds(Int.random(in: 1...400, using: &random))
        let key = client(Int.random(in: 1...6, using: &random))
        let some = model.places.keys.sorted().randomElement(using: &random)
        switch (Int.random(in: 0..<6, using: &random), some) {
        case (0...2, _), (_, nil):
          if model.places.count == 12 {
            let expected = model.placeOfAnother(key, now)
            #expect(places.placeOfAnother(key, now: now) == expected)
            guard let expected else { continue }
            places.remove(expected)
            model.places[expected] = nil
          }
          let place = places.add(key, now: now)
          #expect(model.places[place] == nil)
          model.places[place] = Model.Place(key: key, since: now, lastUse: now)
        case (3, let some?):
          places.use(some, now: now)
          model.places[some]?.lastUse = now
        case (4, let some?):
          let isIdle = Bool.random(using: &random)
          places.set(some, isIdle: isIdle, now: now)
          if model.places[some]?.isIdle != isIdle {
            model.places[some]?.isIdle = isIdle
            model.places[some]?.since = now
          }
        case (_, let some?):
          places.remove(some)
          model.places[some] = nil
        }
        #expect(places.count == model.places.count && places.count(of: key) == model.count(key))
        #expect(places.leastUsed?.place == model.places.min { $0.value.lastUse < $1.value.lastUse }?.key)
        #expect(places.placeOfItsOwn(key) == model.oldest { $0.key == key && $0.isIdle })
      }
    }
  }

  private func client(_ host: Int) -> ClientKey { ClientKey(SocketAddress(text: "127.0.0.\(host):1")!) }
}

/// The same by a full search.
private struct Model {
  struct Place {
    var key: ClientKey
    var isIdle = true
    var since: BootInstant
    var lastUse: BootInstant
  }

  var places: [Int: Place] = [:]

  func count(_ key: ClientKey) -> Int { places.values.count { $0.key == key } }

  func oldest(where isMeant: (Place) -> Bool) -> Int? {
    places.filter { isMeant($0.value) }.min { $0.value.since < $1.value.since }?.key
  }

  func placeOfAnother(_ key: ClientKey, _ now: BootInstant) -> Int? {
    let idle = places.values.filter(\.isIdle)
    let mostWithIdle = idle.map { count($0.key) }.max() ?? 0
    let victim = oldest { $0.isIdle && count($0.key) == mostWithIdle }
    if let victim, now - places[victim]!.since >= .seconds(1) { return victim }
    let most = places.values.map { count($0.key) }.max() ?? 0
    if most > count(key) + 1 {
      // Among several such clients, the one whose first place to close has been unchanged for longest.
      let owners = Set(places.values.map(\.key)).filter { count($0) == most }
      let first = owners.compactMap { owner in
        oldest { $0.key == owner && $0.isIdle } ?? oldest { $0.key == owner }
      }
      return first.min { places[$0]!.since < places[$1]!.since }
    }
    if let victim, mostWithIdle > count(key) { return victim }
    return oldest { $0.key == key && $0.isIdle }
  }
}
