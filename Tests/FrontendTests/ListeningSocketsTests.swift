// ListeningSocketsTests.swift -- the sockets of endpoints whose port the kernel chooses.

import EventLoop
import Foundation
import Listener
import Logging
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ListeningSocketsTests {
  @Test(.enabled(if: geteuid() == 0, "a network namespace needs root"))
  func `port 0 becomes a port that is free for UDP and for TCP`() async throws {
    let ports = try await withCheckedThrowingContinuation { continuation in
      // The namespace is the thread's own and ends with it.
      Thread { continuation.resume(with: Result { try ListeningSocketsTests.portsAmongFour() }) }.start()
    }
    #expect(ports == [40_003])
  }

  /// Listens where the kernel has four ports to choose from, of which three are taken for UDP.
  private static func portsAmongFour() throws -> [UInt16] {
    try #require(unshare(CLONE_NEWNET) == 0)
    try "40000 40003".write(toFile: "/proc/sys/net/ipv4/ip_local_port_range", atomically: false, encoding: .utf8)
    let any: [UInt8] = [0, 0, 0, 0]
    let taken = try (40_000...40_002).map { port in
      try UDPSocket(binding: SocketAddress(octets: any, port: UInt16(port))!)
    }
    let loop = try EventLoop()
    let table = TCPConnectionTable(limits: TCPLimits(connections: 1, perClient: 1, idle: .seconds(1)))
    let streams = ListeningSockets.Streams(loop: loop, table: table) { _, _ in }
    let sockets = try ListeningSockets(binding: [SocketAddress(octets: any, port: 0)!], streams, Logger(label: "test"))
    return withExtendedLifetime(taken) { sockets.addresses.map(\.address.port) }
  }
}
