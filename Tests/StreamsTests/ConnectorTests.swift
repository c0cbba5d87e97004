// ConnectorTests.swift -- how many of a server's addresses are tried.

import EventLoop
import Glibc
import TestSupport
import Testing

@testable import Streams

@Suite struct ConnectorTests {
  /// Whether a connector reaches an address that accepts, after `refusing` addresses that refuse.
  private func connects(past refusing: Int) throws -> Bool {
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(server) }
    let any = SocketAddress(octets: [127, 0, 0, 1], port: 0)!
    #expect(any.withSockaddr { bind(server, .init(__sockaddr__: $0), $1) } == 0 && listen(server, 1) == 0)
    let port = try #require(SocketAddress(boundTo: server)?.port)
    let loop = try EventLoop()
    let hosts = (0..<refusing).map { [127, 0, 1, UInt8($0 + 1)] } + [[127, 0, 0, 1]]
    var descriptor: Int32?
    let connector = Connector(
      to: hosts.compactMap { SocketAddress(octets: $0, port: port) }, userTimeout: .seconds(5), on: loop
    ) { result in
      descriptor = (try? result.get())?.descriptor
      loop.stop()
    }
    loop.schedule(after: .seconds(20)) { loop.stop() }
    loop.run()
    connector.cancel()
    if let descriptor { close(descriptor) }
    return descriptor != nil
  }

  @Test func `16 addresses of a server are tried, and no more`() throws {
    #expect(try connects(past: 15))
    #expect(try !connects(past: 16))
    // As many as fit into a message.
    #expect(try !connects(past: 200))
  }
}
