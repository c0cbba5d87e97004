// Scene.swift -- a store on a virtual clock, with a script in place of HTTP and an owner that builds tables.

import DNSWire
import EventLoop
import Lists
import Logging
import Persistence
import TestSupport
import Testing

@testable import ListStore

/// Answers requests by a script.
final class ScriptedFetcher: ListFetching {
  enum Answer {
    case text(String, tag: String? = nil, date: String? = nil)
    case unchanged
    case fault(ListFault, retryAfter: Duration? = nil)
    /// Ends only when it is cancelled.
    case nothing
  }

  /// What is answered to each URL, in turn; the last answer stays.
  var answers: [String: [Answer]] = [:]
  /// How long each fetch takes.
  var time = Duration.seconds(2)
  private(set) var requests: [(request: ListRequest, at: BootInstant)] = []
  private(set) var inFlight = 0
  private(set) var mostInFlight = 0
  private let loop: any Loop
  private var isCancelled = false
  private var hanging: CheckedContinuation<Void, Never>?

  init(on loop: any Loop) { self.loop = loop }

  func cancel() {
    isCancelled = true
    hanging?.resume()
    hanging = nil
  }

  nonisolated(nonsending) func fetch(
    _ request: ListRequest, take: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool
  ) async -> ListReply {
    isCancelled = false
    requests.append((request, loop.now))
    inFlight += 1
    mostInFlight = max(mostInFlight, inFlight)
    defer { inFlight -= 1 }
    guard case .url(let url) = request.source.place, let answer = answers[url]?.first else {
      return .fault(.failed("no script"), retryAfter: nil)
    }
    if answers[url]!.count > 1 { answers[url]!.removeFirst() }
    await loop.sleep(for: time)
    switch answer {
    case .text(let text, let tag, let date):
      var octets = Array(text.utf8)[...]
      while !octets.isEmpty {
        guard octets.prefix(1000).withUnsafeBytes(take) else { return .fault(.failed("not taken"), retryAfter: nil) }
        octets = octets.dropFirst(1000)
      }
      return .complete(entityTag: tag, lastModified: date)
    case .unchanged: return .unchanged
    case .fault(let fault, let retryAfter): return .fault(fault, retryAfter: retryAfter)
    case .nothing:
      if !isCancelled { await withCheckedContinuation { hanging = $0 } }
      return .fault(.cancelled, retryAfter: nil)
    }
  }

  /// The times of the requests, in seconds after `start`.
  func times(after start: BootInstant) -> [Double] { requests.map { ($0.at - start) / .seconds(1) } }
}

/// A store and its owner. One thread.
final class Scene {
  let loop = SimulatedLoop()
  let folder: TemporaryFolder
  let log = LogLines()
  let fetcher: ScriptedFetcher
  let state: StateFolder
  let shelf: ListFolder
  let store: ListStore
  let start: BootInstant
  /// How long the owner takes for a table; nil for an owner that builds none.
  var buildTime: Duration? = .milliseconds(10)
  /// Why the owner cannot build tables; nil if it can.
  var failure: ListFault?
  /// Lists that it cannot read, if it cannot build tables.
  var unread: [ListSource.Place: ListFault] = [:]
  /// When `changed` was called.
  private(set) var builds: [BootInstant] = []
  /// The names of each list in the owner's table.
  private(set) var table: [ListSource.Place: [String]] = [:]
  /// Called when a file may have changed; nil if no file is watched.
  private(set) var touch: (() -> Void)?
  private(set) var watched: [String] = []
  private var counts: [ListSource.Place: Int] = [:]
  private let key = ListKey()
  private final class Relay { weak var scene: Scene? }

  /// - Parameters:
  ///   - folder: the state directory; the copies in it stay.
  ///   - mayWrite: whether the process may write there.
  init(
    in folder: TemporaryFolder = TemporaryFolder(), mayWrite: Bool = true, canWatch: Bool = true,
    mostNames: Int = ListFolder.mostNames
  ) {
    self.folder = folder
    start = loop.now
    fetcher = ScriptedFetcher(on: loop)
    state = StateFolder(path: folder.path) { _ in }
    if mayWrite { state.use() }
    let logger = log.logger
    shelf = ListFolder(state, mostNames: mostNames) { logger.log(level: $0, "\($1)") }
    let relay = Relay()
    store = ListStore(in: shelf, fetcher: fetcher, on: loop, seed: 1) { paths, changed in
      relay.scene?.watched = paths
      relay.scene?.touch = canWatch ? changed : nil
      return canWatch ? Relay() : nil
    } note: {
      logger.log(level: $0, "\($1)")
    }
    relay.scene = self
    store.changed = { relay.scene?.isAsked() }
  }

  /// The start, or a reload.
  func use(_ sources: ListSource...) {
    let texts = shelf.load(sources, keeping: store.texts)
    store.use(sources, texts)
    build(texts, in: .milliseconds(10))
  }

  private func isAsked() {
    builds.append(loop.now)
    guard let buildTime else { return }
    let (texts, failure) = (store.texts, failure)
    loop.schedule(after: buildTime) { [weak self] in
      if let failure {
        self?.store.notBuilt(failure, unread: self?.unread ?? [:])
      } else {
        self?.build(texts, in: buildTime)
      }
    }
  }

  func build(_ texts: ListTexts, in time: Duration) {
    var results: [ListSource.Place: Result<ListLoaded, ListFault>] = [:]
    for place in texts.texts.keys {
      do throws(ListFault) {
        let names = try texts[place]!.names(key, blocks: false)
        let table = ListTable([names], uses: [ListUse(list: 0, blocks: false)], key)
        let count = table.nameCounts[0]
        let before = counts[place] ?? 0
        counts[place] = count
        self.table[place] = lines(of: texts[place]!)
        results[place] = .success(
          ListLoaded(
            names: count, leftOut: names.leftOut, added: max(0, count - before), removed: max(0, before - count)))
      } catch {
        results[place] = .failure(error)
        table[place] = nil
      }
    }
    store.loaded(results, of: texts, in: time)
  }

  /// Seconds after the start at which tables were asked for.
  var buildTimes: [Double] { builds.map { ($0 - start) / .seconds(1) } }

  func report(_ index: Int = 0) -> ListReport { store.reports[index] }
}

/// Whether a number is within 10 % of another one.
func isAbout(_ wanted: Double, _ given: Double) -> Bool { abs(given - wanted) <= wanted * 0.101 }
