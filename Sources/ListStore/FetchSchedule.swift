// FetchSchedule.swift -- when each list is fetched, and the fetches themselves, one at a time.
//
// After a success a list is due after its interval, after a failure in 1, 2, 4 … 60 minutes, each ±10 %, so that many daemons do
// not ask at the same time. A list whose text exceeds the limits is due after its interval, since each try costs the server a
// whole text.

import EventLoop
import Glibc
import Persistence

/// The fetches of all lists. Owned by the store; resolver's loop only.
final class FetchSchedule {
  /// Receives what each fetch has brought.
  var took: (ListEntry, ListOutcome) -> Void = { _, _ in }
  /// The names that the text of a list may have.
  var room: (ListEntry) -> Int = { _ in 0 }

  private let fetcher: any ListFetching
  private let folder: ListFolder
  private let loop: any Loop
  private var jitter: JitterGenerator
  private var entries: [ListEntry] = []
  private var current: ListEntry?
  /// Whether the network or the list's settings have changed during the current fetch.
  private var mayRetryAtOnce = false
  private var isStarted = false
  private var isStopped = false
  private let timer = OwnedTimer()

  private static let firstPause = Duration.seconds(60)
  private static let longestPause = Duration.seconds(3600)

  init(_ fetcher: any ListFetching, _ folder: ListFolder, on loop: any Loop, seed: UInt64) {
    (self.fetcher, self.folder, self.loop) = (fetcher, folder, loop)
    jitter = JitterGenerator(seed: seed)
  }

  func start() {
    isStarted = true
    proceed()
  }

  func stop() {
    isStopped = true
    timer.cancel()
    entries = []
    if current != nil { fetcher.cancel() }
  }

  /// The lists that are fetched from now on. A fetch of another one ends.
  func follow(_ all: [ListEntry]) {
    entries = all.filter { !$0.isFile }
    if let current, !isFollowed(current) { fetcher.cancel() }
    for entry in entries where entry !== current {
      // A shorter interval counts at once.
      let latest = entry.failures == 0 ? loop.now + untilDue(entry) : entry.due ?? loop.now
      entry.due = min(entry.due ?? latest, latest)
    }
    proceed()
  }

  /// Makes a list due, unless it is being fetched.
  func fetchNow(_ entry: ListEntry) {
    if entry !== current { entry.due = loop.now }
    proceed()
  }

  /// Makes a list due as if none of its fetches had failed, or has a fetch in flight that fails tried again at once.
  func settingsHaveChanged(_ entry: ListEntry) {
    guard !entry.isFile else { return }
    entry.failures = 0
    if entry === current { mayRetryAtOnce = true } else { entry.due = loop.now }
  }

  /// Makes all lists due that could not be fetched.
  func networkHasChanged() {
    for entry in entries where entry.failures > 0 && entry !== current { entry.due = loop.now }
    mayRetryAtOnce = current != nil
    proceed()
  }

  /// The time until the text of a list is older than its interval.
  private func untilDue(_ entry: ListEntry) -> Duration {
    guard entry.text != nil, let confirmedAt = entry.confirmedAt else { return .zero }
    let age = Duration.seconds(loop.wallTime - confirmedAt)
    // A time in the future says nothing.
    return age < .zero ? .zero : max(.zero, varied(entry.source.interval) - age)
  }

  private func varied(_ time: Duration) -> Duration { time * Double.random(in: 0.9...1.1, using: &jitter) }

  private func proceed() {
    guard isStarted, !isStopped, current == nil else { return }
    let due = entries.filter { $0.due != nil }.min { $0.due! < $1.due! }
    guard let entry = due, let time = entry.due else { return timer.cancel() }
    guard time <= loop.now else { return timer.set(at: time, on: loop, for: self) { $0.proceed() } }
    (current, mayRetryAtOnce) = (entry, false)
    entry.due = nil
    loop.startTask { [self] in
      // Nothing was there to cancel if it has been stopped or removed meanwhile.
      let reply = isFollowed(entry) ? await fetch(entry) : nil
      current = nil
      if let (outcome, retryAfter) = reply, isFollowed(entry) {
        setDue(entry, outcome, retryAfter)
        took(entry, outcome)
      }
      proceed()
    }
  }

  private func isFollowed(_ entry: ListEntry) -> Bool { entries.contains { $0 === entry } }

  private func fetch(_ entry: ListEntry) async -> (ListOutcome, retryAfter: Duration?) {
    let present = entry.text
    let draft = ListDraft(of: entry.source, room: room(entry), in: folder)
    let request = ListRequest(
      source: entry.source, entityTag: present?.details.entityTag, lastModified: present?.details.lastModified)
    let reply = await fetcher.fetch(request) { draft.append($0) }
    guard !isStopped else { return (.fault(.cancelled), nil) }
    switch reply {
    case .complete(let tag, let date):
      let origin = ListDraft.Origin(entityTag: tag, lastModified: date)
      let time = loop.wallTime
      return (
        await inBackground(on: loop) {
          let outcome = draft.finish(origin, after: present)
          outcome.text?.confirm(at: time)
          return outcome
        }, nil
      )
    case .unchanged:
      guard let present, entry.text != nil else { return (.fault(.failed("status 304 without a text")), nil) }
      let time = loop.wallTime
      return (
        await inBackground(on: loop) {
          // The disk may take it now.
          let outcome = present.isInMemory ? draft.copy(present) : .unchanged(nil)
          (outcome.text ?? present).confirm(at: time)
          return outcome
        }, nil
      )
    case .fault(let fault, let retryAfter): return (.fault(draft.fault ?? fault), retryAfter)
    }
  }

  private func setDue(_ entry: ListEntry, _ outcome: ListOutcome, _ retryAfter: Duration?) {
    guard case .fault(let fault) = outcome else {
      entry.failures = 0
      entry.due = loop.now + varied(entry.source.interval)
      return
    }
    let pause = FetchSchedule.firstPause * (1 << min(entry.failures, 6))
    let least = max(min(pause, FetchSchedule.longestPause), retryAfter ?? .zero)
    entry.failures += 1
    let wait = fault.isCostly ? entry.source.interval : least
    entry.due = mayRetryAtOnce ? loop.now : loop.now + varied(wait)
  }
}

/// Does blocking work on a thread that gives way to all others. On a simulated loop, and if no thread can be created, it is
/// done at once.
///
/// - Parameter name: of the thread.
package func inBackground<Value: Sendable>(
  _ name: String = "lists", on loop: any Loop, _ work: @escaping @Sendable () -> Value
) async -> Value {
  let caller = pthread_self()
  return await BlockingTask.value(name, on: loop) {
    // The caller's priority would stay low.
    if pthread_self() != caller { lowerPriority() }
    return work()
  }
}
