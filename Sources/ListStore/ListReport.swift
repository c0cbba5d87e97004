// ListReport.swift -- what `httpdnsd lists` and the metrics show of a list, and what an update has brought.

import EventLoop
import Lists

/// The state of one list.
public struct ListReport: Sendable {
  public enum State: Hashable, Sendable {
    /// The last fetch or reading was a success.
    case loaded
    /// No text has come yet, and nothing has failed.
    case waiting
    /// The last fetch or reading failed: a part of a line for people. There may be names from before.
    case failing(String)
  }

  public let name: String
  public let place: ListSource.Place
  public let state: State
  /// Different names in use; 0 without a table.
  public let names: Int
  public let leftOut: LeftOut
  /// The time since the file was changed, or since the text was last the server's; nil if it is not known.
  public let age: Duration?
  /// The time between two fetches; nil for a file.
  public let interval: Duration?
  /// The time until the next fetch; nil for a file, and during a fetch.
  public let nextFetch: Duration?
  /// Whether the text is in memory only.
  public let isInMemory: Bool
  /// All zero for a file.
  public let fetches: ListFetchCounts

  init(_ entry: ListEntry, now: BootInstant, wallTime: Int64) {
    name = entry.source.name
    place = entry.source.place
    state = entry.fault.map { .failing($0.description) } ?? (entry.text == nil ? .waiting : .loaded)
    names = entry.loaded?.names ?? 0
    leftOut = entry.loaded?.leftOut ?? LeftOut()
    age = entry.text == nil ? nil : entry.confirmedAt.map { .seconds(max(0, wallTime - $0)) }
    interval = entry.isFile ? nil : entry.source.interval
    nextFetch = entry.due.map { max(.zero, $0 - now) }
    isInMemory = entry.text?.isInMemory ?? false
    fetches = entry.counts
  }
}

/// What an update of one list has brought.
public struct ListUpdate: Sendable {
  public enum Result: Hashable, Sendable {
    /// Another text is in use.
    case changed(names: Int)
    /// The text is the same.
    case unchanged
    case fault(ListFault)
  }

  public let name: String
  public let result: Result
}

/// Collects the updates of several lists. Resolver's loop only.
final class PendingUpdates {
  private var updates: [ListUpdate?]
  private let done: ([ListUpdate]) -> Void

  init(_ count: Int, done: @escaping ([ListUpdate]) -> Void) {
    updates = Array(repeating: nil, count: count)
    self.done = done
  }

  func end(_ index: Int, _ update: ListUpdate) {
    updates[index] = update
    if updates.allSatisfy({ $0 != nil }) { done(updates.compactMap(\.self)) }
  }
}
