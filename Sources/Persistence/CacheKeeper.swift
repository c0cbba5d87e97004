// CacheKeeper.swift -- loads a cache once at the start, saves it from time to time, and once more at the end.
//
// Resolver's loop only. What may block is done by a thread that lives for it; the result comes back through the loop.

import EventLoop
import Files
import MessageCache
import Synchronization

/// What a person is told of a cache file.
public enum CacheNote: Hashable, Sendable, CustomStringConvertible {
  /// Entries came from the file, in that time.
  case loaded(CacheCounts, Duration)
  /// There was no file: the first start.
  case nothingToLoad
  /// The file cannot be used, and the cache begins empty.
  case notLoaded(String)
  /// The cache is in the file.
  case saved(CacheSave, Duration)
  /// It is not, for a reason that was not told the last time; it is tried again.
  case notSaved(String)
  /// It is again, after it was not.
  case savedAgain(CacheSave)

  /// Whether somebody should look after it.
  public var isProblem: Bool {
    switch self {
    case .loaded, .nothingToLoad, .saved, .savedAgain: false
    case .notLoaded, .notSaved: true
    }
  }

  /// Whether this happens again and again while all is well.
  public var isRoutine: Bool {
    if case .saved = self { true } else { false }
  }

  /// One line.
  public var description: String {
    switch self {
    case .loaded(let counts, let time):
      "cache: \(counted(counts.kept)) loaded in \(time.milliseconds) ms"
        + (counts.dropped > 0 ? ", \(counts.dropped) expired or unusable" : "")
        + (counts.withoutRoom > 0 ? ", \(counts.withoutRoom) without room" : "")
        + (counts.unsound > 0 ? ", \(counts.unsound) invalid" : "")
    case .nothingToLoad: "there is no cache file yet"
    case .notLoaded(let reason): "the cache begins empty: \(reason)"
    case .saved(let save, let time):
      "cache: \(counted(save.entries)) saved in \(time.milliseconds) ms, \(save.octets) octets"
    case .notSaved(let reason): "the cache is not saved: \(reason)"
    case .savedAgain(let save): "the cache is saved again: \(counted(save.entries))"
    }
  }
}

private func counted(_ entries: Int) -> String { entries == 1 ? "1 entry" : "\(entries) entries" }

/// Keeps a cache beyond a restart. Its loop only: another thread only hands results over.
public final class CacheKeeper: @unchecked Sendable {
  /// What the numbers in the entries stand for; set again when that changes.
  public var meanings: CacheMeanings

  /// Whether a file is being read or written, with the numbers that counted when that began.
  public var isBusy: Bool { work != nil }

  private let cache: MessageCache
  private let file: CacheFile
  private let loop: any Loop
  private let interval: Duration
  private let startErrand: (String, @escaping @Sendable () -> Void) -> Errand?
  private let note: (CacheNote) -> Void
  private var work: Work?
  private var timer: LoopTimer?
  private var whenLoaded: (([LoadedEntry]) -> Void)?
  /// How much had been inserted when the last save that succeeded began.
  private var savedChanges: UInt64 = 0
  private var lastProblem: String?
  /// Who waits for a save that has begun, and who for one that begins after it.
  private var served: [SaveWaiter] = []
  private var waiting: [SaveWaiter] = []

  /// Seconds between two saves: `kill -9` loses no more than that.
  public static let usualInterval = Duration.seconds(600)
  /// How long the end of the program waits for a disk.
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
    /// Why a save would fail now.
    let problem = Mutex<FileProblem?>(nil)
    let loaded = Mutex<[LoadedEntry]>([])
    nonisolated(unsafe) var errand: Errand?

    init(_ kind: Kind) { self.kind = kind }
  }

  /// Does nothing before `start`.
  ///
  /// - Parameters:
  ///   - interval: between two saves; there is none while nothing was inserted.
  ///   - note: called on the loop.
  public convenience init(
    _ cache: MessageCache, _ file: CacheFile, _ meanings: CacheMeanings, on loop: any Loop,
    every interval: Duration = CacheKeeper.usualInterval, note: @escaping (CacheNote) -> Void
  ) {
    self.init(cache, file, meanings, on: loop, every: interval, startErrand: { Errand.start($0, $1) }, note: note)
  }

  /// - Parameter startErrand: does the work, now or on another thread; nil where it has been done.
  init(
    _ cache: MessageCache, _ file: CacheFile, _ meanings: CacheMeanings, on loop: any Loop, every interval: Duration,
    startErrand: @escaping (String, @escaping @Sendable () -> Void) -> Errand?, note: @escaping (CacheNote) -> Void
  ) {
    self.cache = cache
    self.file = file
    self.meanings = meanings
    self.loop = loop
    self.interval = interval
    self.startErrand = startErrand
    self.note = note
  }

  /// Begins to load the file, and from then on saves what is new. Returns at once: entries come while queries are answered.
  ///
  /// - Parameter whenLoaded: called once, on the loop, with those that are still fresh; also where there is no file.
  public func start(whenLoaded: @escaping ([LoadedEntry]) -> Void = { _ in }) {
    self.whenLoaded = whenLoaded
    // Rounded up here and down when it is written: the loop's wall clock has whole seconds, and no entry may be taken for
    // younger than it is.
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

  /// Saves what is new, before it returns: for the end of the program, when the loop does not run any more.
  ///
  /// A file that was not read to its end stays as it is.
  /// - Parameter patience: how long a disk is waited for. What is not done by then is left to itself: the old file stays,
  ///   or the new one is there.
  public func close(within patience: Duration = CacheKeeper.usualPatience) {
    let deadline = BootInstant.now + patience
    timer?.cancel()
    timer = nil
    whenLoaded = nil
    guard finishWork(by: deadline, patience) else { return }
    save()
    if finishWork(by: deadline, patience) { file.leave() }
    timer?.cancel()
    timer = nil
  }

  /// Waits for the work in progress; false where it does not end in time.
  private func finishWork(by deadline: BootInstant, _ patience: Duration) -> Bool {
    guard let work else { return true }
    if let errand = work.errand, !errand.wait(atMost: max(deadline - BootInstant.now, .zero)) {
      work.isWanted.store(false, ordering: .relaxed)
      tell(.notSaved("\(file.path): not done after \(patience.milliseconds) ms"))
      return false
    }
    collect()
    return true
  }

  /// Saves what is new before its time, as when somebody has removed entries: a crash shall not bring them back.
  ///
  /// To be called from a task that prefers the loop.
  /// - Returns: why it is not saved; nil where it is.
  public func saveNow(within patience: Duration = CacheKeeper.usualPatience) async -> String? {
    await withCheckedContinuation { continuation in
      let waiter = SaveWaiter(continuation)
      waiting.append(waiter)
      waiter.timer = loop.schedule(after: patience) { [file] in
        waiter.end("\(file.path): not done after \(patience.milliseconds) ms")
      }
      if work == nil { save() }
    }
  }

  /// Begins to save, where there is something new and no save in progress.
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
    work.errand = startErrand("cache file") { [weak self, loop] in
      let note = action(work)
      work.note.withLock { $0 = note }
      Task(executorPreference: loop) { self?.collect() }
    }
  }

  /// Takes the result of what has ended; does nothing where that has been done.
  private func collect() {
    guard let work, let note = work.note.withLock({ $0 }) else { return }
    self.work = nil
    if case (.save(let changes), .saved) = (work.kind, note) { savedChanges = changes }
    if case .save = work.kind { endWaiting(&served, note.saveProblem) }
    tell(note)
    if let problem = work.problem.withLock({ $0 }) { tell(.notSaved(problem.description)) }
    if case .load = work.kind { whenLoaded?(work.loaded.withLock { $0 }) }
    whenLoaded = nil
    if waiting.isEmpty { schedule() } else { save() }
  }

  private func endWaiting(_ waiters: inout [SaveWaiter], _ problem: String?) {
    for waiter in waiters { waiter.end(problem) }
    waiters = []
  }

  private func schedule() {
    guard timer == nil, work == nil else { return }
    timer = loop.schedule(after: interval) { [weak self] in
      self?.timer = nil
      self?.save()
    }
  }

  /// The same problem again is no news.
  private func tell(_ note: CacheNote) {
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

/// Somebody who waits for a save, or for the end of his patience.
private final class SaveWaiter {
  /// The end of his patience.
  var timer: LoopTimer?
  private var continuation: CheckedContinuation<String?, Never>?

  init(_ continuation: CheckedContinuation<String?, Never>) { self.continuation = continuation }

  func end(_ problem: String?) {
    timer?.cancel()
    timer = nil
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
  /// Whole milliseconds, rounded.
  fileprivate var milliseconds: Int64 { (nanoseconds + 500_000) / 1_000_000 }
}
