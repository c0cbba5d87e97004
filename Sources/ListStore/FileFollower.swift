// FileFollower.swift -- notices that the files of lists have changed, and copies each when it is no longer being written.
//
// A watch says that something may have happened. A file is read when it has stayed the same for 200 ms; one that is written
// more slowly than that counts as it is, and again when it is closed.

import EventLoop
import Persistence

/// The files of all lists. Owned by the store; resolver's loop only.
final class FileFollower {
  /// Creates a watch of paths, which lives as long as the returned object; nil if they cannot be watched.
  typealias Watch = (_ paths: [String], _ changed: @escaping () -> Void) -> AnyObject?

  /// Receives what each reading has brought.
  var took: (ListEntry, ListOutcome) -> Void = { _, _ in }
  /// The names that the text of a list may have.
  var room: (ListEntry) -> Int = { _ in 0 }

  private let folder: ListFolder
  private let loop: any Loop
  private let makeWatch: Watch
  private var watch: AnyObject?
  private var watched: [String] = []
  private var entries: [ListEntry] = []
  /// Files that may have to be read.
  private var unsettled: [ListSource.Place: Sighting] = [:]
  private var queue: [ListEntry] = []
  private var current: ListEntry?
  private var isStarted = false
  private let settling = OwnedTimer()
  private let polling = OwnedTimer()

  /// What a file was when it was last looked at, and since when.
  private struct Sighting {
    /// Nil without a file.
    var identity: FileIdentity?
    var since: BootInstant
  }

  private static let settleTime = Duration.milliseconds(200)
  /// The pause between two looks at files that cannot be watched.
  private static let pollPause = Duration.seconds(30)

  init(_ folder: ListFolder, on loop: any Loop, watch: @escaping Watch) {
    (self.folder, self.loop, makeWatch) = (folder, loop, watch)
  }

  func start() {
    isStarted = true
    follow(entries)
  }

  func stop() {
    isStarted = false
    (watch, entries, queue) = (nil, [], [])
    settling.cancel()
    polling.cancel()
  }

  /// The lists whose files are followed from now on.
  func follow(_ all: [ListEntry]) {
    entries = all.filter(\.isFile)
    guard isStarted else { return }
    queue.removeAll { entry in !entries.contains { $0 === entry } }
    let paths = entries.compactMap(\.path)
    if paths != watched || watch == nil {
      watched = paths
      watch = paths.isEmpty ? nil : makeWatch(paths) { [weak self] in self?.look() }
    }
    look()
    if watch == nil, !paths.isEmpty { poll() } else { polling.cancel() }
  }

  /// Reads a file without waiting for a change.
  func readNow(_ entry: ListEntry) {
    entry.seen = nil
    enqueue(entry)
  }

  private func poll() {
    polling.set(after: FileFollower.pollPause, on: loop, for: self) {
      $0.look()
      $0.poll()
    }
  }

  /// Looks for files that are not those that were read.
  private func look() {
    for entry in entries {
      guard let path = entry.path else { continue }
      let identity = FileIdentity(path: path)
      let hasCopy = entry.text?.isPrivate ?? true
      let isKnown = identity == entry.seen && hasCopy && (identity != nil || entry.fault != nil)
      if !isKnown { see(identity, of: entry) }
    }
    if !unsettled.isEmpty, !settling.isSet { settle() }
  }

  private func see(_ identity: FileIdentity?, of entry: ListEntry) {
    let known = unsettled[entry.source.place]
    if known == nil || known?.identity != identity {
      unsettled[entry.source.place] = Sighting(identity: identity, since: loop.now)
    }
  }

  private func settle() {
    settling.set(after: FileFollower.settleTime, on: loop, for: self) { $0.readSettled() }
  }

  private func readSettled() {
    for entry in entries {
      guard let path = entry.path, unsettled[entry.source.place] != nil else { continue }
      see(FileIdentity(path: path), of: entry)
      guard let seen = unsettled[entry.source.place], loop.now - seen.since >= FileFollower.settleTime else { continue }
      unsettled[entry.source.place] = nil
      enqueue(entry)
    }
    unsettled = unsettled.filter { place, _ in entries.contains { $0.source.place == place } }
    if !unsettled.isEmpty { settle() }
  }

  private func enqueue(_ entry: ListEntry) {
    if !queue.contains(where: { $0 === entry }) { queue.append(entry) }
    proceed()
  }

  private func proceed() {
    guard isStarted, current == nil, !queue.isEmpty else { return }
    let entry = queue.removeFirst()
    guard let path = entry.path else { return proceed() }
    current = entry
    let (source, present, room, folder) = (entry.source, entry.text, room(entry), folder)
    entry.seen = FileIdentity(path: path)
    loop.startTask { [self] in
      let outcome = await inBackground(on: loop) {
        ListFile.copy(path, of: source, room: room, after: present, to: folder)
      }
      current = nil
      if entries.contains(where: { $0 === entry }) { finish(entry, outcome) }
      proceed()
    }
  }

  private func finish(_ entry: ListEntry, _ outcome: ListOutcome) {
    if case .fault(.changing) = outcome {
      entry.seen = nil
      look()
    } else {
      took(entry, outcome)
    }
  }
}
