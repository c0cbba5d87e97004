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
  /// A transfer carries it; nil once that has ended.
  func isCarried(by transfer: (any CarriedTransfer)?)
  /// A transfer that waited has got a connection: the time before was not the server's.
  func gotConnection()
  /// Whether the request may be put on the wire once more: the server may have received it, and bill it again.
  func mayRepeat() -> Bool
}

/// A transfer, as the question sees it that it carries. Used on the loop of the transport.
public protocol CarriedTransfer: AnyObject {
  /// Whether it waits, since all connections are in use, or those that its client may have.
  var isQueued: Bool { get }
  /// Another client waits for its owner's question as well.
  func isJoined(by client: UInt64)
  /// The clients of its owner have been answered: it ends at once if it waits, and if its place is needed.
  func isLate()
}

/// The clients of a question that several ask for.
public enum CarriedClients {
  /// As many as this, beside the first one, have a turn of their own while it waits for a connection.
  public static let most = 16
}

/// Carries requests to one server: `HTTPOrigin`, or a script in a test. Used on its loop.
public protocol HTTPTransport: AnyObject {
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
  /// The addresses that went behind others: they took a connection and did not answer, or took none. As text.
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
