// ScriptedServer.swift -- a plain DNS server on a free loopback port, on the test's own loop, that does what a script says.

import DNSWire
import EventLoop
import Glibc
import TestSupport

/// What a scripted server does with one query.
enum ScriptedAction {
  /// Sends these octets back.
  case reply([UInt8])
  /// Sends these octets from another socket.
  case replyFromElsewhere([UInt8])
  /// TCP: sends these portions, each in a turn of its own, length octets included.
  case portions([[UInt8]])
  /// TCP: closes the connection.
  case close
}

/// A UDP and TCP server at one port. On the loop's thread only.
final class ScriptedServer {
  let address: SocketAddress
  /// The queries that came over UDP and TCP.
  private(set) var datagrams: [Message] = []
  private(set) var streams: [Message] = []
  /// The ports that UDP queries came from.
  private(set) var ports: [UInt16] = []

  /// How many TCP connections are open.
  var connectionCount: Int { connections.count }

  private let loop: EventLoop
  private var udp: WatchedSocket?
  private var tcp: WatchedSocket?
  private var connections: [Int32: WatchedSocket] = [:]
  private var pending: [Int32: [UInt8]] = [:]
  private let onDatagram: (Message) -> [ScriptedAction]
  private let onStream: (Message) -> [ScriptedAction]

  init(
    on loop: EventLoop, onDatagram: @escaping (Message) -> [ScriptedAction] = { _ in [] },
    onStream: @escaping (Message) -> [ScriptedAction] = { _ in [.close] }
  ) {
    self.loop = loop
    self.onDatagram = onDatagram
    self.onStream = onStream
    let (datagrams, listener, address) = ScriptedServer.openPair()
    self.address = address
    udp = WatchedSocket(datagrams, on: loop) { [unowned self] in receiveDatagram(datagrams) }
    tcp = WatchedSocket(listener, on: loop) { [unowned self] in acceptConnection() }
  }

  /// Both sockets at one free port; the port that UDP gets may be taken for TCP, so this tries again.
  private static func openPair() -> (Int32, Int32, SocketAddress) {
    for _ in 0..<100 {
      let udp = bound(SOCK_DGRAM, to: SocketAddress(text: "127.0.0.1:0")!)!
      let address = name(of: udp)
      if let tcp = bound(SOCK_STREAM, to: address) {
        listen(tcp, 16)
        return (udp, tcp, address)
      }
      close(udp)
    }
    preconditionFailure("no free port")
  }

  static func bound(_ type: __socket_type, to address: SocketAddress) -> Int32? {
    let descriptor = socket(AF_INET, Int32(type.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if address.withSockaddr({ bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }) == 0 { return descriptor }
    close(descriptor)
    return nil
  }

  static func name(of descriptor: Int32) -> SocketAddress {
    var address = SocketAddress(text: "127.0.0.1:0")!
    withUnsafeMutablePointer(to: &address.storage) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        getsockname(descriptor, __SOCKADDR_ARG(__sockaddr__: pointer), &length)
      }
    }
    return address
  }

  private func receiveDatagram(_ udp: Int32) {
    var buffer = [UInt8](repeating: 0, count: 65_535)
    var peer = SocketAddress(text: "127.0.0.1:0")!
    let count = withUnsafeMutablePointer(to: &peer.storage) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return recvfrom(udp, &buffer, buffer.count, 0, __SOCKADDR_ARG(__sockaddr__: pointer), &length)
      }
    }
    guard count > 0, let query = try? Message.parse(Array(buffer[..<count])) else { return }
    datagrams.append(query)
    ports.append(peer.port)
    for action in onDatagram(query) {
      switch action {
      case .reply(let octets): send(octets, udp, to: peer)
      case .replyFromElsewhere(let octets):
        let other = ScriptedServer.bound(SOCK_DGRAM, to: SocketAddress(text: "127.0.0.1:0")!)!
        send(octets, other, to: peer)
        close(other)
      case .portions, .close: break
      }
    }
  }

  private func send(_ octets: [UInt8], _ descriptor: Int32, to peer: SocketAddress) {
    _ = peer.withSockaddr {
      sendto(descriptor, octets, octets.count, 0, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1)
    }
  }

  private func acceptConnection() {
    guard let descriptor = tcp?.accept() else { return }
    connections[descriptor] = WatchedSocket(descriptor, on: loop) { [unowned self] in receiveStream(descriptor) }
  }

  private func receiveStream(_ descriptor: Int32) {
    var buffer = [UInt8](repeating: 0, count: 65_535)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    guard count > 0 else { return drop(descriptor) }
    pending[descriptor, default: []] += buffer[..<count]
    guard let octets = pending[descriptor], octets.count > 2, octets.count >= 2 + Int(octets[0]) << 8 + Int(octets[1]),
      let query = try? Message.parse(Array(octets[2...]))
    else { return }
    pending[descriptor] = nil
    streams.append(query)
    for action in onStream(query) {
      switch action {
      case .reply(let octets): sendPortions([framed(octets)], descriptor)
      case .portions(let portions): sendPortions(portions[...], descriptor)
      case .close: drop(descriptor)
      case .replyFromElsewhere: break
      }
    }
  }

  /// Sends one portion after the other: what the socket takes, and the rest in a later turn.
  private func sendPortions(_ portions: ArraySlice<[UInt8]>, _ descriptor: Int32) {
    guard var first = portions.first, connections[descriptor] != nil else { return }
    first.removeFirst(max(0, Glibc.send(descriptor, first, first.count, Int32(MSG_NOSIGNAL))))
    let left = (first.isEmpty ? [] : [first]) + portions.dropFirst()
    loop.schedule(after: .milliseconds(1)) { [weak self] in self?.sendPortions(left[...], descriptor) }
  }

  private func drop(_ descriptor: Int32) {
    connections[descriptor] = nil
    pending[descriptor] = nil
  }
}

/// A message with its length before it (RFC 1035 section 4.2.2).
func framed(_ octets: [UInt8]) -> [UInt8] {
  [UInt8(truncatingIfNeeded: octets.count >> 8), UInt8(truncatingIfNeeded: octets.count)] + octets
}

/// Runs `body` as a task on a fresh loop, on the calling thread, until it has ended.
func onLoop<Value: Sendable>(_ body: @escaping (EventLoop) async -> Value) throws -> Value {
  let loop = try EventLoop()
  var value: Value?
  loop.startTask {
    value = await body(loop)
    loop.stop()
  }
  loop.run()
  return value!
}
