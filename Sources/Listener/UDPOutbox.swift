// UDPOutbox.swift -- sends late responses, those that missed their query's batch, together.

import CSocket

/// Collects responses and sends them with one system call. Used by one thread, which must call `flush`.
public final class UDPOutbox {
  private let outbox: OpaquePointer
  /// Responses that the kernel refused to send.
  public private(set) var refused: UInt64 = 0
  /// Whether no response was queued since the last `flush`.
  public private(set) var isEmpty = true

  /// Creates an empty outbox for responses of up to `responseSize` octets. Traps if memory is exhausted.
  public init(responseSize: Int) {
    guard let outbox = datagram_outbox_create(responseSize) else { fatalError("out of memory") }
    self.outbox = outbox
  }

  deinit { datagram_outbox_free(outbox) }

  /// Queues a copy of a response for a socket. If the outbox is full, sends the queued ones first.
  public func add(
    _ response: UnsafeBufferPointer<UInt8>, through descriptor: Int32, to peer: UnsafePointer<datagram_peer>
  ) {
    isEmpty = false
    refused &+= UInt64(datagram_outbox_add(outbox, descriptor, peer, response.baseAddress, response.count))
  }

  /// Sends the queued responses.
  public func flush() {
    isEmpty = true
    refused &+= UInt64(datagram_outbox_flush(outbox))
  }
}
