// HTTP2ServerTests.swift -- requests over HTTP/2 and their answers, and what a hostile client gets.

import EventLoop
import Glibc
import Streams
import TestSupport
import Testing

@testable import HTTPServer

/// Answers with the target; `/body` takes 100 octets, and `/later` waits for the test.
private final class Handler: HTTP2Handler {
  var later: [(exchange: HTTP2Exchange, number: UInt64)] = []
  var hosts: [String] = []

  func requested(_ request: HTTP2Request, _ exchange: HTTP2Exchange) -> Int? {
    let target = String(decoding: request.target, as: UTF8.self)
    hosts.append(String(decoding: request.host, as: UTF8.self))
    switch target {
    case "/body": return 100
    case "/later": later.append((exchange, exchange.number))
    default: answer(exchange, 200, target)
    }
    return nil
  }

  func received(_ body: UnsafeBufferPointer<UInt8>, _ exchange: HTTP2Exchange) {
    answer(exchange, 200, "\(body.count) octets: \(String(decoding: body, as: UTF8.self))")
  }

  func refused(_ excess: HTTP2Excess, _ exchange: HTTP2Exchange) {
    answer(exchange, excess == .head ? 431 : 413, "\(excess)")
  }

  func answer(_ exchange: HTTP2Exchange, _ status: Int, _ text: String) {
    Array(text.utf8).withUnsafeBufferPointer {
      exchange.answer(status: status, contentType: "text/plain", body: $0)
    }
  }
}

private final class Observer: HTTPConnectionObserver {
  var connection: HTTP2ServerConnection?
  var changes: [Bool] = []
  var hasEnded = false

  func connectionChanged(isIdle: Bool) { if changes.last != isIdle { changes.append(isIdle) } }
  func connectionEnded() { hasEnded = true }
}

/// A server with connections over pairs of sockets.
private final class Scene {
  let loop: EventLoop
  let handler = Handler()
  let server: HTTP2Server
  private var observers: [Observer] = []
  private let buffer: ReadBuffer

  /// - Parameter readSize: octets that the server reads at once.
  init(on loop: EventLoop, readSize: Int = 16_384) {
    self.loop = loop
    buffer = ReadBuffer(capacity: readSize)
    server = HTTP2Server(on: loop, handler: handler)
  }

  /// - Parameter room: octets that the kernel takes for a client that reads none; nil for the usual ones.
  func connect(patience: StreamPatience? = nil, room: Int32? = nil) async throws -> (HTTP2Peer, Observer) {
    var descriptors: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &descriptors) == 0)
    if var room { setsockopt(descriptors[0], SOL_SOCKET, SO_SNDBUF, &room, socklen_t(MemoryLayout<Int32>.size)) }
    _ = fcntl(descriptors[0], F_SETFL, O_NONBLOCK)
    let observer = Observer()
    observers.append(observer)
    let stream = ByteStream(descriptors[0], nil, as: .server, into: buffer, on: loop) { _ in }
    stream.patience = patience
    stream.report = { [server, unowned(unsafe) stream] report in
      if case .connected = report { observer.connection = server.serve(stream, observer: observer) }
    }
    #expect(await loop.until { observer.connection != nil })
    return (HTTP2Peer(descriptors[1]), observer)
  }

  /// Runs the loop until the peer has what a condition wants.
  func until(_ peer: HTTP2Peer, _ condition: () -> Bool) async -> Bool {
    await loop.until {
      peer.poll()
      return condition()
    }
  }
}

extension HTTP2Peer {
  fileprivate func text(_ stream: Int32) -> String { String(decoding: answers[stream]?.body ?? [], as: UTF8.self) }
}

@Suite struct `Requests over HTTP/2` {
  @Test func `each is answered on its stream, with the fields of an answer`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, observer) = try await scene.connect()
      for stream in [1, 3, 5] as [Int32] { peer.request(stream, "/\(stream)") }
      #expect(await scene.until(peer) { peer.answers.values.count { $0.isWhole } == 3 })
      for stream in [1, 3, 5] as [Int32] {
        let answer = try #require(peer.answers[stream])
        #expect(answer.status == "200" && peer.text(stream) == "/\(stream)")
        #expect(answer.fields["content-type"] == "text/plain" && answer.fields["content-length"] == "2")
        #expect(answer.fields["date"]?.hasSuffix(" GMT") == true && answer.fields.count == 4)
      }
      #expect(scene.handler.hosts == ["dns.test", "dns.test", "dns.test"])
      #expect(observer.changes.last == true)
    }
  }

  @Test func `an answer to HEAD has no body`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, _) = try await scene.connect()
      peer.request(1, "/some", method: "HEAD")
      #expect(await scene.until(peer) { peer.answers[1]?.isWhole == true })
      #expect(peer.answers[1]?.body == [] && peer.answers[1]?.fields["content-length"] == "5")
    }
  }

  @Test func `a body arrives whole, however it is cut, and one that is too long is refused`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, _) = try await scene.connect()
      peer.request(1, "/body", method: "POST", body: [])
      peer.send(1, 4, 3, HTTP2Peer.section(HTTP2Peer.fields("POST", "/body")))
      peer.send(1, 4, 5, HTTP2Peer.section(HTTP2Peer.fields("POST", "/body")))
      for octet in "abc".utf8 {
        peer.send(0, 0, 3, [octet])
        peer.send(0, 0, 5, [UInt8](repeating: 120, count: 40))
      }
      peer.send(0, 1, 3, [])
      #expect(await scene.until(peer) { peer.answers.values.count { $0.isWhole } == 3 })
      #expect(peer.text(1) == "0 octets: " && peer.text(3) == "3 octets: abc")
      #expect(peer.answers[5]?.status == "413" && peer.text(5) == "body")
    }
  }

  @Test func `bodies that are refused and go on do not take the room of others`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, _) = try await scene.connect()
      peer.send(1, 4, 1, HTTP2Peer.section(HTTP2Peer.fields("POST", "/refused")))
      // More than one window of the connection, in what a stream may send.
      for stream in stride(from: 3 as Int32, to: 23, by: 2) {
        peer.send(1, 4, stream, HTTP2Peer.section(HTTP2Peer.fields("POST", "/refused")))
        peer.send(0, 0, stream, [UInt8](repeating: 1, count: 15_000))
        #expect(await scene.until(peer) { peer.answers[stream]?.isWhole == true })
      }
      peer.request(101, "/body", method: "POST", body: [65])
      #expect(await scene.until(peer) { peer.answers[101]?.isWhole == true })
      #expect(peer.text(101) == "1 octets: A")
    }
  }

  @Test func `heads may come in pieces, while other connections send theirs`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (slow, _) = try await scene.connect()
      let (other, _) = try await scene.connect()
      let long = "/\(String(repeating: "s", count: 900))"
      let octets = HTTP2Peer.frame(1, 5, 1, HTTP2Peer.section(HTTP2Peer.fields("GET", long)))
      var stream: Int32 = -1
      for piece in stride(from: 0, to: octets.count, by: 97) {
        slow.send(Array(octets[piece..<min(piece + 97, octets.count)]))
        stream += 2
        let number = stream
        other.request(number, "/\(String(repeating: "o", count: 700))")
        #expect(await scene.until(other) { other.answers[number]?.isWhole == true })
        #expect(other.text(number).utf8.count == 701)
      }
      #expect(await scene.until(slow) { slow.answers[1]?.isWhole == true })
      #expect(slow.text(1) == long)
    }
  }

  @Test func `a head that gets no field between two of another connection stays its own`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (slow, _) = try await scene.connect()
      let (other, _) = try await scene.connect()
      let own = "/\(String(repeating: "s", count: 3_900))"
      let rest = HTTP2Peer.section([(":path", own)])
      slow.send(1, 1, 1, HTTP2Peer.section([(":method", "GET")]))
      for stream in [1, 3, 5] as [Int32] {
        other.request(stream, "/\(String(repeating: "o", count: 7_500))")
        #expect(await scene.until(other) { other.answers[stream]?.isWhole == true })
        // Two octets that complete no field.
        if stream == 1 { slow.send(9, 0, 1, Array(rest[..<2])) }
      }
      slow.send(9, 0, 1, Array(rest[2...]))
      slow.send(9, 4, 1, HTTP2Peer.section([(":scheme", "https"), (":authority", "dns.test")]))
      #expect(await scene.until(slow) { slow.answers[1]?.isWhole == true || slow.hasEnded })
      #expect(slow.text(1) == own)
    }
  }

  @Test func `a head that few octets stand for ends the connection`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, observer) = try await scene.connect()
      // A literal with indexing (RFC 7541 section 6.2.1), then its index many times.
      let value = HTTP2Peer.section([("x", String(repeating: "v", count: 3_900))])
      let bomb = HTTP2Peer.section(HTTP2Peer.fields("GET", "/")) + [0x40] + value.dropFirst()
      peer.send(1, 5, 1, bomb + [UInt8](repeating: 0xBE, count: 8_000))
      #expect(await scene.until(peer) { peer.hasEnded } && observer.hasEnded)
      #expect(scene.handler.hosts == [])
    }
  }

  @Test func `more fields or octets than are allowed are refused`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, _) = try await scene.connect()
      peer.request(1, "/", (0..<28).map { ("n\($0)", "v") })
      peer.request(3, "/", (0..<29).map { ("n\($0)", "v") })
      peer.request(5, "/", [("long", String(repeating: "v", count: 8100))])
      #expect(await scene.until(peer) { peer.answers.values.count { $0.isWhole } == 3 })
      #expect([1, 3, 5].map { peer.answers[$0]?.status } == ["200", "431", "431"])
    }
  }

  @Test func `answers may come later, in any order, and not for requests that are gone`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, observer) = try await scene.connect()
      for stream in [1, 3, 5] as [Int32] { peer.request(stream, "/later") }
      #expect(await scene.until(peer) { scene.handler.later.count == 3 })
      #expect(observer.connection?.waits == true)
      let later = scene.handler.later
      peer.send(3, 0, 3, [0, 0, 0, 8])
      #expect(await scene.until(peer) { !later[1].exchange.isPending })
      // The object may have another request by now.
      peer.request(7, "/later")
      #expect(await scene.until(peer) { scene.handler.later.count == 4 })
      #expect(scene.handler.later[3].exchange === later[1].exchange)
      #expect(scene.handler.later[3].number != later[1].number)
      for (index, text) in [(2, "third"), (0, "first"), (3, "fourth")] {
        scene.handler.answer(scene.handler.later[index].exchange, 200, text)
      }
      #expect(await scene.until(peer) { peer.answers.values.count { $0.isWhole } == 3 })
      #expect(peer.text(1) == "first" && peer.text(5) == "third" && peer.text(7) == "fourth")
      #expect(observer.connection?.waits == false)
    }
  }

  @Test func `a client without room for an answer gets it when it has`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, observer) = try await scene.connect()
      // SETTINGS_INITIAL_WINDOW_SIZE = 3.
      peer.send(4, 0, 0, [0, 4, 0, 0, 0, 3])
      peer.request(1, "/abcdef")
      #expect(await scene.until(peer) { peer.answers[1]?.body.count == 3 })
      #expect(observer.connection?.waits == false, "it is the client who has to do something")
      peer.send(8, 0, 1, [0, 0, 0, 100])
      #expect(await scene.until(peer) { peer.answers[1]?.isWhole == true })
      #expect(peer.text(1) == "/abcdef")
    }
  }

  @Test func `a request that is not whole does not hold its connection`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, observer) = try await scene.connect()
      peer.send(1, 4, 1, HTTP2Peer.section(HTTP2Peer.fields("POST", "/body")))
      peer.request(3, "/")
      #expect(await scene.until(peer) { peer.answers[3]?.isWhole == true })
      #expect(observer.connection?.waits == false && observer.changes.last == true)
      peer.endInput()
      #expect(await scene.until(peer) { peer.hasEnded } && observer.hasEnded)
    }
  }

  @Test func `a client that gives no room for answers cannot ask for ever`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, _) = try await scene.connect()
      peer.send(4, 0, 0, [0, 4, 0, 0, 0, 0])
      let target = "/\(String(repeating: "x", count: 7_900))"
      for index in 0..<50 as Range<Int32> { peer.request(1 + 2 * index, target) }
      #expect(await scene.until(peer) { peer.answers[99]?.resetCode == 7 })
      // 256 KiB of answers wait.
      #expect(peer.answers.values.count { $0.resetCode == nil } == 34)
      peer.send(4, 0, 0, [0, 4, 0, 0, 0xFF, 0xFF])
      peer.send(8, 0, 0, [0, 0x0F, 0xFF, 0xFF])
      #expect(await scene.until(peer) { peer.answers.values.count { $0.isWhole } == 34 })
      peer.request(201, "/again")
      #expect(await scene.until(peer) { peer.answers[201]?.isWhole == true })
    }
  }

  @Test func `a connection that is drained says goodbye, answers, and ends`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, observer) = try await scene.connect()
      peer.request(1, "/later")
      #expect(await scene.until(peer) { scene.handler.later.count == 1 })
      observer.connection?.drain()
      #expect(await scene.until(peer) { peer.frames.contains { $0.type == 7 } })
      #expect(!peer.hasEnded && !observer.hasEnded)
      scene.handler.answer(scene.handler.later[0].exchange, 200, "last")
      #expect(await scene.until(peer) { peer.hasEnded })
      #expect(peer.text(1) == "last" && !observer.hasEnded)
      // The server waits for the client's end, so that nothing unread resets the connection.
      peer.endInput()
      #expect(await scene.until(peer) { observer.hasEnded })
      let goodbye = try #require(peer.frames.first { $0.type == 7 })
      #expect(goodbye.payload == [0, 0, 0, 1, 0, 0, 0, 0])
    }
  }

  @Test func `a client that ends its direction still gets its answers`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, observer) = try await scene.connect()
      peer.request(1, "/later")
      peer.endInput()
      #expect(await scene.until(peer) { scene.handler.later.count == 1 })
      #expect(!observer.hasEnded)
      scene.handler.answer(scene.handler.later[0].exchange, 200, "last")
      #expect(await scene.until(peer) { peer.hasEnded })
      #expect(peer.text(1) == "last" && peer.answers[1]?.isWhole == true && observer.hasEnded)
    }
  }

  @Test func `a request that is pending when its connection ends gets no answer`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, observer) = try await scene.connect()
      peer.request(1, "/later")
      #expect(await scene.until(peer) { scene.handler.later.count == 1 })
      observer.connection?.close()
      #expect(observer.hasEnded && !scene.handler.later[0].exchange.isPending)
      scene.handler.answer(scene.handler.later[0].exchange, 200, "late")
      #expect(await scene.until(peer) { peer.hasEnded })
      #expect(peer.answers[1] == nil)
    }
  }
}

@Suite struct `A hostile client over HTTP/2` {
  @Test func `opens a hundred streams and no more`() throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, observer) = try await scene.connect()
      for index in 0..<100 as Range<Int32> { peer.request(1 + 2 * index, "/later") }
      #expect(await scene.until(peer) { scene.handler.later.count == 100 })
      peer.request(201, "/later")
      #expect(await scene.until(peer) { peer.answers[201]?.resetCode == 7 || peer.hasEnded })
      #expect(scene.handler.later.count == 100)
      _ = observer
    }
  }

  /// nghttp2 counts these itself, and has 64 at most.
  @Test(arguments: [4, 6] as [UInt8], [(60, false), (70, true)])
  func `has at most 64 acknowledgements waiting`(
    type: UInt8, flood: (count: Int, ends: Bool)
  ) throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      let (peer, observer) = try await scene.connect()
      // SETTINGS have no content here, PING eight octets.
      let payload = [UInt8](repeating: 0, count: type == 6 ? 8 : 0)
      peer.send((0..<flood.count).flatMap { _ in HTTP2Peer.frame(type, 0, 0, payload) })
      #expect(!peer.isCongested)
      if flood.ends {
        #expect(await loop.until { observer.hasEnded })
      } else {
        // One more SETTINGS came before these.
        let count = flood.count + (type == 4 ? 1 : 0)
        #expect(await scene.until(peer) { peer.frames.count { $0.type == type && $0.flags == 1 } == count })
        #expect(!observer.hasEnded)
      }
    }
  }

  /// A write of the server has 1,260 resets, so that the rest of them waits.
  @Test(arguments: [(2_000, false), (2_500, true)])
  func `has at most a thousand frames waiting that it does not read`(streams: Int, ends: Bool) throws {
    try onLoop { loop in
      let scene = Scene(on: loop, readSize: 65_536)
      let (peer, observer) = try await scene.connect(room: 4_096)
      peer.acknowledges = false
      for index in 0..<100 as Range<Int32> { peer.request(1 + 2 * index, "/later") }
      #expect(await scene.until(peer) { scene.handler.later.count == 100 })
      // Requests beyond a limit that it has not acknowledged are refused, each with a frame: GET, https and / by their
      // numbers in the table (RFC 7541 appendix A).
      peer.send((0..<streams).flatMap { HTTP2Peer.frame(1, 5, Int32(201 + 2 * $0), [0x82, 0x87, 0x84]) })
      #expect(!peer.isCongested)
      if ends {
        #expect(await loop.until { observer.hasEnded })
      } else {
        #expect(await scene.until(peer) { peer.answers.values.count { $0.resetCode == 7 } == streams })
        #expect(!observer.hasEnded)
      }
    }
  }

  enum Flood: CaseIterable {
    case resets
    case settings
    case pings
    case continuations
    case nonsense
  }

  @Test(arguments: Flood.allCases) func `is left by a server that it floods`(flood: Flood) throws {
    try onLoop { loop in
      let scene = Scene(on: loop)
      // A client that does not read is left by then.
      let patience = StreamPatience(handshake: .seconds(1), reading: .milliseconds(50))
      let (peer, observer) = try await scene.connect(patience: patience)
      #expect(await scene.until(peer) { peer.frames.count >= 2 })
      var stream: Int32 = -1
      var looks = 0
      switch flood {
      case .continuations: peer.send(1, 1, 1, HTTP2Peer.section([(":method", "GET")]))
      default: break
      }
      #expect(
        await loop.until {
          looks += 1
          guard !peer.isCongested else { return observer.hasEnded }
          for _ in 0..<20 {
            switch flood {
            case .resets:
              stream += 2
              peer.request(stream, "/later")
              peer.send(3, 0, stream, [0, 0, 0, 8])
            // The client reads no acknowledgement.
            case .settings: peer.send(4, 0, 0, [UInt8](repeating: 0, count: 0))
            case .pings: peer.send(6, 0, 0, [UInt8](repeating: 0, count: 8))
            case .continuations: peer.send(9, 0, 1, HTTP2Peer.section([("x", "y")]))
            case .nonsense: peer.send(Array("GET / HTTP/1.1\r\n\r\n".utf8))
            }
          }
          return observer.hasEnded
        })
      #expect(observer.hasEnded, "after \(looks) looks")
    }
  }
}
