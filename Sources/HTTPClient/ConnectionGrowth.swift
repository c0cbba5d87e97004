// ConnectionGrowth.swift -- how many connections a number of transfers needs.

/// Decides how many connections there should be.
enum ConnectionGrowth {
  /// A connection is opened when the others are full to this percentage, so that it is ready before transfers wait for it.
  static let fullPercentage = 75

  /// The maximum of connections that are open before a transfer needs them, if each carries one transfer at a time.
  static let mostSpare = 8

  /// Returns the number of HTTP/2 connections that this many transfers need.
  ///
  /// - Parameters:
  ///   - transfers: those at the server and those that wait.
  ///   - streams: how many a connection carries at once.
  ///   - most: the maximum number of connections.
  static func connections(for transfers: Int, streams: Int, most: Int) -> Int {
    guard transfers > 0 else { return 0 }
    // A division first: a server may allow four thousand million streams.
    let full = max(1, streams / 100 * fullPercentage + streams % 100 * fullPercentage / 100)
    return min(most, max(1, (transfers - 1) / full + 1))
  }

  /// Returns the number of connections that there should be if each carries one transfer at a time: a quarter more than
  /// transfers. A single transfer needs no second connection.
  static func sequentialConnections(for transfers: Int, most: Int) -> Int {
    guard transfers > 1 else { return min(most, transfers) }
    return min(most, transfers + min(mostSpare, (transfers + 3) / 4))
  }
}
