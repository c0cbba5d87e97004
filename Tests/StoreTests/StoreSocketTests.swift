// StoreSocketTests.swift -- what a hostile store does below the protocol.

import Dispatch
import EventLoop
import Glibc
import TLSTestSupport
import TestSupport
import Testing

@testable import Store

@Suite struct `A hostile store's records` {
  private let folder = TemporaryFolder()

  @Test func `a store that asks for keys and reads nothing keeps the loop at rest`() throws {
    let certificates = try TestCertificates(in: folder)
    try certificates.make("store", for: "DNS:store.test")
    let context = TLSContext(certificate: text("store.pem"), key: text("store.key"))
    let settings = StoreTLS(name: "store.test", authorityFile: certificates.authority)
    let count = 2000
    try onLoop { loop in
      let (client, server) = try pair(room: 4096)
      let isReading = Gate()
      DispatchQueue.global().async {
        guard let stream = ByteStream(server, context) else { return }
        stream.prepare {
          for _ in 0..<count {
            stream.updateKey(asksBack: true)
            stream.write([0])
          }
        }
        isReading.wait()
        _ = stream.read(exactly: 1)
        close(server)
      }
      var octets = 0
      let socket = try StoreSocket(client, try StoreTLSContext(settings), on: loop) { report in
        if case .octets(let some) = report { octets += some.count }
      }
      // Nothing comes any more, since the store takes no answers.
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
      socket.write([0])
      socket.close()
    }
  }

  @Test(arguments: [(0x0303, 4_000), (0x0304, 30), (0x0304, 4_000)])
  func `messages without content hold the loop for no time, and many end the connection`(
    version: Int, count: Int
  ) throws {
    let certificates = try TestCertificates(in: folder)
    try certificates.make("store", for: "DNS:store.test")
    let context = TLSContext(certificate: text("store.pem"), key: text("store.key"), highest: version)
    let settings = StoreTLS(name: "store.test", authorityFile: certificates.authority)
    try onLoop { loop in
      let (client, server) = try pair(room: 1 << 20)
      DispatchQueue.global().async {
        guard let stream = ByteStream(server, context) else { return }
        stream.write([1])
        stream.writeEmptyRecords(count)
        stream.write([2])
        _ = stream.read(exactly: 1)
        close(server)
      }
      var octets: [UInt8] = []
      var hasEnded = false
      var why = ""
      let watch = TurnWatch()
      let socket = try StoreSocket(client, try StoreTLSContext(settings), on: loop) { report in
        switch report {
        case .octets(let some): octets += some
        case .ended(let fault): (hasEnded, why) = (true, "\(fault)")
        case .connected: watch.watch(loop)
        }
      }
      #expect(await loop.until { hasEnded || octets.count == 2 })
      #expect(hasEnded == (count > 64) && octets == (count > 64 ? [1] : [1, 2]), "\(why)")
      #expect(watch.longest < .milliseconds(10))
      socket.write([0])
      socket.close()
    }
  }

  private func text(_ name: String) -> String { String(decoding: folder.read(name) ?? [], as: UTF8.self) }
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
