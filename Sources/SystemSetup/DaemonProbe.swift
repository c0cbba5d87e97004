// DaemonProbe.swift -- asks a nameserver one question over UDP, to see whether anybody answers there.

import EventLoop
import Glibc

/// Whether httpdnsd answers.
public enum DaemonProbe {
  /// How long an answer may take that needs nobody else, in milliseconds.
  private static let patience: Int32 = 1_000
  private static let attempts = 2

  /// Asks for `localhost.` A, which is answered there and then (RFC 6761 section 6.3).
  public static func answers(_ nameserver: Nameserver) -> Bool {
    let host = nameserver.host.contains(":") ? "[\(nameserver.host)]" : nameserver.host
    guard let address = SocketAddress(text: "\(host):\(nameserver.port)") else { return false }
    return (0..<attempts).contains { _ in ask(address) }
  }

  private static func ask(_ address: SocketAddress) -> Bool {
    let descriptor = socket(address.family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    guard address.withSockaddr({ connect(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }) == 0 else {
      return false
    }
    let identity = UInt16.random(in: 0...UInt16.max)
    let header: [UInt8] = [UInt8(identity >> 8), UInt8(identity & 0xFF), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    let query = header + [9] + Array("localhost".utf8) + [0, 0, 1, 0, 1]
    guard send(descriptor, query, query.count, 0) == query.count else { return false }
    var event = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&event, 1, patience) == 1 else { return false }
    var response = [UInt8](repeating: 0, count: 512)
    let count = recv(descriptor, &response, response.count, 0)
    // The same ID, QR, and NOERROR.
    return count >= header.count && response[..<2] == query[..<2] && response[2] & 0x80 != 0 && response[3] & 0x0F == 0
  }
}
