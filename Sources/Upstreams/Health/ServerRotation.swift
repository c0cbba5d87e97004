// ServerRotation.swift -- selects the server of a provider.
//
// Pure: no clock, no I/O. Servers are in the order of the configuration; consecutive failures move on to the next one.

/// The servers of one provider, by number.
package struct ServerRotation: Sendable {
  /// The number of servers.
  package let count: Int
  /// Consecutive failures of a server before the next one is used.
  package let attemptsBeforeSwitch: Int
  /// The current server, which is tried first.
  package private(set) var current = 0
  private var consecutiveFailures: [Int]
  /// Servers that failed since the last success of any server.
  private var failedSinceSuccess: Set<Int> = []
  private var failuresSinceSuccess = 0

  /// Creates a rotation that starts with the first server.
  ///
  /// - Precondition: both numbers are positive.
  package init(count: Int, attemptsBeforeSwitch: Int) {
    precondition(count > 0 && attemptsBeforeSwitch > 0)
    self.count = count
    self.attemptsBeforeSwitch = attemptsBeforeSwitch
    consecutiveFailures = Array(repeating: 0, count: count)
  }

  /// The order in which a question tries the servers: the current one first, none twice (RFC 9520 section 3.1). Read it
  /// once per question, because failures change it.
  package var order: [Int] { (0..<count).map { (current + $0) % count } }

  /// Whether every server has failed since the last reply of any, and not just by a single accident.
  package var isExhausted: Bool {
    failedSinceSuccess.count == count && failuresSinceSuccess >= attemptsBeforeSwitch
  }

  /// Records a readable reply of a server.
  package mutating func succeeded(_ server: Int) {
    consecutiveFailures[server] = 0
    failedSinceSuccess = []
    failuresSinceSuccess = 0
  }

  /// Records a failure of a server; returns true if the next one has become current.
  package mutating func failed(_ server: Int) -> Bool {
    consecutiveFailures[server] += 1
    failedSinceSuccess.insert(server)
    failuresSinceSuccess += 1
    guard server == current, count > 1, consecutiveFailures[server] >= attemptsBeforeSwitch else { return false }
    consecutiveFailures[server] = 0
    current = (current + 1) % count
    return true
  }

  /// Forgets all failures.
  package mutating func forgetFailures() {
    consecutiveFailures = Array(repeating: 0, count: count)
    failedSinceSuccess = []
    failuresSinceSuccess = 0
  }

  /// Makes a server current, after a successful probe.
  package mutating func move(to server: Int) { current = server }
}
