// Socket.swift -- a socket whose every wait is bounded.

import Foundation

/// An owned socket; no program that a test starts inherits it.
final class Socket: Sendable {
  let descriptor: Int32

  /// How long `receive` and `connect` wait at most.
  static let patience = Duration.seconds(10)

  private init(descriptor: Int32) { self.descriptor = descriptor }

  /// A socket of that type, bound where an address is given.
  ///
  /// - Parameter transparent: whether the address may be one that this machine does not have, for which it takes root.
  init(
    _ type: __socket_type, family: Int32 = AF_INET, boundTo address: Address? = nil, reusing: Bool = false,
    transparent: Bool = false
  ) throws {
    let flags = SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    descriptor = socket(address?.family ?? family, Int32(type.rawValue | flags), 0)
    guard descriptor >= 0 else { throw Failure("no socket: \(String(cString: strerror(errno)))") }
    if reusing {
      var one: Int32 = 1
      setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
    }
    if transparent {
      var one: Int32 = 1
      setsockopt(descriptor, Int32(IPPROTO_IP), IP_TRANSPARENT, &one, socklen_t(MemoryLayout<Int32>.size))
    }
    guard let address else { return }
    guard address.withSockaddr({ bind(descriptor, $0, $1) }) == 0 else {
      throw Failure("cannot bind \(address): \(String(cString: strerror(errno)))")
    }
  }

  deinit { close(descriptor) }

  /// Where the socket is bound.
  var address: Address {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    _ = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, __SOCKADDR_ARG(__sockaddr__: $0), &length)
      }
    }
    return Address(storage)
  }

  /// A datagram and a stream socket at one free port; the port that one gets may be taken for the other.
  static func pair() throws -> (udp: Socket, tcp: Socket) {
    var lastError: (any Error)?
    for _ in 0..<20 {
      let udp = try Socket(SOCK_DGRAM, boundTo: Address("127.0.0.1", 0))
      do { return (udp, try Socket(SOCK_STREAM, boundTo: udp.address, reusing: true)) } catch { lastError = error }
    }
    throw lastError!
  }

  /// A connected stream.
  static func stream(to address: Address, from host: String? = nil) throws -> Socket {
    let socket = try Socket(SOCK_STREAM, family: address.family, boundTo: host.map { Address($0, 0) })
    try socket.connect(to: address)
    return socket
  }

  /// A stream that is connected to a Unix socket.
  static func stream(toPath path: String) throws -> Socket {
    let socket = try Socket(SOCK_STREAM, family: AF_UNIX)
    guard at(path, { Glibc.connect(socket.descriptor, $0, $1) }) == 0 else {
      throw Failure("cannot connect to \(path): \(String(cString: strerror(errno)))")
    }
    return socket
  }

  /// A Unix socket with clients that are never accepted.
  static func listening(atPath path: String) throws -> Socket {
    let socket = try Socket(SOCK_STREAM, family: AF_UNIX)
    guard at(path, { bind(socket.descriptor, $0, $1) }) == 0, listen(socket.descriptor, 8) == 0 else {
      throw Failure("cannot listen at \(path): \(String(cString: strerror(errno)))")
    }
    return socket
  }

  private static func at(_ path: String, _ body: (__CONST_SOCKADDR_ARG, socklen_t) -> Int32) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body(__CONST_SOCKADDR_ARG(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }

  func connect(to address: Address) throws {
    let result = address.withSockaddr { Glibc.connect(descriptor, $0, $1) }
    guard result != 0 else { return }
    guard errno == EINPROGRESS, isReady(POLLOUT, Deadline(Socket.patience)) else {
      throw Failure("cannot connect to \(address): \(String(cString: strerror(errno)))")
    }
    var error: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length)
    guard error == 0 else { throw Failure("cannot connect to \(address): \(String(cString: strerror(error)))") }
  }

  /// Whether the socket becomes ready for `events` in time.
  func isReady(_ events: Int32, _ deadline: Deadline) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    while true {
      let count = poll(&entry, 1, deadline.milliseconds)
      if count < 0, errno == EINTR { continue }
      return count > 0
    }
  }

  /// Sends everything; false where the other side does not take it any more.
  @discardableResult
  func send(_ octets: [UInt8], to address: Address? = nil) -> Bool {
    var rest = octets[...]
    let deadline = Deadline(Socket.patience)
    repeat {
      let count = rest.withUnsafeBytes { buffer in
        guard let address else { return Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL)) }
        return address.withSockaddr { sendto(descriptor, buffer.baseAddress, buffer.count, 0, $0, $1) }
      }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno != EAGAIN || !isReady(POLLOUT, deadline) {
        return false
      }
    } while !rest.isEmpty
    return true
  }

  /// The next datagram, or what has come of a stream; empty at a stream's end, nil where nothing comes in time.
  func receive(within duration: Duration = patience) -> [UInt8]? { receiveFrom(within: duration)?.octets }

  /// The same, with the sender of a datagram.
  func receiveFrom(within duration: Duration = patience) -> (octets: [UInt8], sender: Address)? {
    guard isReady(POLLIN, Deadline(duration)) else { return nil }
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let octets = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
      count = withUnsafeMutablePointer(to: &storage) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          max(0, recvfrom(descriptor, buffer.baseAddress, 65_536, 0, __SOCKADDR_ARG(__sockaddr__: $0), &length))
        }
      }
    }
    return (octets, Address(storage))
  }

  /// Exactly that many octets of a stream; nil where it ends before or they do not come in time.
  func receive(exactly count: Int, within duration: Duration = patience) -> [UInt8]? {
    let deadline = Deadline(duration)
    var octets: [UInt8] = []
    while octets.count < count {
      guard isReady(POLLIN, deadline) else { return nil }
      let missing = count - octets.count
      let part = [UInt8](unsafeUninitializedCapacity: missing) { buffer, filled in
        filled = max(0, recv(descriptor, buffer.baseAddress, missing, 0))
      }
      guard !part.isEmpty else { return nil }
      octets += part
    }
    return octets
  }

  /// The next connection of a listening socket.
  func accept(within duration: Duration) -> Socket? {
    guard isReady(POLLIN, Deadline(duration)) else { return nil }
    let flags = Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let accepted = accept4(descriptor, __SOCKADDR_ARG(__sockaddr__: nil), nil, flags)
    return accepted < 0 ? nil : Socket(descriptor: accepted)
  }
}
