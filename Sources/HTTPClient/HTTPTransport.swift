// HTTPTransport.swift -- the protocol of a transport that carries requests to one server.

import HTTPMessage

/// The outcome of a transfer.
public enum HTTPResult: Hashable, Sendable {
  /// The server responded, with any status.
  case response(HTTPResponse)
  /// There is no response.
  case failure(HTTPFailure)
}

/// Carries requests to one server: `HTTPOrigin`, or a script in a test.
public protocol HTTPTransport: AnyObject, Sendable {
  /// Sends a request and waits until the transfer ends, at the latest after `timeout`.
  nonisolated(nonsending) func send(_ request: HTTPRequest, timeout: Duration) async -> HTTPResult
  /// Makes later requests open new connections; transfers in flight continue on the old ones.
  func renewConnections()
}
