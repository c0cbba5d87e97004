// SpareConnections.swift -- TCP connections that are open before a transfer needs one.
//
// libcurl opens a connection when a transfer finds none free, which costs that transfer a handshake. It takes a socket
// that is connected already instead (CURL_SOCKOPT_ALREADY_CONNECTED).

import EventLoop
import Glibc
import Streams

/// Connections without any transfer yet. Loop thread only.
final class SpareConnections {
  private final class Spare {
    let address: SocketAddress
    let begun: BootInstant
    /// Until it is connected.
    var connector: Connector?
    /// The connected socket, owned; nil before.
    var descriptor: Int32?
    /// Reports that the server has closed it: a server does not speak first.
    var event: LoopEvent?

    init(to address: SocketAddress, at begun: BootInstant) {
      self.address = address
      self.begun = begun
    }

    deinit {
      event = nil
      if let descriptor { Glibc.close(descriptor) }
    }
  }

  private let loop: EventLoop
  private let userTimeout: Duration
  private var spares: [Spare] = []
  /// None is opened before this time, because the last one failed.
  private var nextAttempt: BootInstant?

  /// The pause after one could not be opened.
  private static let pause = Duration.seconds(1)

  init(userTimeout: Duration, on loop: EventLoop) {
    self.userTimeout = userTimeout
    self.loop = loop
  }

  /// The number of connections that are open or being opened.
  var count: Int { spares.count }

  /// Begins to open connections.
  func open(_ number: Int, to address: SocketAddress) {
    if let nextAttempt, loop.now < nextAttempt { return }
    for _ in 0..<number {
      let spare = Spare(to: address, at: loop.now)
      spare.connector = Connector(to: [address], userTimeout: userTimeout, on: loop) {
        [weak self, weak spare] result in if let spare { self?.ended(spare, result) }
      }
      spares.append(spare)
    }
  }

  /// Takes a connection to an address, which the caller then owns; nil if none is open. The newest one, which the server
  /// has the least reason to close.
  func take(to address: SocketAddress) -> Int32? {
    guard let index = spares.lastIndex(where: { $0.descriptor != nil && $0.address == address }) else { return nil }
    let spare = spares.remove(at: index)
    spare.event = nil
    defer { spare.descriptor = nil }
    return spare.descriptor
  }

  func close(openFor time: Duration) {
    let now = loop.now
    spares.removeAll { now - $0.begun >= time }
  }

  func closeAll() { spares = [] }

  private func ended(_ spare: Spare, _ result: Result<Connector.Connected, ConnectFailure>) {
    spare.connector = nil
    switch result {
    case .success((let descriptor, _)):
      spare.descriptor = descriptor
      spare.event = LoopEvent(on: loop, descriptor: descriptor, .read) { [weak self, weak spare] _ in
        if let spare { self?.remove(spare) }
      }
    case .failure:
      nextAttempt = loop.now + Self.pause
      remove(spare)
    }
  }

  private func remove(_ spare: Spare) { spares.removeAll { $0 === spare } }
}
