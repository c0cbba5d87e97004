// BillTests.swift -- every request that is put on the wire is counted, however it ends, and no other.

import EventLoop
import Foundation
import Glibc
import HTTPMessage
import Synchronization
import TLSTestSupport
import TestSupport
import Testing

@testable import HTTPClient

/// What a server does with one request after another, by a seed.
private final class FaultyService: Sendable {
  let peer = HTTP2Peer(maxStreams: 32, resumes: false)
  private struct State {
    var random: SeededGenerator
    var requests = 0
    /// Whether several requests share a connection: what ends it would leave some of them unread.
    var isBurst = false
    var settled = 0
  }

  private let state: Mutex<State>
  private let breaksRules: Bool

  /// - Parameter breaksRules: whether it sends what HTTP/2 forbids. libcurl from 8 on lets the requests wait to their end then.
  init(seed: UInt64, breaksRules: Bool = true) {
    state = Mutex(State(random: SeededGenerator(seed: seed)))
    self.breaksRules = breaksRules
  }

  /// Requests that were read over HTTP/1.1.
  var requests: Int { state.withLock { $0.requests } }

  /// Requests of the burst that have ended, or get no response.
  var settled: Int { state.withLock { $0.settled } }

  func beginBurst() { state.withLock { ($0.isBurst, $0.settled) = (true, 0) } }

  func hasEnded() { state.withLock { $0.settled += 1 } }

  func endBurst() { state.withLock { $0.isBurst = false } }

  private func draw() -> (number: Int, isBurst: Bool) {
    state.withLock { state in
      state.requests += 1
      return (Int.random(in: 0..<100, using: &state.random), state.isBurst)
    }
  }

  private func stall() -> Reaction {
    state.withLock { $0.settled += 1 }
    return .stall
  }

  func reactOverHTTP1(_: ReceivedRequest) -> Reaction {
    let (number, isBurst) = draw()
    return switch number {
    case 0..<8: .sendAndClose("")
    case 8..<14: .sendAndReset("")
    case 14..<18: .sendAndClose(response("x", fields: "Connection: close\r\n"))
    case 18..<21: .sendAndReset("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nx")
    case 21..<24: .sendAndClose("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nx")
    case 24..<27: .sendAndClose("what?\r\n\r\n")
    case 27..<30: .send(response("", fields: "Location: /elsewhere\r\n", status: "302 Found"))
    case 30..<33: .send(response("no", status: "503 Service Unavailable"))
    case 33 where isBurst: stall()
    default: .send(response("x"))
    }
  }

  func reactOverHTTP2(_ request: ReceivedRequest) -> Reaction {
    let (number, isBurst) = draw()
    switch number {
    case 0..<8: return .acts([.reset(.refusedStream)])
    case 8..<11: return .acts([.reset(.enhanceYourCalm)])
    case 11..<14: return .acts([.cutOff("x", .none)])
    case 14..<17: return .acts([.respondWithFields(count: 5)])
    case 17..<20: return .acts([.hint, .respond("x")])
    case 20 where isBurst: return stall()
    case 21..<40 where isBurst: return .send("x")
    case 21..<25: return .acts([.goAway(last: max(request.stream, 2) - 2, .none)])
    case 25..<28: return .acts([.goAway(last: request.stream, .none), .respond("x")])
    case 28..<32: return .acts([.close])
    case 32..<36: return .acts([.resetAtEnd, .close])
    case 36..<40 where breaksRules: return .acts([.breakRules])
    default: return .send("x")
    }
  }
}

/// Carries connections to a server. What is sent on a connection that it holds is kept, and reaches the server at the end.
private final class HoldingNetwork: Sendable {
  /// A connection through the network.
  private final class Way: Sendable {
    let (client, server): (Int32, Int32)
    /// What the client has sent since it is held.
    private let kept = Mutex<[UInt8]?>(nil)

    init(_ client: Int32, _ server: Int32) { (self.client, self.server) = (client, server) }

    func hold() { kept.withLock { $0 = $0 ?? [] } }

    /// Carries what the client sends, until it ends.
    func carryRequests() {
      transfer(from: client) { octets in
        kept.withLock { kept in
          if kept == nil { send(server, octets) } else { kept!.append(contentsOf: octets) }
        }
      }
    }

    /// Carries what the server sends, until it ends.
    func carryResponses() {
      transfer(from: server) { send(client, $0) }
      shutdown(client, Int32(SHUT_WR))
    }

    /// Carries what is kept, and the client's end.
    func release() {
      kept.withLock { send(server, $0?[...] ?? []) }
      shutdown(server, Int32(SHUT_WR))
    }

    private func transfer(from source: Int32, _ take: (ArraySlice<UInt8>) -> Void) {
      var octets = [UInt8](repeating: 0, count: 1 << 14)
      while case let length = recv(source, &octets, octets.count, 0), length > 0 { take(octets[..<length]) }
    }

    private func send(_ descriptor: Int32, _ octets: ArraySlice<UInt8>) {
      var rest = octets
      while !rest.isEmpty {
        let length = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        guard length > 0 else { return }
        rest = rest.dropFirst(length)
      }
    }
  }

  let port: UInt16
  private let listener: Int32
  private let (requests, responses) = (DispatchGroup(), DispatchGroup())
  private let ways = Mutex<[Way]>([])

  init(before server: UInt16) {
    (listener, port) = listeningSocket(backlog: 16)
    Thread.detachNewThread { [self] in
      while case let client = accept(listener, .init(__sockaddr__: nil), nil), client >= 0 { carry(client, to: server) }
    }
  }

  /// Holds the connections that are open.
  func hold() {
    for way in ways.withLock({ $0 }) { way.hold() }
  }

  /// Lets the server have what was kept, when the client has closed all connections.
  func release() {
    requests.wait()
    for way in ways.withLock({ $0 }) { way.release() }
  }

  /// Ends when the server has closed all connections.
  func stop() {
    shutdown(listener, Int32(SHUT_RDWR))
    responses.wait()
    close(listener)
    for way in ways.withLock({ $0 }) {
      close(way.client)
      close(way.server)
    }
  }

  private func carry(_ client: Int32, to server: UInt16) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    let address = SocketAddress(octets: [127, 0, 0, 1], port: server)!
    precondition(address.withSockaddr { connect(descriptor, .init(__sockaddr__: $0), $1) } == 0)
    let way = Way(client, descriptor)
    ways.withLock { $0.append(way) }
    for (group, body) in [(requests, way.carryRequests), (responses, way.carryResponses)] {
      group.enter()
      Thread.detachNewThread {
        body()
        group.leave()
      }
    }
  }
}

@Suite struct `The count of requests` {
  private static let (alone, bursts, burst) = (400, 20, 30)

  /// - Parameter read: the number of requests that the server has read.
  private static func send(
    _ origin: HTTPOrigin, _ service: FaultyService, _ read: () -> Int
  ) async -> (results: Int, sent: Int) {
    var (results, sent) = (0, 0)
    for round in 0..<Self.bursts {
      for _ in 0..<Self.alone / Self.bursts {
        sent += await origin.get(timeout: longestStep).timesSent
        results += 1
      }
      guard round < Self.bursts else { break }
      for result in await sendTogether(origin, service) {
        sent += result.timesSent
        results += 1
      }
      guard await origin.loop.until(.seconds(200), { read() >= sent }) else {
        Issue.record("\(Stack.current), round \(round): \(sent) counted, \(read()) read")
        break
      }
    }
    return (results, sent)
  }

  /// Sends requests together. Those that the server leaves without a response are given up when all others have ended: what
  /// the server has not read by then would be lost with its connection.
  private static func sendTogether(_ origin: HTTPOrigin, _ service: FaultyService) async -> [HTTPResult] {
    service.beginBurst()
    defer { service.endBurst() }
    return await withTaskGroup(of: HTTPResult.self) { group in
      for _ in 0..<burst {
        group.addTask {
          let result = await origin.get()
          service.hasEnded()
          return result
        }
      }
      if !(await origin.loop.until(.seconds(200)) { service.settled >= burst }) {
        Issue.record("\(service.settled) of \(burst) requests have ended or get no response")
      }
      origin.loop.skip(.seconds(60))
      return await group.reduce(into: []) { $0.append($1) }
    }
  }

  @Test(arguments: 0..<10) func `equals what the server has read, over HTTP/1.1`(seed: Int) throws {
    let service = FaultyService(seed: UInt64(seed))
    let server = TestServer { service.reactOverHTTP1($0) }
    defer { server.stop() }
    let (results, sent) = try withOrigin(server) { await Self.send($0, service) { service.requests } }
    #expect(results == Self.alone + Self.bursts * Self.burst)
    #expect(sent - service.requests == 0, "\(sent) counted")
    #expect(sent > results)
  }

  @Test(.onBothStacks, arguments: 0..<10) func `equals what the server has read, over HTTP/2`(seed: Int) throws {
    let service = FaultyService(seed: UInt64(seed), breaksRules: Stack.current == .streams)
    let ((results, sent), _) = try withHTTP2(peer: service.peer) {
      service.reactOverHTTP2($0)
    } body: {
      await Self.send($0, service) { service.peer.requests }
    }
    #expect(results == Self.alone + Self.bursts * Self.burst)
    #expect(sent - service.peer.requests == 0, "\(sent) counted")
    #expect(sent > results)
  }

  /// Sends requests, of which those after `hold` stay in the network until they are given up.
  private static func send(_ origin: HTTPOrigin, through network: HoldingNetwork) async -> (answered: Int, sent: Int) {
    var (answered, sent) = (0, 0)
    for _ in 0..<10 {
      for _ in 0..<3 {
        let result = await origin.get()
        if result.response != nil { answered += 1 }
        sent += result.timesSent
      }
      network.hold()
      for result in await origin.burst(4, timeout: .milliseconds(100)) { sent += result.timesSent }
    }
    return (answered, sent)
  }

  @Test func `has what a network in between swallows as well, and exactly that, over HTTP/1.1`() throws {
    let requests = Atomic(0)
    let server = TestServer { _ in
      requests.add(1, ordering: .relaxed)
      return .send(response("x"))
    }
    defer { server.stop() }
    let network = HoldingNetwork(before: server.port)
    let (answered, sent) = try withOrigin(port: network.port) { await Self.send($0, through: network) }
    let arrived = requests.load(ordering: .relaxed)
    network.release()
    network.stop()
    #expect(answered == 30)
    #expect(sent == requests.load(ordering: .relaxed))
    #expect(arrived < sent)
  }

  @Test(.onBothStacks)
  func `has what a network in between swallows as well, and exactly that, over HTTP/2`() throws {
    let peer = HTTP2Peer()
    let server = TestServer(tls: true, http2: true, peer: peer) { _ in .send("x") }
    defer { server.stop() }
    let network = HoldingNetwork(before: server.port)
    let file = TemporaryFile(Certificates.authority)
    let (answered, sent) = try withOrigin(port: network.port, scheme: .https) { options in
      options.caFile = file.path
    } body: {
      await Self.send($0, through: network)
    }
    let arrived = peer.requests
    network.release()
    network.stop()
    #expect(answered >= 10)
    #expect(sent == peer.requests)
    #expect(arrived + 10 <= sent)
  }

  @Test func `a request is not sent once more than its owner lets it, over HTTP/1.1`() throws {
    for left in 0..<3 {
      let requests = Atomic(0)
      let server = TestServer { request in
        let number = requests.wrappingAdd(1, ordering: .relaxed).newValue
        return number <= 4 ? .send(response("x")) : .sendAndClose("")
      }
      defer { server.stop() }
      let result = try withOrigin(server) { origin in
        // Four connections that have carried a response.
        _ = await origin.burst(4)
        let owner = TestOwner(client: 1)
        owner.repeatsLeft = left
        return await origin.send(HTTPRequest(target: "/"), for: owner, timeout: longestStep)
      }
      #expect(result.failure?.kind == .reset)
      #expect(result.timesSent == 1 + left && requests.load(ordering: .relaxed) == 5 + left)
    }
  }

  @Test(.onBothStacks) func `a request is not sent once more than its owner lets it, over HTTP/2`() throws {
    for left in 0..<3 {
      let peer = HTTP2Peer()
      let (result, _) = try withHTTP2(peer: peer) { request in
        request.stream == 1 && request.connection == 0 ? .send("x") : .acts([.reset(.refusedStream)])
      } body: { origin in
        _ = await origin.get()
        let owner = TestOwner(client: 1)
        owner.repeatsLeft = left
        return await origin.send(HTTPRequest(target: "/"), for: owner, timeout: longestStep)
      }
      #expect(result.failure?.kind == .reset)
      #expect(result.timesSent == 1 + left && peer.requests == 2 + left)
    }
  }
}
