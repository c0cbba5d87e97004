// StoreLink.swift -- what users of a store see of it; tests put a scripted one in its place.

/// Why a command has no reply that can be used.
public enum StoreFailure: Error, Hashable, Sendable {
  /// The store is not connected, or not used because it failed; nothing was sent, or nobody waits for the reply.
  case open
  /// The reply did not arrive in time. It is dropped when it does.
  case timeout
  /// The connection ended before the reply.
  case closed
  /// The store's error, which begins with its code.
  case error(String)
  /// Too many commands are without a reply; nothing was sent.
  case tooManyWaiting
}

/// A store that takes commands. For its loop's thread only.
public protocol StoreLink: AnyObject {
  /// How a command ended.
  typealias Completion = (Result<RESPValue, StoreFailure>) -> Void

  /// Whether commands may be sent: otherwise each one fails with `.open`.
  var isUp: Bool { get }
  /// Whether the store also takes writes, as far as is known. Nothing keeps a caller from trying.
  var mayWrite: Bool { get }

  /// Says that the store would be used if it were up, so that a connection is tried sooner.
  func requestUse()

  /// Sends a command, its name first.
  ///
  /// - Parameters:
  ///   - timeout: the longest that the caller waits.
  ///   - done: is called once, never during this call, after `timeout` at the latest.
  func call(_ words: [[UInt8]], timeout: Duration, _ done: @escaping Completion)

  /// Sends a command for which no client waits.
  ///
  /// - Parameter done: is called once, never during this call, with the reply or when there will be none; nil drops it.
  func post(_ words: [[UInt8]], _ done: Completion?)
}
