// ResolverStaleLoadTests.swift -- an outage under load: few attempts, no slot lost, everybody answered in time.

import CSocket
import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `While upstream is down` {
  /// Asks 100 times a second for ten minutes.
  private func ask(_ stale: StaleScene, names: Int, clients: Int) {
    var number = 0
    for _ in 0..<60_000 {
      stale.scene.ask("host\(number % names).example.com", client: UInt16(1 + number % clients))
      stale.loop.advance(by: .milliseconds(10))
      number += 1
    }
    stale.loop.advance(by: .seconds(10))
  }

  /// A scene in which `names` names have expired and the provider does `step`.
  private func outage(_ policy: StalePolicy, names: Int, _ step: ScriptedStep) throws -> StaleScene {
    let stale = StaleScene(policy)
    for number in 0..<names { _ = try stale.scene.answer("host\(number).example.com") }
    stale.loop.advance(by: .seconds(61))
    stale.provider.remembers = false
    stale.providerNow { _ in step }
    stale.scene.onlyCount()
    return stale
  }

  private struct Load: CustomTestStringConvertible {
    var mode = Configuration.Stale.onFailure
    var names: Int
    var clients: Int
    var step: ScriptedStep
    var testDescription: String { "\(mode), \(names) names, \(clients) clients" }
  }

  private static let loads = [
    Load(names: 1, clients: 1, step: .silence), Load(names: 100, clients: 7, step: .silence),
    Load(names: 100, clients: 9, step: .failure()), Load(mode: .immediate, names: 100, clients: 9, step: .silence),
  ]

  @Test(arguments: loads)
  private func `an expired name causes one attempt in half a minute, however many ask`(load: Load) throws {
    let stale = try outage(.tested(load.mode), names: load.names, load.step)
    let before = stale.provider.count
    ask(stale, names: load.names, clients: load.clients)
    let attempts = stale.provider.count - before
    #expect(attempts <= 20 * load.names)
    // While the provider is silent, a question each half second is asked in spite of its wait.
    #expect(attempts >= min(15 * load.names, 900))
    let tally = stale.scene.tally
    #expect(tally.replies == tally.queries)
    #expect(tally.servFails == 0)
    #expect(stale.scene.queries.inUse == 0)
    #expect(stale.scene.inFlight == 0)
    #expect(stale.loop.timers.count == 0)
  }

  @Test func `no answer is late, and all of them are stale`() throws {
    let stale = StaleScene()
    try stale.keep()
    stale.providerNow { _ in .silence }
    let first = stale.scene.transactions.count
    for number in 0..<3000 {
      stale.scene.ask("www.example.com", client: UInt16(number % 9))
      stale.loop.advance(by: .milliseconds(20))
    }
    stale.loop.advance(by: .seconds(10))
    for number in first..<stale.scene.transactions.count {
      let reply = try stale.scene.reply(number)
      expectStale(reply.message)
      #expect(reply.after <= .milliseconds(1800))
    }
  }

  @Test func `a query handed over just before an answer causes no other attempt`() throws {
    let stale = StaleScene()
    try stale.keep()
    stale.providerNow { _ in .failure(after: .zero) }
    expectStale(try stale.scene.answer("www.example.com"))
    // The listener had looked before the attempt failed.
    let message = try Message.query(Question(name: stale.www, type: .a), id: 7, edns: EDNS()).compose()
    var query = Query()
    #expect(QueryReader.read(message.span, into: &query) == .query)
    let slot = stale.scene.queries.take()
    stale.scene.queries.fill(
      slot, query, of: message, over: .udp, route: 0, rule: 0, receivedAt: stale.loop.now.nanoseconds, descriptor: 0)
    let client = try #require(SocketAddress(octets: [10, 0, 0, 1], port: 5353))
    stale.scene.queries.peer(slot).pointee.address = client.storage
    stale.scene.queries.peer(slot).pointee.length = client.length
    stale.scene.queries.submit(slot)
    stale.scene.resolver.assumeIsolated { $0.takeQueries() }
    stale.loop.advance(by: .seconds(1))
    #expect(stale.provider.count == 2)
    #expect(stale.scene.queries.inUse == 0)
    #expect(stale.scene.strays == 1)
  }

  @Test func `a query for a refresh needs no slot to be answered`() throws {
    let stale = StaleScene(.tested(.immediate))
    try stale.keep()
    var taken: [Int] = []
    while case let slot = stale.scene.queries.take(), slot >= 0 { taken.append(slot) }
    expectStale(try stale.reply().message)
    #expect(stale.provider.count == 1)
    for slot in taken { stale.scene.queries.release(slot) }
    // That refresh is lost; the next one is due in half a minute.
    stale.loop.advance(by: .seconds(20))
    _ = try stale.reply()
    #expect(stale.provider.count == 2)
  }
}
