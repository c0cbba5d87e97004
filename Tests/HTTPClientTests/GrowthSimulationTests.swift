// GrowthSimulationTests.swift -- how many connections there are over time, on the simulated loop: what waits, and how long.

import EventLoop
import TestSupport
import Testing

@testable import HTTPClient

/// A server that takes a time for each handshake and for each response, and a client that opens connections as the
/// carriers do.
private final class GrowthModel {
  enum Form {
    /// HTTP/2 with this number of streams on a connection: `HTTP2Carrier.grow`.
    case streams(Int)
    /// HTTP/1.1: a transfer opens the connection that it lacks, and `CurlCarrier.growAhead` those of the next ones.
    case sequential(ahead: Bool)
  }

  let loop = SimulatedLoop()
  private(set) var waits: [Duration] = []
  private(set) var ended: [BootInstant] = []
  private(set) var connections = 0
  private(set) var mostConnections = 0

  private let form: Form
  private let most: Int
  private let handshake: Duration
  private let service: Duration
  private var open = 0
  private var inFlight = 0
  private var waiting: [BootInstant] = []

  init(_ form: Form, most: Int = 64, handshake: Duration = .milliseconds(100), service: Duration = .milliseconds(300)) {
    self.form = form
    self.most = most
    self.handshake = handshake
    self.service = service
  }

  private var places: Int { if case .streams(let count) = form { open * count } else { open } }
  private var transfers: Int { inFlight + waiting.count }

  private var wanted: Int {
    switch form {
    // The first connection says how many streams the others will carry.
    case .streams where open == 0: min(1, transfers)
    case .streams(let count): ConnectionGrowth.connections(for: transfers, streams: count, most: most)
    case .sequential(ahead: true): ConnectionGrowth.sequentialConnections(for: transfers, most: most)
    case .sequential(ahead: false): min(transfers, most)
    }
  }

  func arrive(_ count: Int = 1) {
    waiting += Array(repeating: loop.now, count: count)
    turn()
  }

  private func turn() {
    while !waiting.isEmpty, inFlight < places {
      waits.append(loop.now - waiting.removeFirst())
      inFlight += 1
      loop.schedule(after: service) { [self] in
        inFlight -= 1
        ended.append(loop.now)
        turn()
      }
    }
    while connections < wanted {
      connections += 1
      mostConnections = max(mostConnections, connections)
      loop.schedule(after: handshake) { [self] in
        open += 1
        turn()
      }
    }
  }
}

@Suite struct `Growing connections` {
  @Test func `1,000 transfers at once over HTTP/2 are done within 2 s`() {
    let model = GrowthModel(.streams(100))
    let begin = model.loop.now
    model.arrive(1000)
    model.loop.advance(by: .seconds(10))
    #expect(model.ended.count == 1000)
    #expect(model.ended.max().map { $0 - begin <= .milliseconds(500) } == true)
    #expect(model.mostConnections == 14)
  }

  @Test func `200 transfers at once over HTTP/1.1 are done within 2 s`() {
    let model = GrowthModel(.sequential(ahead: true))
    let begin = model.loop.now
    model.arrive(200)
    model.loop.advance(by: .seconds(10))
    #expect(model.ended.count == 200)
    #expect(model.ended.max().map { $0 - begin < .seconds(2) } == true)
    #expect(model.mostConnections == 64)
  }

  /// Transfers at a rate that doubles in ten seconds, from 20 to 2,500 a second at the end.
  private func ramp(_ model: GrowthModel) {
    var rate = 20.0
    for _ in 0..<70 {
      for _ in 0..<Int(rate) {
        model.arrive()
        model.loop.advance(by: .nanoseconds(Int64(1e9 / rate)))
      }
      rate *= 1.0718
    }
  }

  @Test func `a load that doubles in ten seconds never waits for a stream, but at the start`() {
    let model = GrowthModel(.streams(100))
    ramp(model)
    let late = model.waits.count { $0 > .zero }
    // What came during the first handshake: 100 ms of 20 a second.
    #expect(late <= 3)
    #expect(model.waits.count > 20_000)
    #expect((8...11).contains(model.mostConnections))
  }

  @Test func `connections that are opened ahead save nearly all waits over HTTP/1.1`() {
    let (ahead, late) = (GrowthModel(.sequential(ahead: true)), GrowthModel(.sequential(ahead: false)))
    for model in [ahead, late] {
      var rate = 20.0
      while rate < 150 {
        for _ in 0..<Int(rate) {
          model.arrive()
          model.loop.advance(by: .nanoseconds(Int64(1e9 / rate)))
        }
        rate *= 1.0718
      }
    }
    let waits = [ahead, late].map { model in model.waits.dropFirst(10).count { $0 > .zero } }
    #expect(waits[0] == 0)
    #expect(waits[1] >= 30)
  }
}
