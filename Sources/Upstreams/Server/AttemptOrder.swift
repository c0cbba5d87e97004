// AttemptOrder.swift -- the order in which a question tries the servers of a provider.

/// The servers still to be tried, and whether a question may get a second chance.
struct AttemptOrder {
  /// The next step after a temporary failure.
  enum SecondChance {
    /// Ask the next server, as after any other failure of a server.
    case nextServer
    /// Ask the same server again, since there is no other.
    case sameServer
  }

  private var servers: ArraySlice<Int>
  private var hasSecondChance: Bool

  /// - Parameters:
  ///   - servers: the numbers of the servers, the preferred one first.
  ///   - most: the maximum number of attempts; with 1, no attempt is repeated.
  init(_ servers: [Int], most: Int) {
    self.servers = servers.prefix(most)
    hasSecondChance = most > 1
  }

  /// Returns the server to ask now; nil if none is left.
  mutating func next() -> Int? { servers.popFirst() }

  /// Decides what follows a temporary failure: another server may succeed, or the same one a moment later.
  ///
  /// - Returns: where the question goes; nil if it has had its second chance.
  mutating func secondChance(after server: Int) -> SecondChance? {
    guard hasSecondChance else { return nil }
    hasSecondChance = false
    guard servers.isEmpty else { return .nextServer }
    servers = [server]
    return .sameServer
  }
}
