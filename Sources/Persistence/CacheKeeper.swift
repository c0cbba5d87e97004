// CacheKeeper.swift -- loads a cache at the start, and saves it periodically and at shutdown.
//
// Resolver's loop only. Each load and save runs on a thread of its own and returns its result through the loop.

import EventLoop
import Files
import MessageCache
import Synchronization

/// An event that the log reports about a cache file.
public enum CacheNote: Hashable, Sendable, CustomStringConvertible {
  /// The file was loaded, in this time.
  case loaded(CacheCounts, Duration)
  /// There was no file, as on the first start.
  case nothingToLoad
  /// The file cannot be used and the cache starts empty, for this reason.
  case notLoaded(String)
  /// The cache was saved, in this time.
  case saved(CacheSave, Duration)
  /// The cache was not saved, for a reason that was not reported the last time; the daemon tries again.
  case notSaved(String)
  /// The cache was saved after a failure.
  case savedAgain(CacheSave)

  /// Whether an operator should look into it.
  public var isProblem: Bool {
    switch self {
    case .loaded, .nothingToLoad, .saved, .savedAgain: false
    case .notLoaded, .notSaved: true
    }
  }

  /// Whether this is logged regularly in normal operation.
  public var isRoutine: Bool {
    if case .saved = self { true } else { false }
  }

  /// One line for the log.
  public var description: String {
    switch self {
    case .loaded(let counts, let time):
      "cache: \(counted(counts.loaded)) loaded in \(time.milliseconds) ms"
        + (counts.dropped > 0 ? ", \(counts.dropped) expired or unusable" : "")
        + (counts.withoutRoom > 0 ? ", \(counts.withoutRoom) without room" : "")
        + (counts.unsound > 0 ? ", \(counts.unsound) invalid" : "")
    case .nothingToLoad: "no cache file yet"
    case .notLoaded(let reason): "the cache begins empty: \(reason)"
    case .saved(let save, let time):
      "cache: \(counted(save.entries)) saved in \(time.milliseconds) ms, \(save.octets) octets"
    case .notSaved(let reason): "the cache is not saved: \(reason)"
    case .savedAgain(let save): "the cache is saved again: \(counted(save.entries))"
    }
  }
}

private func counted(_ entries: Int) -> String { entries == 1 ? "1 entry" : "\(entries) entries" }

/// Preserves a cache across restarts. Resolver's loop only: other threads only deliver results to it.
public final class CacheKeeper: @unchecked Sendable {
  /// What the numbers in the entries stand for; the owner sets it whenever that changes.
  public var meanings: CacheMeanings

  /// Whether a load or save is in progress, with the meanings that were set when it began.
  public var isBusy: Bool { work != nil }

  private let cache: MessageCache
  private let file: CacheFile
  private let loop: any Loop
  private let interval: Duration
  private let startTask: (String, @escaping @Sendable () -> Void) -> BlockingTask?
  private let note: (CacheNote) -> Void
  private var work: Work?
  private let timer = OwnedTimer()
  private var whenLoaded: (([LoadedEntry]) -> Void)?
  /// The cache's count of changes when the last successful save began.
  private var savedChanges: UInt64 = 0
  private var lastProblem: String?
  /// Callers that wait for the save in progress, and callers that wait for the next one.
  private var served: [SaveWaiter] = []
  private var waiting: [SaveWaiter] = []

  /// The interval between saves: `kill -9` loses at most the entries of that time.
  public static let usualInterval = Duration.seconds(600)
  /// How long shutdown waits for a slow disk.
  public static let usualPatience = Duration.seconds(5)

  /// A load or a save in progress, and its result.
  private final class Work: Sendable {
    enum Kind: Sendable {
      case load
      case save(changes: UInt64)
    }

    let kind: Kind
    let isWanted = Atomic<Bool>(true)
    let note = Mutex<CacheNote?>(nil)
    /// Why the lock could not be taken, so that a save would fail too.
    let problem = Mutex<FileProblem?>(nil)
    let loaded = Mutex<[LoadedEntry]>([])
    nonisolated(unsafe) var task: BlockingTask?

    init(_ kind: Kind) { self.kind = kind }
  }

  /// Does nothing before `start`.
  ///
  /// - Parameters:
  ///   - interval: the time between saves; a save is skipped if nothing was inserted.
  ///   - note: called on the loop with each event to log.
  public convenience init(
    _ cache: MessageCache, _ file: CacheFile, _ meanings: CacheMeanings, on loop: any Loop,
    every interval: Duration = CacheKeeper.usualInterval, note: @escaping (CacheNote) -> Void
  ) {
    self.init(cache, file, meanings, on: loop, every: interval, startTask: { BlockingTask.start($0, $1) }, note: note)
  }

  /// - Parameter startTask: runs the work, at once or on another thread; returns nil if it has already finished.
  init(
    _ cache: MessageCache, _ file: CacheFile, _ meanings: CacheMeanings, on loop: any Loop, every interval: Duration,
    startTask: @escaping (String, @escaping @Sendable () -> Void) -> BlockingTask?, note: @escaping (CacheNote) -> Void
  ) {
    self.cache = cache
    self.file = file
    self.meanings = meanings
    self.loop = loop
    self.interval = interval
    self.startTask = startTask
    self.note = note
  }

  /// Starts to load the file, and saves new entries from then on. Returns at once; queries are answered during the
  /// load.
  ///
  /// - Parameter whenLoaded: called once on the loop with the entries that are still fresh, even if there is no file.
  public func start(whenLoaded: @escaping ([LoadedEntry]) -> Void = { _ in }) {
    loop.assertCurrent()
    self.whenLoaded = whenLoaded
    // Rounded up here and down in `save`: the loop's wall clock has whole seconds, and no entry may seem younger than
    // it is.
    let time = CacheTime(boot: loop.now.nanoseconds, wall: (loop.wallTime + 1) * 1_000_000_000)
    perform(Work(.load)) { [cache, file, meanings] work in
      do throws(FileProblem) { try file.take() } catch { work.problem.withLock { $0 = error } }
      let begin = BootInstant.now
      var fresh: [LoadedEntry] = []
      let load = file.load(
        into: cache, meanings, at: time, while: { work.isWanted.load(ordering: .relaxed) },
        whenFresh: { fresh.append($0) })
      work.loaded.withLock { $0 = fresh }
      switch load {
      case .loaded(let counts): return .loaded(counts, BootInstant.now - begin)
      case .nothing: return .nothingToLoad
      case .unreadable(let reason), .setAside(let reason): return .notLoaded(reason)
      }
    }
  }

  /// Saves new entries before it returns: for shutdown, when the loop no longer runs.
  ///
  /// If the load has not finished, the file stays as it is.
  /// - Parameter patience: how long to wait for a slow disk. Work that is not done by then is abandoned; either the old
  ///   or the complete new file remains.
  public func close(within patience: Duration = CacheKeeper.usualPatience) {
    let deadline = BootInstant.now + patience
    timer.cancel()
    whenLoaded = nil
    guard finishWork(by: deadline, patience) else { return }
    save()
    if finishWork(by: deadline, patience) { file.leave() }
    timer.cancel()
  }

  /// Waits for the work in progress; returns false if it does not finish in time.
  private func finishWork(by deadline: BootInstant, _ patience: Duration) -> Bool {
    guard let work else { return true }
    if let task = work.task, !task.wait(atMost: max(deadline - BootInstant.now, .zero)) {
      work.isWanted.store(false, ordering: .relaxed)
      log(.notSaved("\(file.path): not done after \(patience.milliseconds) ms"))
      return false
    }
    collect()
    return true
  }

  /// Saves new entries at once, for example after entries were removed on request: a crash must not bring them back.
  ///
  /// Call it from a task that prefers the loop.
  /// - Returns: why the cache was not saved; nil on success.
  public func saveNow(within patience: Duration = CacheKeeper.usualPatience) async -> String? {
    loop.assertCurrent()
    return await withCheckedContinuation { continuation in
      let waiter = SaveWaiter(continuation)
      waiting.append(waiter)
      waiter.timer.set(after: patience, on: loop) { [file] in
        waiter.end("\(file.path): not done after \(patience.milliseconds) ms")
      }
      if work == nil { save() }
    }
  }

  /// Starts a save if something is new and no work is in progress.
  private func save() {
    let changes = cache.changes
    guard work == nil, changes != savedChanges else {
      if work == nil { endWaiting(&waiting, nil) }
      return schedule()
    }
    (served, waiting) = (waiting, [])
    let time = CacheTime(boot: loop.now.nanoseconds, wall: loop.wallTime * 1_000_000_000)
    perform(Work(.save(changes: changes))) { [cache, file, meanings] _ in
      let begin = BootInstant.now
      do throws(FileProblem) {
        return .saved(try file.save(cache, meanings, at: time), BootInstant.now - begin)
      } catch { return .notSaved(error.description) }
    }
  }

  private func perform(_ work: Work, _ action: @escaping @Sendable (Work) -> CacheNote) {
    self.work = work
    work.task = startTask("cache file") { [weak self, loop] in
      let note = action(work)
      work.note.withLock { $0 = note }
      Task(executorPreference: loop) { self?.collect() }
    }
  }

  /// Takes the result of finished work; does nothing if another call has taken it.
  private func collect() {
    guard let work, let note = work.note.withLock({ $0 }) else { return }
    self.work = nil
    if case (.save(let changes), .saved) = (work.kind, note) { savedChanges = changes }
    if case .save = work.kind { endWaiting(&served, note.saveProblem) }
    log(note)
    if let problem = work.problem.withLock({ $0 }) { log(.notSaved(problem.description)) }
    if case .load = work.kind { whenLoaded?(work.loaded.withLock { $0 }) }
    whenLoaded = nil
    if waiting.isEmpty { schedule() } else { save() }
  }

  private func endWaiting(_ waiters: inout [SaveWaiter], _ problem: String?) {
    for waiter in waiters { waiter.end(problem) }
    waiters = []
  }

  private func schedule() {
    guard !timer.isSet, work == nil else { return }
    timer.set(after: interval, on: loop, for: self) { $0.save() }
  }

  /// Reports an event, unless it repeats the last problem.
  private func log(_ note: CacheNote) {
    switch note {
    case .notSaved(let reason):
      guard reason != lastProblem else { return }
      lastProblem = reason
    case .saved(let save, _):
      guard lastProblem == nil else {
        lastProblem = nil
        return self.note(.savedAgain(save))
      }
    case .loaded, .nothingToLoad, .notLoaded, .savedAgain: break
    }
    self.note(note)
  }
}

/// A caller that waits for a save, until its patience ends.
private final class SaveWaiter {
  /// Fires when the patience of the caller ends.
  let timer = OwnedTimer()
  private var continuation: CheckedContinuation<String?, Never>?

  init(_ continuation: CheckedContinuation<String?, Never>) { self.continuation = continuation }

  func end(_ problem: String?) {
    timer.cancel()
    continuation?.resume(returning: problem)
    continuation = nil
  }
}

extension CacheNote {
  fileprivate var saveProblem: String? {
    guard case .notSaved(let reason) = self else { return nil }
    return reason
  }
}

extension Duration {
  /// The duration in milliseconds, rounded.
  fileprivate var milliseconds: Int64 { (nanoseconds + 500_000) / 1_000_000 }
}
