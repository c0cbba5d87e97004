// CurlSocket.swift -- a connection of libcurl's, its event on the loop, and the transfers that share it.

import CCurl
import EventLoop

/// One socket. Made when libcurl first wants to wait for it, dropped when libcurl closes it.
///
/// libcurl lets go of a connection after every transfer and takes it up again with the next: the event stays armed
/// meanwhile, and the kernel is told only when the interest really changes.
final class CurlSocket {
  let descriptor: Int32
  /// What libcurl waits for; empty while the connection rests.
  var wanted: Interest = []
  /// The transfers that use the connection.
  private(set) var transfers: [Transfer] = []
  /// Whether an HTTP/2 response came over it.
  var isMultiplexed = false
  /// The peer's address, once a transfer has told it.
  var remoteAddress: String?
  /// How many times in a row one transfer read for all and none came to its end.
  var fruitlessReads = 0

  private var event: LoopEvent?
  private var armed: Interest = []

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Makes the loop wait for what libcurl wants.
  func arm(on loop: EventLoop, handler: @escaping (Interest) -> Void) {
    guard wanted != armed, !wanted.isEmpty else { return }
    armed = wanted
    event = LoopEvent(on: loop, descriptor: descriptor, wanted, handler: handler)
  }

  /// Ends the wait, when something comes that nobody wants: the end of a resting connection, say.
  func disarm() {
    event = nil
    armed = []
  }

  /// Notes that a transfer uses this connection, and no other any more.
  func attach(_ transfer: Transfer) {
    guard transfer.socket !== self else { return }
    transfer.socket?.detach(transfer)
    transfer.socket = self
    transfer.socketPosition = transfers.count
    transfers.append(transfer)
  }

  /// Notes that a transfer has ended or gone to another connection.
  func detach(_ transfer: Transfer) {
    let last = transfers.removeLast()
    if last !== transfer {
      transfers[transfer.socketPosition] = last
      last.socketPosition = transfer.socketPosition
    }
    transfer.socket = nil
  }

  /// Drops the event and the transfers, before the descriptor is closed.
  func close() {
    disarm()
    while let transfer = transfers.last { detach(transfer) }
  }
}
