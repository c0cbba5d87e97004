// AttemptOrder.swift -- which of a provider's servers a question goes to, one after the other.

/// The servers that are left, and whether one of them may be asked again.
struct AttemptOrder {
  /// Where a question goes after a failure that may be over in a moment.
  enum SecondChance {
    /// To the next server, as after any failure of a server.
    case nextServer
    /// To the same server again: there is no other.
    case sameServer
  }

  private var servers: ArraySlice<Int>
  private var hasSecondChance: Bool

  /// - Parameters:
  ///   - servers: their numbers, the one to ask first at the front.
  ///   - most: attempts at most; where it is one, none is repeated.
  init(_ servers: [Int], most: Int) {
    self.servers = servers.prefix(most)
    hasSecondChance = most > 1
  }

  /// The server to ask now; nil where none is left.
  mutating func next() -> Int? { servers.popFirst() }

  /// What a server cannot do right now another one may, or the same one a moment later.
  ///
  /// - Returns: where the question goes once more; nil where it has had its second chance.
  mutating func secondChance(after server: Int) -> SecondChance? {
    guard hasSecondChance else { return nil }
    hasSecondChance = false
    guard servers.isEmpty else { return .nextServer }
    servers = [server]
    return .sameServer
  }
}
