// ListFetching.swift -- the protocol of what fetches a list: HTTP, or a script in a test.

/// Asks for the text of a list, unless it is the one that is used.
public struct ListRequest: Sendable {
  public let source: ListSource
  /// Of the text that is used now; nil without one, or if the server gave none.
  public let entityTag: String?
  public let lastModified: String?
}

/// What has become of a request.
public enum ListReply: Sendable {
  /// All of the text has come.
  case complete(entityTag: String?, lastModified: String?)
  /// The text that is used now is the server's.
  case unchanged
  /// - Parameter retryAfter: when the server wants the next request at the earliest.
  case fault(ListFault, retryAfter: Duration?)
}

/// Fetches the texts of lists, one at a time. Resolver's loop only.
public protocol ListFetching: AnyObject {
  /// Sends a request and follows redirects. Ends in bounded time.
  ///
  /// - Parameter take: gets the text piece by piece, on any thread; false ends the transfer.
  nonisolated(nonsending) func fetch(
    _ request: ListRequest, take: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool
  ) async -> ListReply
  /// Ends the request in flight, if there is one.
  func cancel()
}
