// PeerListener.swift -- what servers of tests start with: a socket that listens, and a thread.

import CEvent
import Glibc

/// A socket that listens on loopback, by default on a free port of 127.0.0.1.
///
/// - Parameter room: octets of the receive buffer of each connection, which then also takes small segments, so that little
///   fits into the other side's buffer; nil for the system's defaults.
package func listeningSocket(
  backlog: Int32, room: Int32? = nil, address number: UInt32 = 0x7F00_0001, port: UInt16 = 0
) -> (descriptor: Int32, port: UInt16) {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
  if var room {
    var segment: Int32 = 536
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_MAXSEG, &segment, socklen_t(MemoryLayout<Int32>.size))
  }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = number.bigEndian
  address.sin_port = port.bigEndian
  var length = socklen_t(MemoryLayout<sockaddr_in>.size)
  let port = withUnsafeMutablePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
      let bound = bind(descriptor, .init(__sockaddr__: generic), length)
      precondition(bound == 0 && listen(descriptor, backlog) == 0, "no port")
      getsockname(descriptor, .init(__sockaddr__: generic), &length)
    }
    return UInt16(bigEndian: pointer.pointee.sin_port)
  }
  return (descriptor, port)
}

/// A thread that ends with its body; to be joined.
package func startThread(_ body: @escaping @Sendable () -> Void) -> pthread_t {
  var thread = pthread_t()
  let job = Unmanaged.passRetained(ThreadJob(body)).toOpaque()
  precondition(pthread_create(&thread, nil, runJob, job) == 0, "no thread")
  return thread
}

private final class ThreadJob {
  let body: @Sendable () -> Void
  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

private func runJob(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  Unmanaged<ThreadJob>.fromOpaque(context!).takeRetainedValue().body()
  return nil
}
