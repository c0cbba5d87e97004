// ListStore.swift -- the lists of a configuration: reads their files, fetches their URLs, and says when a table is to be built.
//
// Its owner builds the tables, on a thread of its own, from `texts`; the store sees to it that these are always the last good
// ones. In order:
//
//   at the start     `ListFolder.load` on any thread, a table from it, `use`, `loaded`, `start`
//   on a reload      `texts`, `ListFolder.load(_:keeping:)` on a thread, a table from it, `use`, `loaded`
//   when `changed`   `texts`, a table from them on a thread, `loaded` or `notBuilt`
//   at the end       `stop`
//
// Resolver's loop only, but for what is `Sendable`.

import EventLoop
import Logging

/// All lists, with what keeps their texts up to date.
public final class ListStore {
  /// Creates a watch of paths, which lives as long as the returned object; nil if they cannot be watched.
  public typealias Watch = (_ paths: [String], _ changed: @escaping () -> Void) -> AnyObject?

  /// Called when a table is to be built from `texts`; not again before `loaded` or `notBuilt`.
  public var changed: () -> Void = {}

  private let folder: ListFolder
  private let loop: any Loop
  private let note: (Logger.Level, String) -> Void
  private let fetches: FetchSchedule
  private let files: FileFollower
  private let pace: BuildPace
  /// In the order of the configuration.
  private var entries: [ListEntry] = []
  private var isStopped = false

  /// - Parameters:
  ///   - seed: of the jitter.
  ///   - note: logs one line for the operator.
  public init(
    in folder: ListFolder, fetcher: any ListFetching, on loop: any Loop, seed: UInt64, watch: @escaping Watch,
    note: @escaping (Logger.Level, String) -> Void
  ) {
    (self.folder, self.loop, self.note) = (folder, loop, note)
    fetches = FetchSchedule(fetcher, folder, on: loop, seed: seed)
    files = FileFollower(folder, on: loop, watch: watch)
    pace = BuildPace(on: loop)
    fetches.took = { [weak self] in self?.take($1, of: $0) }
    files.took = { [weak self] in self?.take($1, of: $0) }
    fetches.room = { [weak self] in self?.room(for: $0) ?? 0 }
    files.room = { [weak self] in self?.room(for: $0) ?? 0 }
    pace.build = { [weak self] in self?.changed() }
  }

  /// Follows these lists from now on. The state of those that it has already stays; one with other settings is tried at once.
  ///
  /// - Parameter texts: of all of them, by `ListFolder.load`.
  public func use(_ sources: [ListSource], _ texts: ListTexts) {
    loop.assertCurrent()
    guard !isStopped else { return }
    let known = Dictionary(uniqueKeysWithValues: entries.map { ($0.source.place, $0) })
    entries = sources.unique.map { source in
      if let entry = known[source.place] {
        if entry.text == nil, let text = texts[source.place] { entry.begin(text, texts.faults[source.place]) }
        if entry.source != source {
          entry.source = source
          entry.seen = nil
          fetches.settingsHaveChanged(entry)
        }
        return entry
      }
      let entry = ListEntry(source, note: note)
      entry.begin(texts[source.place], texts.faults[source.place])
      return entry
    }
    for entry in known.values where !entries.contains(where: { $0 === entry }) { entry.end() }
    files.follow(entries)
    fetches.follow(entries)
  }

  /// Begins to watch and to fetch, and removes copies of lists that are not configured. To be called once, when the process may
  /// write to its state directory.
  public func start() {
    loop.assertCurrent()
    // Without lists there is no thread either.
    guard !entries.isEmpty || folder.isThere else { return isStarted() }
    let (folder, sources) = (folder, entries.map(\.source))
    loop.startTask { [self] in
      // First, since it also removes what a killed process was writing.
      await inBackground(on: loop) { folder.clean(keeping: sources) }
      isStarted()
    }
  }

  private func isStarted() {
    guard !isStopped else { return }
    files.start()
    fetches.start()
  }

  /// Ends everything: `changed` is not called any more, callers of `update` get their answer.
  public func stop() {
    loop.assertCurrent()
    isStopped = true
    files.stop()
    fetches.stop()
    pace.stop()
    for entry in entries { entry.end() }
  }

  /// The last good text of each list that has one.
  public var texts: ListTexts {
    loop.assertCurrent()
    var texts = ListTexts()
    for entry in entries {
      texts.texts[entry.source.place] = entry.text
      texts.faults[entry.source.place] = entry.fault
    }
    return texts
  }

  /// A table of these texts is in use.
  ///
  /// - Parameters:
  ///   - results: what it has of each list; one without a result is tried again, and a text that cannot be read is dropped.
  ///   - time: how long the build took.
  public func loaded(
    _ results: [ListSource.Place: Result<ListLoaded, ListFault>], of texts: ListTexts, in time: Duration
  ) {
    loop.assertCurrent()
    guard !isStopped else { return }
    for entry in entries {
      guard let result = results[entry.source.place], let text = texts[entry.source.place] else { continue }
      entry.take(result, version: text.version)
      if entry.text == nil { replace(entry) }
    }
    pace.isBuilt(in: time)
    requestBuild()
  }

  /// No table could be built: lists that have changed are tried again after a pause.
  ///
  /// - Parameters:
  ///   - fault: for the callers of `update` that wait for a table.
  ///   - unread: lists whose texts cannot be read; the table that stays in use has their names.
  ///   - time: how long the attempt took.
  public func notBuilt(
    _ fault: ListFault, unread: [ListSource.Place: ListFault] = [:], in time: Duration = .zero
  ) {
    loop.assertCurrent()
    guard !isStopped else { return }
    pace.hasFailed(in: time)
    for entry in entries {
      entry.notBuilt(fault)
      if let fault = unread[entry.source.place], entry.text != nil {
        entry.drop(fault)
        replace(entry)
      }
    }
    requestBuild()
  }

  /// Gets a text in place of one that cannot be read.
  private func replace(_ entry: ListEntry) {
    if entry.isFile { files.readNow(entry) } else if entry.failures == 0 { fetches.fetchNow(entry) }
  }

  /// The machine is on another network: lists that could not be fetched are tried at once.
  public func networkHasChanged() {
    loop.assertCurrent()
    fetches.networkHasChanged()
  }

  /// Fetches lists now, and reads files again.
  ///
  /// - Parameter name: of a list; nil for all.
  /// - Returns: when they are in use or have failed, one for each; empty if there is no such list.
  public func update(_ name: String? = nil) async -> [ListUpdate] {
    loop.assertCurrent()
    let wanted = entries.filter { name == nil || $0.source.name == name || $0.source.place.description == name }
    guard !wanted.isEmpty, !isStopped else { return [] }
    return await withCheckedContinuation { continuation in
      let updates = PendingUpdates(wanted.count) { continuation.resume(returning: $0) }
      for (index, entry) in wanted.enumerated() {
        entry.await { updates.end(index, ListUpdate(name: entry.source.name, result: $0)) }
        if entry.isFile { files.readNow(entry) } else { fetches.fetchNow(entry) }
      }
    }
  }

  /// The state of each list, in the order of the configuration.
  public var reports: [ListReport] {
    loop.assertCurrent()
    return entries.map { ListReport($0, now: loop.now, wallTime: loop.wallTime) }
  }

  private func room(for entry: ListEntry) -> Int {
    entries.reduce(folder.mostNames) { $0 - ($1 === entry ? 0 : $1.text?.details.names ?? 0) }
  }

  private func take(_ outcome: ListOutcome, of entry: ListEntry) {
    guard !isStopped else { return }
    entry.take(outcome, at: loop.wallTime)
    requestBuild()
  }

  private func requestBuild() {
    guard entries.contains(where: \.isOutdated) else { return }
    pace.isOutdated(isUrgent: entries.contains(where: \.isUrgent))
  }
}
