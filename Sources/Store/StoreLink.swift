// StoreLink.swift -- the interface of a store for its users. Tests implement it with a scripted store.

/// Why a command has no usable reply.
public enum StoreFailure: Error, Hashable, Sendable {
  /// The store is down. The command was not sent, or was in flight when the store failed.
  case open
  /// The reply did not arrive in time. A late reply is dropped.
  case timeout
  /// The connection ended before the reply.
  case closed
  /// The store's error reply. It begins with a code such as `NOPERM`.
  case error(String)
  /// Not sent: too many commands are without a reply.
  case tooManyWaiting
}

/// A store that executes commands. Loop thread only.
public protocol StoreLink: AnyObject {
  /// Receives the reply or the failure of a command.
  typealias Completion = (Result<RESPValue, StoreFailure>) -> Void

  /// Whether commands are sent; otherwise each one fails with `.open`.
  var isUp: Bool { get }
  /// Whether the store accepts writes, as far as known. A hint: writes are sent in any case.
  var mayWrite: Bool { get }

  /// Reports that the store would be used if it were up, so that the next connection attempt is sooner.
  func requestUse()

  /// Sends a command for which a client waits.
  ///
  /// - Parameters:
  ///   - words: the command's name and its arguments.
  ///   - timeout: when the command fails without a reply.
  ///   - done: called once, never during this call, after `timeout` at the latest.
  func call(_ words: [[UInt8]], timeout: Duration, _ done: @escaping Completion)

  /// Sends a command without a timeout, for which no client waits.
  ///
  /// - Parameters:
  ///   - words: the command's name and its arguments.
  ///   - done: called once, never during this call, with the reply or the failure; nil to ignore both.
  func post(_ words: [[UInt8]], _ done: Completion?)
}
