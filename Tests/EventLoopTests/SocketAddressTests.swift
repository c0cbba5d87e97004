// SocketAddressTests.swift -- addresses between text, octets and the kernel's form.

import CEvent
import EventLoop
import Glibc
import Testing

@Suite struct `A socket address` {
  @Test(arguments: [
    "127.0.0.1:53", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:53", "[2001:db8::a]:8053", "[::]:0", "[fe80::1%lo]:53",
  ])
  func `a socket address is parsed from its text`(text: String) throws {
    let address = try #require(SocketAddress(text: text))
    #expect(address.description == text)
    var other = SocketAddress(octets: address.octets, port: address.port)!
    #expect((other == address) == (address.scope == 0))
    other.scope = address.scope
    #expect(other == address)
  }

  @Test(arguments: [
    "", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:53 ", "1.2.3:53", "01.2.3.4:53",
    "::1:53", "[::1]", "[::1]:x", "[127.0.0.1]:53", "[::1:53", "::1]:53", "localhost:53",
    "[fe80::1%no-such-interface]:53", "[fe80::1%]:53", "fe80::1%lo:53",
  ])
  func `a text that is not a socket address is refused`(text: String) {
    #expect(SocketAddress(text: text) == nil)
  }

  @Test func `a socket address has 4 or 16 octets`() {
    for count in 0...20 where count != 4 && count != 16 {
      #expect(SocketAddress(octets: Array(repeating: 1, count: count), port: 1) == nil)
    }
  }

  @Test func `socket addresses differ by family, octets and port`() throws {
    let texts =
      ["127.0.0.1:53", "127.0.0.1:54", "127.0.0.2:53", "[::1]:53", "[::ffff:127.0.0.1]:53"] + [
        "[fe80::1]:53", "[fe80::1%lo]:53",
      ]
    let addresses = texts.compactMap { SocketAddress(text: $0) }
    #expect(Set(addresses).count == texts.count)
    #expect(addresses[0] == SocketAddress(octets: [127, 0, 0, 1], port: 53))
  }

  @Test func `the kernel binds a socket address and returns it`() throws {
    let wanted = try #require(SocketAddress(text: "127.0.0.3:0"))
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    #expect(wanted.withSockaddr { bind(descriptor, .init(__sockaddr__: $0), $1) } == 0)
    var bound = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    _ = withUnsafeMutablePointer(to: &bound) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, .init(__sockaddr__: $0), &length)
      }
    }
    let named = SocketAddress(storage: bound, length: length)
    #expect(named.octets == wanted.octets)
    #expect(named.port != 0)
    #expect(named.family == AF_INET)
  }
}
