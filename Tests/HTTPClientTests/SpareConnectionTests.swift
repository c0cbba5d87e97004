// SpareConnectionTests.swift -- HTTP/1.1: connections that are open before a transfer needs them, and close when nothing does.

import EventLoop
import Glibc
import HTTPMessage
import TLSTestSupport
import TestSupport
import Testing

@testable import HTTPClient

@Suite struct `Connections that carry one transfer at a time` {
  @Test(arguments: [(0, 64, 0), (1, 64, 1), (2, 64, 3), (4, 64, 5), (5, 64, 7), (40, 64, 48), (60, 64, 64), (5, 5, 5)])
  func `are a quarter more than transfers, at most eight more`(transfers: Int, most: Int, expected: Int) {
    #expect(ConnectionGrowth.sequentialConnections(for: transfers, most: most) == expected)
  }

  @Test(arguments: [false, true]) func `the next transfer gets a connection that is open already`(tls: Bool) throws {
    let texts = try withHeld(tls: tls) { origin, held in
      let first = await origin.get().response?.text
      return await withTaskGroup(of: String?.self) { group in
        for _ in 0..<2 { group.addTask { await origin.get("/held").response?.text } }
        // Not the one that is spare while only the first of them has begun.
        await held.areAccepted(tls ? 4 : 3, in: origin)
        await held.areSpare(1, in: origin)
        // It takes the spare one, and another one is opened.
        group.addTask { await origin.get("/held").response?.text }
        await held.areAccepted(tls ? 5 : 4, in: origin)
        await held.areSpare(1, in: origin)
        held.gate.open(3)
        return await group.reduce(into: [first]) { $0.append($1) }
      }
    }
    // With TLS, connection 0 showed that the server lacks HTTP/2.
    let first = tls ? 1 : 0
    #expect(texts.first == "\(first)")
    #expect(Set(texts) == Set((first...first + 2).map { "\($0)" }))
    #expect(texts.count == 4)
  }

  @Test func `a transfer whose connection the host refuses gets the next one that is free`() throws {
    let texts = try withHeld { origin, held in
      _ = await origin.get()
      return await withTaskGroup(of: String?.self) { group in
        for _ in 0..<2 { group.addTask { await origin.get("/held").response?.text } }
        await held.areAccepted(3, in: origin)
        await held.areSpare(1, in: origin)
        held.server.refuse()
        group.addTask { await origin.get("/held").response?.text }
        await held.areSpare(0, in: origin)
        group.addTask { await origin.get().response?.text }
        _ = await origin.loop.until { origin.inFlight == 4 }
        await origin.loop.turn()
        held.gate.open(3)
        return await group.reduce(into: []) { $0.append($1) }
      }
    }
    #expect(texts.count == 4 && !texts.contains(nil))
  }

  @Test func `one transfer after the other needs no second connection`() throws {
    let (accepted, open) = try withHeld { origin, held in
      for _ in 0..<20 { _ = await origin.get() }
      return (held.server.accepted, origin.connectionCount)
    }
    #expect(accepted == 1 && open == 1)
  }

  @Test func `the maximum holds for those that are not used yet`() throws {
    let accepted = try withHeld {
      $0.maxConnections = 3
    } body: { origin, held in
      _ = await origin.get()
      return await withTaskGroup(of: Void.self) { group in
        for _ in 0..<8 { group.addTask { _ = await origin.get("/held") } }
        await held.areAccepted(3, in: origin)
        held.gate.open(8)
        await group.waitForAll()
        return held.server.accepted
      }
    }
    #expect(accepted == 3)
  }

  @Test func `one that the server closes is dropped`() throws {
    let (open, result) = try withHeld { origin, held in
      _ = await origin.get()
      return await withTaskGroup(of: HTTPResult?.self) { group in
        for _ in 0..<2 { group.addTask { await origin.get("/held") } }
        await held.areAccepted(3, in: origin)
        await held.areSpare(1, in: origin)
        held.server.closeUnused()
        _ = await origin.loop.until(every: .milliseconds(5)) { origin.connectionCount == 2 }
        let open = origin.connectionCount
        group.addTask { await origin.get("/held") }
        held.gate.open(3)
        await group.waitForAll()
        return (open, await origin.get())
      }
    }
    #expect(open == 2)
    #expect(result.response != nil)
  }

  @Test func `a transfer starts again on another one if the server closes it without a response`() throws {
    // The first request of the connection that was opened ahead.
    let react: @Sendable (ReceivedRequest) -> Reaction? = { $0.connection == 2 ? .sendAndClose("") : nil }
    let (results, accepted) = try withHeld(react: react) { origin, held in
      _ = await origin.get()
      return await withTaskGroup(of: HTTPResult.self) { group in
        for _ in 0..<2 { group.addTask { await origin.get("/held") } }
        await held.areSpare(1, in: origin)
        group.addTask { await origin.get("/last") }
        await held.areAccepted(4, in: origin)
        held.gate.open(2)
        let results = await group.reduce(into: []) { $0.append($1) }
        return (results, held.server.accepted)
      }
    }
    #expect(results.count { $0.response != nil } == 3)
    #expect(accepted >= 4)
  }

  @Test func `those that are not needed are closed, all but one`() throws {
    let (grown, left, after) = try withHeld {
      $0.surplusTime = .milliseconds(300)
    } body: { origin, held in
      _ = await origin.get()
      return await withTaskGroup(of: Void.self) { group in
        for _ in 0..<10 { group.addTask { _ = await origin.get("/held") } }
        await held.areAccepted(13, in: origin)
        let grown = origin.connectionCount
        held.gate.open(10)
        await group.waitForAll()
        _ = await origin.loop.until(every: .milliseconds(5)) { origin.connectionCount == 1 }
        return (grown, origin.connectionCount, await origin.burst(3))
      }
    }
    #expect(grown == 13)
    #expect(left == 1)
    #expect(after.count { $0.response?.text != nil } == 3)
  }
}

/// A server that holds requests for `/held` until its gate opens, and responds with the connection's number.
private struct Held: Sendable {
  let server: TestServer
  let gate: Gate

  func areAccepted(_ count: Int, in origin: HTTPOrigin) async {
    _ = await origin.loop.until(every: .milliseconds(2)) { server.accepted >= count }
  }

  func areSpare(_ count: Int, in origin: HTTPOrigin) async {
    _ = await origin.loop.until(every: .milliseconds(2)) { server.unused == count }
    // The client learns that a connection is open on the next turn of its loop.
    for _ in 0..<2 { await origin.loop.sleep(for: .zero) }
  }
}

private func withHeld<Value: Sendable>(
  tls: Bool = false, _ adjust: (inout HTTPClientOptions) -> Void = { _ in },
  react: @escaping @Sendable (ReceivedRequest) -> Reaction? = { _ in nil },
  body: @escaping (HTTPOrigin, Held) async -> Value
) throws -> Value {
  let gate = Gate()
  let server = TestServer(tls: tls) { request in
    if let reaction = react(request) { return reaction }
    if request.head.contains("/held") { gate.wait() }
    return .send(response("\(request.connection)"))
  }
  defer { server.stop() }
  let file = TemporaryFile(Certificates.authority)
  return try withOrigin(server, scheme: tls ? .https : .http) { options in
    options.caFile = tls ? file.path : ""
    adjust(&options)
  } body: { origin in
    await body(origin, Held(server: server, gate: gate))
  }
}
