// QueryInbox.swift -- the queries that the listeners have handed over and that are not taken over yet.

import Frontend

/// Queries in the order of their arrival. Resolver's loop only.
struct QueryInbox {
  /// Room for what is received.
  private var drained: [Int] = []
  /// Those that are not taken over yet begin at `next`.
  private var slots: [Int] = []
  private var next = 0
  /// The number of queries that the listeners had refused when it was last asked for.
  private var refused: UInt64 = 0

  var isEmpty: Bool { next == slots.count }

  /// Receives what the listeners have handed over.
  ///
  /// - Returns: whether they have refused queries since the last call.
  mutating func receive(from queries: ClientQueries) -> Bool {
    let refused = queries.drain(into: &drained)
    slots += drained
    defer { self.refused = refused }
    return refused != self.refused
  }

  mutating func add(_ slot: Int) { slots.append(slot) }

  /// Takes out the next query; nil if there is none.
  mutating func takeNext() -> Int? {
    guard !isEmpty else { return nil }
    defer {
      next += 1
      if isEmpty {
        slots.removeAll(keepingCapacity: true)
        next = 0
      }
    }
    return slots[next]
  }
}
