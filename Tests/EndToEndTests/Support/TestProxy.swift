// TestProxy.swift -- a proxy that speaks CONNECT (RFC 9110 section 9.3.6) and SOCKS5 (RFC 1928), and notes what it is asked.

import Foundation

/// A proxy on loopback that connects every client to one port of 127.0.0.1, for any host.
final class TestProxy: @unchecked Sendable {
  let address: Address
  private let listener: Socket
  private let condition = NSCondition()
  private var asked: [String] = []
  private var isStopping = false

  /// How long the listening thread waits before it looks whether it shall stop.
  private static let turn = Duration.milliseconds(50)

  init() throws {
    listener = try Socket(SOCK_STREAM, boundTo: Address("127.0.0.1", 0))
    address = listener.address
    listen(listener.descriptor, 64)
    let thread = Thread { [weak self] in
      while let self, self.serve() {}
    }
    thread.start()
  }

  deinit { stop() }

  /// Ends the listening thread.
  func stop() { condition.withLock { isStopping = true } }

  /// The requests so far: how it was asked, and for which host and port.
  var requests: [String] { condition.withLock { asked } }

  private func serve() -> Bool {
    if let client = listener.accept(within: TestProxy.turn) {
      let thread = Thread { [weak self] in self?.serve(client) }
      thread.start()
    }
    return condition.withLock { !isStopping }
  }

  private func serve(_ client: Socket) {
    guard let first = client.receive(exactly: 1) else { return note("nothing") }
    let port = first == [5] ? acceptSOCKS(client) : acceptConnect(client, first)
    guard let port, let server = try? Socket.stream(to: Address("127.0.0.1", port)) else { return }
    relay(client, server)
  }

  private func note(_ request: String) { condition.withLock { asked.append(request) } }

  /// - Returns: the port of the host that was named.
  private func acceptConnect(_ client: Socket, _ first: [UInt8]) -> UInt16? {
    var head = first
    while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
      guard let octet = client.receive(exactly: 1) else { return nil }
      head += octet
    }
    let line = String(decoding: head, as: UTF8.self).split(separator: " ").prefix(2)
    note(line.joined(separator: " "))
    guard line.first == "CONNECT", let place = Address(text: line[1]) else {
      client.send(Array("HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n".utf8))
      return nil
    }
    client.send(Array("HTTP/1.1 200 Connected\r\n\r\n".utf8))
    return place.port
  }

  /// - Returns: the port of the host that was named.
  private func acceptSOCKS(_ client: Socket) -> UInt16? {
    guard let count = client.receive(exactly: 1), let methods = client.receive(exactly: Int(count[0])) else {
      return nil
    }
    // A proxy that chooses GSS-API makes Kerberos look its name up.
    guard !methods.contains(1) else {
      note("SOCKS5 by GSS-API")
      return nil
    }
    client.send([5, 0])
    guard let request = client.receive(exactly: 4), request[1] == 1, let host = host(client, type: request[3]),
      let octets = client.receive(exactly: 2)
    else { return nil }
    let port = UInt16(octets[0]) << 8 | UInt16(octets[1])
    note("SOCKS5 \(host):\(port)")
    client.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    return port
  }

  private func host(_ client: Socket, type: UInt8) -> String? {
    switch type {
    case 1: return client.receive(exactly: 4).map { $0.map { "\($0)" }.joined(separator: ".") }
    case 3:
      guard let length = client.receive(exactly: 1), let name = client.receive(exactly: Int(length[0])) else {
        return nil
      }
      return "name \(String(decoding: name, as: UTF8.self))"
    default: return nil
    }
  }

  private func relay(_ client: Socket, _ server: Socket) {
    let sockets = [client, server]
    while condition.withLock({ !isStopping }) {
      var entries = sockets.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
      poll(&entries, 2, Deadline(TestProxy.turn).milliseconds)
      for index in 0..<2 where entries[index].revents != 0 {
        guard let octets = sockets[index].receive(within: .zero), !octets.isEmpty, sockets[1 - index].send(octets)
        else {
          return
        }
      }
    }
  }
}
