// UDPOutbox.swift -- responses that came later than their query's batch, sent together.

import CSocket

/// Gathers responses and sends them by one system call. One thread's own; whoever fills it flushes it.
public final class UDPOutbox {
  private let outbox: OpaquePointer
  /// Responses that the kernel refused to send.
  public private(set) var refused: UInt64 = 0

  /// An empty outbox for responses of up to `responseSize` octets.
  public init(responseSize: Int) {
    guard let outbox = datagram_outbox_create(responseSize) else { fatalError("out of memory") }
    self.outbox = outbox
  }

  deinit { datagram_outbox_free(outbox) }

  /// Queues a copy of a response that goes through that socket; sends the ones before it where there is no more room.
  public func add(
    _ response: UnsafeBufferPointer<UInt8>, through descriptor: Int32, to peer: UnsafePointer<datagram_peer>
  ) {
    refused &+= UInt64(datagram_outbox_add(outbox, descriptor, peer, response.baseAddress, response.count))
  }

  /// Sends what is queued.
  public func flush() { refused &+= UInt64(datagram_outbox_flush(outbox)) }
}
