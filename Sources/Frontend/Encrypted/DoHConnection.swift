// DoHConnection.swift -- a client's connection for DNS over HTTPS: its place, its handshake, then HTTP/2 or HTTP/1.1.

import EventLoop
import HTTPServer
import Listener
import Streams

/// Holds what serves the connection, and its place in the table. Loop thread only.
final class DoHConnection: PlacedConnection, HTTPConnectionObserver {
  /// What the connections of one kind of listener share.
  struct Service {
    let loop: EventLoop
    let table: TCPConnectionTable
    let http1: HTTPServer
    let http2: HTTP2Server
    /// What the connections read into.
    let buffer: ReadBuffer
    let patience: StreamPatience
    /// Receives the outcome of each TLS handshake: whether it is complete.
    let shookHands: (TLSConnection, _ isComplete: Bool) -> Void
  }

  let client: SocketAddress
  /// Whether `X-Forwarded-For` names the client of each request.
  let isForwarder: Bool
  let isTLS: Bool
  /// The number of the token that was used last, in `TokenLabels`.
  var mark = 0
  private let service: Service
  private var state: State
  private var place = -1

  private enum State {
    case shakingHands(ByteStream)
    case served(any HTTPServedConnection)
    case ended
  }

  /// Takes over a socket that does not block.
  @discardableResult
  init(_ descriptor: Int32, _ client: SocketAddress, isForwarder: Bool, _ tls: TLSConnection?, _ service: Service) {
    self.client = client
    self.isForwarder = isForwarder
    self.service = service
    isTLS = tls != nil
    let stream = ByteStream(descriptor, tls, as: .server, into: service.buffer, on: service.loop) { _ in }
    state = .shakingHands(stream)
    stream.patience = service.patience
    stream.report = { [weak self] in self?.happened($0) }
    place = service.table.add(self, on: service.loop)
  }

  var waits: Bool {
    switch state {
    case .served(let connection): connection.waits
    case .shakingHands, .ended: false
    }
  }

  func close() {
    switch state {
    case .shakingHands(let stream):
      stream.close()
      connectionEnded()
    case .served(let connection): connection.close()
    case .ended: break
    }
  }

  func drain() {
    switch state {
    case .shakingHands: close()
    case .served(let connection): connection.drain()
    case .ended: break
    }
  }

  /// What happens before a protocol is chosen.
  private func happened(_ report: ByteStream.Report) {
    guard case .shakingHands(let stream) = state else { return }
    switch report {
    case .connected:
      if let tls = stream.tls { service.shookHands(tls, true) }
      serve(stream)
    case .ended:
      if let tls = stream.tls { service.shookHands(tls, false) }
      connectionEnded()
    case .octets, .readTurnEnded, .drained, .inputEnded: break
    }
  }

  private func serve(_ stream: ByteStream) {
    let served: (any HTTPServedConnection)? =
      stream.tls?.chosenProtocol == "h2"
      ? service.http2.serve(stream, observer: self) : service.http1.serve(stream, from: client, observer: self)
    guard let served else { return connectionEnded() }
    state = .served(served)
  }

  func connectionChanged(isIdle: Bool) {
    guard place >= 0 else { return }
    service.table.use(place)
    service.table.set(place, isIdle: isIdle)
  }

  func connectionEnded() {
    guard place >= 0 else { return }
    let old = state
    state = .ended
    service.table.remove(place)
    place = -1
    withExtendedLifetime(old) {}
  }
}
