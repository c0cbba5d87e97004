// WatchedSocket.swift -- a socket of a test's server: watched on the test's own loop, and closed with its owner.

import EventLoop
import Glibc

/// A socket that is watched for reading, and closed on deinit. On the loop's thread only.
public final class WatchedSocket {
  private let descriptor: Int32
  private var event: LoopEvent?

  /// Takes a socket over and calls `onReadable` whenever it can be read.
  public init(_ descriptor: Int32, on loop: EventLoop, onReadable: @escaping () -> Void) {
    self.descriptor = descriptor
    event = LoopEvent(on: loop, descriptor: descriptor, .read) { _ in onReadable() }
  }

  deinit {
    // In this order: if another process has the socket as well, the kernel goes on reporting one that was closed before
    // it left the loop, under a number that the next connection gets.
    event = nil
    close(descriptor)
  }

  /// Accepts a connection, non-blocking and closed on exec; nil if there is none.
  public func accept() -> Int32? {
    let flags = Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let connection = accept4(descriptor, .init(__sockaddr__: nil), nil, flags)
    return connection < 0 ? nil : connection
  }
}
