// ServerRotation.swift -- which server of a provider is asked now.
//
// Pure: no clock and no I/O. The servers stand in the order of the configuration; consecutive failures move on to the next.

/// The servers of one provider, by number.
public struct ServerRotation: Sendable {
  /// How many servers there are.
  public let count: Int
  /// Consecutive failures of a server before the next one takes its place.
  public let attemptsBeforeSwitch: Int
  /// The server that is asked first.
  public private(set) var current = 0
  private var consecutiveFailures: [Int]
  /// Servers that have failed since the last success of any.
  private var failedSinceSuccess: Set<Int> = []
  private var failuresSinceSuccess = 0

  /// The first server is the current one.
  ///
  /// - Precondition: both numbers are positive.
  public init(count: Int, attemptsBeforeSwitch: Int) {
    precondition(count > 0 && attemptsBeforeSwitch > 0)
    self.count = count
    self.attemptsBeforeSwitch = attemptsBeforeSwitch
    consecutiveFailures = Array(repeating: 0, count: count)
  }

  /// The servers in the order in which one question asks them: the current one first, then the others, none twice
  /// (RFC 9520 section 3.1). To be taken once for a question: what happens in between changes it for the next.
  public var order: [Int] { (0..<count).map { (current + $0) % count } }

  /// Whether every server has failed since one of them last gave a reply, and none of them by a single mishap alone.
  public var isExhausted: Bool {
    failedSinceSuccess.count == count && failuresSinceSuccess >= attemptsBeforeSwitch
  }

  /// A server gave a readable reply.
  public mutating func succeeded(_ server: Int) {
    consecutiveFailures[server] = 0
    failedSinceSuccess = []
    failuresSinceSuccess = 0
  }

  /// A server failed; returns true where the next one has become the current one.
  public mutating func failed(_ server: Int) -> Bool {
    consecutiveFailures[server] += 1
    failedSinceSuccess.insert(server)
    failuresSinceSuccess += 1
    guard server == current, count > 1, consecutiveFailures[server] >= attemptsBeforeSwitch else { return false }
    consecutiveFailures[server] = 0
    current = (current + 1) % count
    return true
  }

  /// No server has failed so far.
  public mutating func forgetFailures() {
    consecutiveFailures = Array(repeating: 0, count: count)
    failedSinceSuccess = []
    failuresSinceSuccess = 0
  }

  /// Makes a server that a probe has found well the current one.
  public mutating func move(to server: Int) { current = server }
}
