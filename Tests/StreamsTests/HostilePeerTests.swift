// HostilePeerTests.swift -- what a hostile peer does below the protocol.

import Dispatch
import EventLoop
import Glibc
import TLSTestSupport
import TestSupport
import Testing

@testable import Streams

@Suite struct `A hostile peer's records` {
  private let authority = TemporaryFile(Certificates.authority)

  @Test func `a peer that asks for keys and reads nothing keeps the loop at rest`() throws {
    let context = TLSContext(certificate: Certificates.server, key: Certificates.serverKey)
    let count = 200
    try onLoop { loop in
      let (client, server) = try pair(room: 4096)
      let isReading = Gate()
      DispatchQueue.global().async {
        guard let peer = PeerStream(server, context) else { return }
        peer.prepare {
          for _ in 0..<count {
            peer.updateKey(asksBack: true)
            peer.write([0])
          }
        }
        isReading.wait()
        _ = peer.read(exactly: 1)
        close(server)
      }
      var octets = 0
      let stream = try makeStream(client, on: loop) { report in
        if case .octets(let some) = report { octets += some.count }
      }
      // Nothing comes any more, since the peer takes no answers.
      var turns = 0
      var (last, still) = (0, 0)
      loop.everyTurn { turns += 1 }
      #expect(
        await loop.until {
          if octets != last || octets == 0 { (last, still, turns) = (octets, 0, 0) } else { still += 1 }
          return still == 100
        })
      #expect(octets < count)
      #expect(turns < 400)
      isReading.open()
      #expect(await loop.until { octets == count })
      stream.write([0])
      stream.close()
    }
  }

  @Test(arguments: [(0x0303, 4_000), (0x0304, 30), (0x0304, 4_000)])
  func `messages without content hold the loop for no time, and many end the connection`(
    version: Int, count: Int
  ) throws {
    let context = TLSContext(certificate: Certificates.server, key: Certificates.serverKey, highest: version)
    try onLoop { loop in
      let (client, server) = try pair(room: 1 << 20)
      DispatchQueue.global().async {
        guard let peer = PeerStream(server, context) else { return }
        peer.write([1])
        peer.writeEmptyRecords(count)
        peer.write([2])
        _ = peer.read(exactly: 1)
        close(server)
      }
      var octets: [UInt8] = []
      var hasEnded = false
      var why = ""
      let watch = TurnWatch()
      let stream = try makeStream(client, on: loop) { report in
        switch report {
        case .octets(let some): octets += some
        case .ended(let failure): (hasEnded, why) = (true, "\(failure)")
        case .connected: watch.watch(loop)
        case .readTurnEnded, .drained, .inputEnded: break
        }
      }
      #expect(await loop.until { hasEnded || octets.count == 2 })
      #expect(hasEnded == (count > 64) && octets == (count > 64 ? [1] : [1, 2]), "\(why)")
      #expect(watch.longest < .milliseconds(10))
      stream.write([0])
      stream.close()
    }
  }

  private func makeStream(
    _ descriptor: Int32, on loop: EventLoop, report: @escaping (ByteStream.Report) -> Void
  ) throws -> ByteStream {
    let client = try #require(TLSClient("dns.test", .load(extra: authority.path), resumes: true))
    let connection = try #require(client.connection(over: descriptor))
    return ByteStream(descriptor, connection, into: ReadBuffer(capacity: 16_384), on: loop, report: report)
  }
}

/// Two connected sockets, of which the first one holds few octets that the second one has not read.
private func pair(room: Int32) throws -> (Int32, Int32) {
  var descriptors: [Int32] = [0, 0]
  try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &descriptors) == 0)
  var room = room
  setsockopt(descriptors[0], SOL_SOCKET, SO_SNDBUF, &room, socklen_t(MemoryLayout<Int32>.size))
  _ = fcntl(descriptors[0], F_SETFL, O_NONBLOCK)
  return (descriptors[0], descriptors[1])
}
