// InheritedSocketTests.swift -- which passed descriptors can be served, and the errors for others.

import EventLoop
import Glibc
import ServiceManager
import Testing

@Suite struct `A descriptor that was handed over` {
  private func refusal(_ descriptor: Descriptor, _ name: String = "") -> String {
    do {
      _ = try descriptor.inherited(name)
      return "taken"
    } catch { return "\(error)" }
  }

  @Test(arguments: ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"])
  func `a bound UDP socket or listening TCP socket is accepted`(text: String) throws {
    let family = text.hasPrefix("[") ? AF_INET6 : AF_INET
    let datagram = try Descriptor(SOCK_DGRAM, family: family, at: text)
    let inherited = try datagram.inherited()
    #expect(inherited.kind == .datagram)
    #expect(inherited.address.port != 0)
    #expect(fcntl(datagram.number, F_GETFD) == FD_CLOEXEC)
    let stream = try Descriptor(SOCK_STREAM, family: family, at: text)
    listen(stream.number, 1)
    #expect(try stream.inherited().kind == .stream)
  }

  @Test func `any other descriptor is refused by its number and name`() throws {
    let file = try Descriptor(open("/dev/null", O_RDONLY))
    #expect(
      refusal(file, "dns.socket").hasPrefix("descriptor \(file.number) (dns.socket) from the service manager is not"))
    #expect(refusal(try Descriptor(SOCK_DGRAM, family: AF_UNIX)).contains("another address family"))
    #expect(refusal(try Descriptor(SOCK_STREAM, at: "127.0.0.1:0")).contains("does not listen"))
    #expect(refusal(try Descriptor(SOCK_DGRAM)).contains("is not bound"))
    let connected = try Descriptor(SOCK_DGRAM, at: "127.0.0.1:0")
    let peer = try #require(SocketAddress(text: "127.0.0.1:9"))
    _ = peer.withSockaddr { connect(connected.number, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }
    #expect(refusal(connected).contains("connected UDP socket"))
    let (pipes, ends) = (UnsafeMutablePointer<Int32>.allocate(capacity: 2), Int32(O_CLOEXEC))
    defer { pipes.deallocate() }
    try #require(pipe2(pipes, ends) == 0)
    let (one, other) = (try Descriptor(pipes[0]), try Descriptor(pipes[1]))
    #expect(refusal(one).contains("is not a socket"))
    withExtendedLifetime(other) {}
  }

  @Test func `a socket with another transport is refused`() throws {
    // UDP-Lite (RFC 3828) has datagram sockets too.
    guard let other = try? Descriptor(SOCK_DGRAM, transport: 136, at: "127.0.0.1:0") else { return }
    #expect(refusal(other).contains("another type"))
  }

  @Test func `a closed descriptor is refused`() throws {
    let variables = ["LISTEN_PID": "7", "LISTEN_FDS": "1"]
    var handed = try #require(ServiceEnvironment(process: 7) { variables[$0] }.descriptors.first)
    handed.number = 999_999
    #expect { _ = try InheritedSocket(handed) } throws: {
      "\($0)".contains("descriptor 999999 from the service manager is not open")
    }
  }

  @Test func `an address with only one transport causes a warning`() throws {
    // The port for UDP is free for TCP as well, unless another test has it.
    func pair() throws -> (datagram: Descriptor, stream: Descriptor)? {
      let datagram = try Descriptor(SOCK_DGRAM, at: "127.0.0.1:0")
      return (try? Descriptor(SOCK_STREAM, at: "\(try datagram.inherited().address)")).map { (datagram, $0) }
    }
    var found: (datagram: Descriptor, stream: Descriptor)?
    for _ in 0..<20 where found == nil { found = try pair() }
    let (datagram, same) = try #require(found)
    let alone = try datagram.inherited()
    #expect(
      InheritedSocket.warnings([alone]) == [
        "the service manager passed a UDP socket at \(alone.address) but no TCP socket"
      ])
    let stream = try Descriptor(SOCK_STREAM, at: "127.0.0.2:0")
    listen(stream.number, 1)
    let other = try stream.inherited()
    #expect(InheritedSocket.warnings([alone, other]).count == 2)
    listen(same.number, 1)
    #expect(InheritedSocket.warnings([alone, try same.inherited()]).isEmpty)
  }
}
