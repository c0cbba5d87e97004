// HTTPTransport.swift -- the protocol of a transport that carries requests to one server.

import EventLoop
import HTTPMessage

/// The outcome of a transfer.
public enum HTTPResult: Hashable, Sendable {
  /// The server responded, with any status.
  case response(HTTPResponse)
  /// There is no response.
  case failure(HTTPFailure)

  /// How often the request was put on the wire.
  public var timesSent: Int {
    switch self {
    case .response(let response): response.timesSent
    case .failure(let failure): failure.timesSent
    }
  }
}

/// A question that a transfer carries, as the client of HTTP sees it. Used on the loop of the transport.
public protocol TransferOwner: AnyObject {
  /// The client that asked; a client cannot take all connections while others wait. 0 is not limited.
  var clientShare: UInt64 { get }
  /// What the client asked about: the same among the transfers of one client.
  var domainShare: UInt64 { get }
  /// The transfer waits, since all connections are in use: the time until `gotConnection` is not the server's.
  func awaitsConnection()
  /// A transfer that waited has got a connection.
  func gotConnection()
  /// Whether the request may be put on the wire once more: the server may have received it, and bill it again.
  func mayRepeat() -> Bool
}

/// Carries requests to one server: `HTTPOrigin`, or a script in a test. Used on its loop.
public protocol HTTPTransport: AnyObject, Sendable {
  /// Sends a request and waits until the transfer ends, at the latest after `timeout`.
  nonisolated(nonsending) func send(
    _ request: HTTPRequest, for owner: (any TransferOwner)?, timeout: Duration
  ) async -> HTTPResult
  /// Opens a connection without a request: TCP, the proxy's tunnel, TLS, and the SETTINGS of HTTP/2. Connections that turn
  /// out to be dead are replaced, and their requests sent once more.
  ///
  /// - Returns: why that failed, at the latest after `timeout`; nil if the server is there.
  nonisolated(nonsending) func handshake(timeout: Duration) async -> HTTPFailure?
  /// When the last octet of HTTP arrived, or the last handshake succeeded.
  var heardAt: BootInstant { get }
  /// Whether there is a connection that carries requests.
  var isConnected: Bool { get }
  /// The addresses that took a connection and did not answer, as text.
  var silentAddresses: Set<String> { get }
  /// Makes later requests open new connections; transfers in flight continue on the old ones.
  func renewConnections()
  /// Fails the transfers in flight, and opens new connections for later ones: the server cannot be reached.
  func abandon(_ failure: HTTPFailure)
}

extension HTTPTransport {
  /// A transport without connections has none that is open.
  public var isConnected: Bool { false }

  /// A transport that has no addresses has no silent ones.
  public var silentAddresses: Set<String> { [] }

  /// Sends a request that is not about a client's question.
  public nonisolated(nonsending) func send(_ request: HTTPRequest, timeout: Duration) async -> HTTPResult {
    await send(request, for: nil, timeout: timeout)
  }
}
