// ListEntry.swift -- the state of one list: its text, what a table has of it, and what went wrong last.

import EventLoop
import Lists
import Logging

/// What a table has of a list.
public struct ListLoaded: Equatable, Sendable {
  /// Different names.
  public let names: Int
  public let leftOut: LeftOut
  /// Names that the table before did not have, and those that only that one had.
  public let (added, removed): (Int, Int)

  public init(names: Int, leftOut: LeftOut, added: Int, removed: Int) {
    (self.names, self.leftOut, self.added, self.removed) = (names, leftOut, added, removed)
  }
}

/// How often a list was fetched, by result.
public struct ListFetchCounts: Hashable, Sendable {
  public internal(set) var changed = 0
  public internal(set) var unchanged = 0
  /// No text came, or not all of it.
  public internal(set) var failed = 0
  /// A text or an answer came that is not taken.
  public internal(set) var refused = 0
}

/// One list. Resolver's loop only.
final class ListEntry {
  typealias Note = (Logger.Level, String) -> Void

  var source: ListSource
  /// The next fetch; nil for a file, and during a fetch.
  var due: BootInstant?
  /// Fetches without success in a row.
  var failures = 0
  /// The file that was read last, whether it could be used or not.
  var seen: FileIdentity?
  private(set) var counts = ListFetchCounts()
  private(set) var text: ListText?
  private(set) var loaded: ListLoaded?
  private(set) var fault: ListFault?
  /// When the text was last known to be right, in seconds since 1970; nil if that is not known.
  private(set) var confirmedAt: Int64?
  /// That of the text in the table.
  private var builtVersion: Int?
  private var waiters: [(ListUpdate.Result) -> Void] = []
  /// Those whose text has come, but is not in a table yet.
  private var builtWaiters: [(ListUpdate.Result) -> Void] = []
  private let note: Note

  init(_ source: ListSource, note: @escaping Note) {
    self.source = source
    self.note = note
  }

  var isFile: Bool { path != nil }

  var path: String? {
    guard case .file(let path) = source.place else { return nil }
    return path
  }

  /// Whether the table has another text, or none.
  var isOutdated: Bool { text.map { $0.version != builtVersion } ?? false }

  /// Whether a caller waits until the list is in use.
  var isUrgent: Bool { !builtWaiters.isEmpty }

  /// What was found at the start or by a reload.
  func begin(_ text: ListText?, _ fault: ListFault?) {
    self.text = text
    confirmedAt = text?.confirmedAt
    seen = fault == nil ? text?.details.identity : nil
    // One that is being written is read again soon.
    if let fault, fault != .changing { fail(fault) } else { self.fault = nil }
    if text == nil, fault == nil, !isFile {
      note(.warning, "list \(source.name): not fetched yet; until then it has no names")
    }
  }

  /// What a fetch has brought, or a reading of the file.
  func take(_ outcome: ListOutcome, at wallTime: Int64) {
    switch outcome {
    case .changed(let text):
      self.text = text
      confirmedAt = isFile ? text.confirmedAt : wallTime
      fault = nil
      count(\.changed)
      builtWaiters += waiters
      waiters = []
    case .unchanged(let text):
      if let text { self.text = text }
      confirmedAt = isFile ? self.text?.confirmedAt : wallTime
      if fault != nil { note(.info, "list \(source.name): available again, unchanged") }
      fault = nil
      count(\.unchanged)
      if isOutdated { builtWaiters += waiters } else { resume(.unchanged) }
      waiters = []
    case .fault(let fault):
      count(fault.isRefusal ? \.refused : \.failed)
      fail(fault)
      resume(.fault(fault))
    }
  }

  /// What a table has of a text now.
  func take(_ result: Result<ListLoaded, ListFault>, version: Int) {
    let isNew = version != builtVersion
    let isFirst = loaded == nil
    builtVersion = version
    switch result {
    case .success(let loaded):
      self.loaded = loaded
      if isNew { note(.info, "list \(source.name): \(loaded.line(isFirst: isFirst))") }
    case .failure(let fault):
      loaded = nil
      if !isOutdated { drop(fault) }
    }
    guard !isOutdated else { return }
    switch result {
    case .success(let loaded): resumeBuilt(.changed(names: loaded.names))
    case .failure(let fault): resumeBuilt(.fault(fault))
    }
  }

  /// The text cannot be read any more.
  func drop(_ fault: ListFault) {
    (text, seen) = (nil, nil)
    fail(fault)
  }

  /// No table could be built.
  func notBuilt(_ fault: ListFault) { resumeBuilt(.fault(fault)) }

  /// Calls `waiter` when the next fetch or reading is in use, or has failed.
  func await(_ waiter: @escaping (ListUpdate.Result) -> Void) { waiters.append(waiter) }

  /// The list is no longer followed.
  func end() {
    waiters += builtWaiters
    builtWaiters = []
    resume(.fault(.cancelled))
  }

  private func count(_ result: WritableKeyPath<ListFetchCounts, Int>) {
    if !isFile { counts[keyPath: result] += 1 }
  }

  private func resume(_ result: ListUpdate.Result) {
    let waiting = waiters
    waiters = []
    for waiter in waiting { waiter(result) }
  }

  private func resumeBuilt(_ result: ListUpdate.Result) {
    let waiting = builtWaiters
    builtWaiters = []
    for waiter in waiting { waiter(result) }
  }

  /// Logs a change of state, and not each try.
  private func fail(_ fault: ListFault) {
    if self.fault == nil {
      let consequence = text == nil && loaded == nil ? "it has no names" : "the last good text stays in use"
      note(isFile ? .error : .warning, "list \(source.name): \(fault); \(consequence)")
    }
    self.fault = fault
  }
}

extension ListLoaded {
  fileprivate func line(isFirst: Bool) -> String {
    let change = isFirst ? "" : " (+\(grouped(added)) −\(grouped(removed)))"
    let left = leftOut.total
    let rest = left == 0 ? "" : ", \(grouped(left)) \(left == 1 ? "line" : "lines") left out"
    return "\(grouped(names)) \(names == 1 ? "name" : "names")\(change)\(rest)"
  }
}
