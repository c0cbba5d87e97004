// ServerStreamTests.swift -- the server's end of a connection: both directions end apart from each other.

import Dispatch
import EventLoop
import Glibc
import TLSTestSupport
import TestSupport
import Testing

@testable import Streams

private let certificate = Array(Certificates.server.utf8)
private let key = Array(Certificates.serverKey.utf8)

/// What a stream has reported.
private final class Reports {
  var octets: [UInt8] = []
  var isConnected = false
  var inputEnds = 0
  var failure: StreamFailure?

  func add(_ report: ByteStream.Report) {
    switch report {
    case .connected: isConnected = true
    case .octets(let some): octets += some
    case .inputEnded: inputEnds += 1
    case .ended(let why): failure = why
    case .readTurnEnded, .drained: break
    }
  }
}

/// Two connected sockets; the first one does not block.
private func pair() throws -> (Int32, Int32) {
  var descriptors: [Int32] = [0, 0]
  try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &descriptors) == 0)
  _ = fcntl(descriptors[0], F_SETFL, O_NONBLOCK)
  return (descriptors[0], descriptors[1])
}

/// - Parameter loop: has the time for the life of ticket keys.
private func makeServer(_ protocols: [String] = [], on loop: any Loop = SimulatedLoop()) throws -> TLSServer {
  try #require(
    TLSServer(CertificatePair(certificates: certificate, key: key, name: nil), protocols: protocols, on: loop))
}

private func stream(
  _ descriptor: Int32, _ server: TLSServer? = nil, on loop: EventLoop, _ reports: Reports
) -> ByteStream {
  ByteStream(
    descriptor, server.map { $0.connection(over: descriptor)! }, as: .server, into: ReadBuffer(capacity: 16_384),
    on: loop
  ) { reports.add($0) }
}

@Suite struct `A server's stream` {
  private static let large = [UInt8](repeating: 7, count: 1_000_000)

  @Test(arguments: [(0x0303, true), (0x0303, false), (0x0304, true), (0x0304, false)])
  func `a client that ends its direction over TLS still gets the answers`(version: Int, notifies: Bool) throws {
    let server = try makeServer()
    try onLoop { loop in
      let (own, other) = try pair()
      let end = Outcome()
      DispatchQueue.global().async {
        guard let client = PeerClient(other, version: version) else { return }
        client.write([1, 2, 3])
        client.endInput(notifies: notifies)
        end.set(client.readToEnd())
      }
      let reports = Reports()
      let stream = stream(own, server, on: loop, reports)
      #expect(await loop.until { reports.inputEnds == 1 })
      #expect(reports.octets == [1, 2, 3] && reports.failure == nil)
      stream.write(`A server's stream`.large)
      stream.finish()
      #expect(await loop.until { end.value != nil })
      #expect(end.value?.octets == `A server's stream`.large && end.value?.isNotified == true)
      #expect(reports.inputEnds == 1)
      stream.close()
    }
  }

  @Test func `a client that ends its direction without TLS still gets the answers`() throws {
    try onLoop { loop in
      let (own, other) = try pair()
      defer { close(other) }
      let reports = Reports()
      let stream = stream(own, on: loop, reports)
      send(other, "abc", 3, 0)
      shutdown(other, Int32(SHUT_WR))
      #expect(await loop.until { reports.inputEnds == 1 })
      #expect(reports.octets == Array("abc".utf8))
      // An end of file is there in every turn.
      var turns = 0
      loop.everyTurn { turns += 1 }
      var looks = 0
      #expect(
        await loop.until {
          looks += 1
          return looks == 20
        })
      #expect(turns < 100)
      loop.everyTurn(nil)
      stream.write(`A server's stream`.large)
      stream.finish()
      var received = 0
      var block = [UInt8](repeating: 0, count: 65_536)
      #expect(
        await loop.until {
          while case let count = recv(other, &block, block.count, Int32(MSG_DONTWAIT)), count > 0 {
            received += count
          }
          return received == 1_000_000
        })
      #expect(recv(other, &block, block.count, 0) == 0 && reports.failure == nil)
      #expect(stream.sent == 1_000_000 && stream.unsent == 0)
      stream.close()
    }
  }

  @Test(arguments: ["dns.test", "other.test", nil])
  func `a name that the server does not accept ends the handshake`(name: String?) throws {
    let server = try makeServer()
    server.accepts = { $0 == "dns.test" }
    try onLoop { loop in
      let (own, other) = try pair()
      let reached = Outcome()
      DispatchQueue.global().async {
        let client = PeerClient(other, serverName: name)
        reached.set(([client == nil ? 0 : 1], false))
      }
      let reports = Reports()
      let stream = stream(own, server, on: loop, reports)
      #expect(await loop.until { reached.value != nil })
      #expect(reached.value?.octets == [name == "dns.test" ? 1 : 0])
      if name == "dns.test" {
        #expect(await loop.until { reports.isConnected } && stream.tls?.serverName == "dns.test")
      } else {
        #expect(await loop.until { reports.failure != nil } && !reports.isConnected)
      }
      stream.close()
    }
  }

  @Test(arguments: [0x0303, 0x0304])
  func `a session is resumed by its ticket until the keys are a day old`(version: Int) throws {
    let clock = SimulatedLoop()
    let server = try makeServer(on: clock)
    try onLoop { loop in
      var session: TLSSession?
      for (hours, isResumed) in [(0, false), (1, true), (12, true), (47, false)] {
        clock.advance(by: .seconds(3600 * hours))
        let (own, other) = try pair()
        let known = session
        let (end, next) = (Outcome(), Kept())
        DispatchQueue.global().async {
          guard let client = PeerClient(other, version: version, resuming: known) else { return }
          client.write([1])
          client.endInput(notifies: true)
          _ = client.readToEnd()
          next.session = client.session
          end.set(([client.isResumed ? 1 : 0], false))
        }
        let reports = Reports()
        let stream = stream(own, server, on: loop, reports)
        #expect(await loop.until { reports.inputEnds == 1 })
        #expect(stream.tls?.isResumed == isResumed, "after \(hours) h more")
        stream.write([2])
        stream.finish()
        #expect(await loop.until { end.value != nil })
        #expect(end.value?.octets == [isResumed ? 1 : 0])
        stream.close()
        session = next.session
      }
      // No client comes any more. The key of the last ticket ends nevertheless, and with it the timer.
      #expect(server.keys.nextEnd != nil)
      clock.advance(by: .seconds(24 * 3600))
      #expect(server.keys.nextEnd == nil && clock.timers.earliest == nil)
    }
  }

  @Test(arguments: [0x0303, 0x0304])
  func `a renewed certificate with another kind of key is served with its own key`(version: Int) throws {
    let folder = TemporaryFolder()
    let certificates = try TestCertificates(in: folder)
    func renewed(_ name: String, _ kind: String) throws -> CertificatePair {
      try certificates.make(name, for: "DNS:dns.test", key: kind)
      return try CertificatePair(
        certificates: #require(folder.read("\(name).pem")), key: #require(folder.read("\(name).key")), name: nil)
    }
    let server = try #require(try TLSServer(renewed("first", "ec"), protocols: [], on: SimulatedLoop()))
    try onLoop { loop in
      for (name, kind) in [("second", "rsa:2048"), ("third", "ec"), ("fourth", "rsa:2048")] {
        #expect(server.use(try renewed(name, kind)))
        let (own, other) = try pair()
        let subject = Outcome()
        // The handshake fails if the key is not that of the certificate.
        DispatchQueue.global().async {
          subject.set((Array((PeerClient(other, version: version)?.subject ?? "failed").utf8), true))
        }
        let reports = Reports()
        let stream = stream(own, server, on: loop, reports)
        #expect(await loop.until { subject.value != nil })
        #expect(subject.value?.octets == Array("/CN=\(name)".utf8))
        stream.close()
      }
    }
  }

  @Test func `a handshake that takes too long ends the stream`() throws {
    let server = try makeServer()
    try onLoop { loop in
      let (own, other) = try pair()
      defer { close(other) }
      let reports = Reports()
      let stream = stream(own, server, on: loop, reports)
      stream.patience = StreamPatience(handshake: .milliseconds(20), reading: .seconds(60))
      #expect(await loop.until { reports.failure != nil })
      #expect(reports.failure == .timeout && stream.isClosed && !reports.isConnected)
    }
  }

  @Test func `a peer that takes nothing of what waits is reset, and one that takes a little is not`() throws {
    try onLoop { loop in
      let (own, other) = try pair()
      defer { close(other) }
      let reports = Reports()
      let stream = stream(own, on: loop, reports)
      stream.patience = StreamPatience(handshake: .seconds(60), reading: .milliseconds(400))
      #expect(await loop.until { reports.isConnected })
      stream.write([UInt8](repeating: 7, count: 4_000_000))
      var block = [UInt8](repeating: 0, count: 65_536)
      let start = loop.now
      // It takes something for twice as long as the patience. The patience is longer than most stalls of a busy machine.
      #expect(
        await loop.until(every: .milliseconds(20)) {
          _ = recv(other, &block, block.count, Int32(MSG_DONTWAIT))
          return loop.now - start > .milliseconds(800)
        })
      #expect(reports.failure == nil && stream.unsent > 0)
      #expect(await loop.until { reports.failure != nil })
      #expect(reports.failure == .timeout && stream.isClosed)
    }
  }

  @Test func `after its own end, a stream still reads`() throws {
    try onLoop { loop in
      let (own, other) = try pair()
      defer { close(other) }
      let reports = Reports()
      let stream = stream(own, on: loop, reports)
      #expect(await loop.until { reports.isConnected })
      stream.finish()
      stream.write([1])
      var octet: UInt8 = 0
      #expect(recv(other, &octet, 1, 0) == 0)
      send(other, "abc", 3, 0)
      #expect(await loop.until { reports.octets.count == 3 })
      shutdown(other, Int32(SHUT_WR))
      #expect(await loop.until { reports.inputEnds == 1 })
      stream.close()
    }
  }

  @Test(arguments: [false, true]) func `a paused stream reads nothing until it goes on`(isTLS: Bool) throws {
    let server = try makeServer()
    try onLoop { loop in
      let (own, other) = try pair()
      DispatchQueue.global().async {
        guard isTLS else {
          send(other, `A server's stream`.large, 100_000, 0)
          return
        }
        guard let client = PeerClient(other) else { return }
        client.write(Array(`A server's stream`.large.prefix(100_000)))
        _ = client.readToEnd()
      }
      let reports = Reports()
      let stream = stream(own, isTLS ? server : nil, on: loop, reports)
      let add = stream.report
      stream.report = { report in
        add(report)
        if case .octets = report { stream.pause() }
      }
      var counts: [Int] = []
      while reports.octets.count < 100_000 {
        let before = reports.octets.count
        #expect(await loop.until { reports.octets.count > before })
        await loop.turn()
        counts.append(reports.octets.count - before)
        guard counts.count < 200 else { break }
        stream.resume()
      }
      #expect(reports.octets.count == 100_000 && counts.allSatisfy { $0 <= 16_384 })
      stream.close()
      if !isTLS { close(other) }
    }
  }

  @Test(arguments: [
    (["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"), (["http/1.1", "h2"], "h2"), ([], ""), (["h3", "h2"], "h2"),
    (["h3"], nil), (["h"], nil),
  ]) func `the server's preference decides on the protocol`(offer: [String], chosen: String?) throws {
    let server = try makeServer(["h2", "http/1.1"])
    try onLoop { loop in
      let (own, other) = try pair()
      let end = Outcome()
      DispatchQueue.global().async {
        let client = PeerClient(other, protocols: offer)
        end.set((Array((client?.chosenProtocol ?? "failed").utf8), true))
      }
      let reports = Reports()
      let stream = stream(own, server, on: loop, reports)
      #expect(await loop.until { end.value != nil && (reports.isConnected || reports.failure != nil) })
      #expect(end.value?.octets == Array((chosen ?? "failed").utf8))
      #expect(reports.isConnected == (chosen != nil))
      if let chosen { #expect(stream.tls?.chosenProtocol == chosen) }
      stream.close()
    }
  }

  @Test func `a client that sends records without content is cut off`() throws {
    let server = try makeServer()
    try onLoop { loop in
      let (own, other) = try pair()
      DispatchQueue.global().async {
        guard let client = PeerClient(other) else { return }
        client.write([1])
        client.updateKeys(4_000)
        client.write([2])
        _ = client.readToEnd()
      }
      let reports = Reports()
      let watch = TurnWatch()
      let stream = stream(own, server, on: loop, reports)
      #expect(await loop.until { reports.isConnected })
      watch.watch(loop)
      #expect(await loop.until { reports.inputEnds == 1 || reports.failure != nil || reports.octets.count == 2 })
      #expect(reports.octets == [1])
      #expect(watch.longest < .milliseconds(10))
      stream.close()
    }
  }
}

/// A session that a client on another thread has kept.
private final class Kept: @unchecked Sendable { var session: TLSSession? }

/// What a client on another thread has read.
private final class Outcome: @unchecked Sendable {
  private let lock = DispatchQueue(label: "outcome")
  private var stored: (octets: [UInt8], isNotified: Bool)?

  var value: (octets: [UInt8], isNotified: Bool)? { lock.sync { stored } }

  func set(_ value: (octets: [UInt8], isNotified: Bool)) { lock.sync { stored = value } }
}
