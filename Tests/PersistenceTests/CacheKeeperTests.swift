// CacheKeeperTests.swift -- loaded once, saved when something is new and at the end, and no noise about what fails.

import EventLoop
import Glibc
import MessageCache
import TestSupport
import Testing

@testable import Persistence

@Suite struct `The keeper of a cache` {
  private let folder = TemporaryFolder()
  private let loop = SimulatedLoop()
  private let cache = MessageCache.empty()
  private let notes = Notes()

  /// One whose work is done at once, on this thread.
  private func keeper(of cache: MessageCache? = nil, path: String? = nil) -> CacheKeeper {
    CacheKeeper(
      cache ?? self.cache, path.map { CacheFile(path: $0) } ?? folder.file, .usual, on: loop, every: .seconds(600),
      startTask: { _, work in
        work()
        return nil
      }, note: { [notes] in notes.add($0) })
  }

  private func insert(_ name: String, _ life: EntryLife = EntryLife(lifetime: 10_000)) {
    cache.insert(name, at: loop.now.nanoseconds / second, life)
  }

  private var isSaved: Bool { folder.names.contains("cache") }

  @Test func `the cache is saved every ten minutes if something was inserted`() {
    let keeper = keeper()
    keeper.start()
    loop.settle()
    #expect(notes.all == [.nothingToLoad])
    loop.advance(by: .seconds(3_600))
    #expect(!isSaved)
    insert("www.example.com")
    loop.advance(by: .seconds(599))
    #expect(!isSaved)
    loop.advance(by: .seconds(1))
    #expect(isSaved)
    unlink("\(folder.path)/cache")
    loop.advance(by: .seconds(3_600))
    #expect(!isSaved)
    insert("www.example.com")
    loop.advance(by: .seconds(600))
    #expect(isSaved)
    keeper.close()
    #expect(notes.all.count == 3)
    #expect(loop.timers.earliest == nil)
  }

  @Test func `new entries are saved at the end`() {
    let keeper = keeper()
    keeper.start()
    loop.settle()
    insert("www.example.com")
    keeper.close()
    #expect(isSaved)
    let target = MessageCache.empty()
    let other = self.keeper(of: target)
    other.start()
    loop.settle()
    #expect(target.usage.entries == 1)
    guard case .loaded(let counts, _)? = notes.all.last else {
      Issue.record("\(notes.all)")
      return
    }
    #expect(counts.loaded == 1)
    unlink("\(folder.path)/cache")
    other.close()
    #expect(!isSaved, "nothing was new")
  }

  @Test func `no entry becomes younger by saving and loading`() throws {
    let keeper = keeper()
    keeper.start()
    loop.settle()
    insert("www.example.com", EntryLife(lifetime: 100))
    keeper.close()
    loop.advance(by: .milliseconds(30_900))
    let target = MessageCache.empty()
    self.keeper(of: target).start()
    let now = loop.now.nanoseconds / second
    let found = try #require(target.peek("www.example.com", at: now))
    let age = loop.now.nanoseconds - found.storedAt
    #expect(age >= 30_900_000_000 && age <= 33_000_000_000)
  }

  @Test func `a failed save is logged once and retried every ten minutes`() {
    let keeper = keeper(path: "\(folder.path)/no/such/cache")
    keeper.start()
    loop.settle()
    insert("www.example.com")
    loop.advance(by: .seconds(6_000))
    let reason = "\(folder.path)/no/such/cache: No such file or directory (user \(geteuid()))"
    #expect(notes.all == [.nothingToLoad, .notSaved(reason)])
    #expect(notes.all.last?.isProblem == true)
    mkdir("\(folder.path)/no", 0o700)
    mkdir("\(folder.path)/no/such", 0o700)
    loop.advance(by: .seconds(600))
    #expect(access("\(folder.path)/no/such/cache", F_OK) == 0)
    keeper.close()
    #expect(notes.all.count == 3)
    unlink("\(folder.path)/no/such/cache")
    rmdir("\(folder.path)/no/such")
  }

  @Test func `a damaged file is set aside with the reason, and a new one is saved`() {
    folder.write([1, 2, 3])
    let keeper = keeper()
    keeper.start()
    loop.settle()
    #expect(
      notes.all == [
        .notLoaded("\(folder.path)/cache is now \(folder.path)/cache.damaged: it is not a cache file")
      ])
    insert("www.example.com")
    keeper.close()
    #expect(folder.names == ["cache", "cache.damaged"])
  }

  @Test func `loading and saving use threads of their own`() throws {
    for number in 0..<3_000 { cache.insert("n\(number).example.com", at: BootInstant.now.nanoseconds / second) }
    let loop = try EventLoop()
    let (notes, file, cache) = (notes, folder.file, cache)
    let first = CacheKeeper(cache, file, .usual, on: loop) { notes.add($0) }
    first.start()
    first.close(within: .seconds(60))
    #expect(notes.all.count == 2)
    let other = MessageCache.empty()
    let keeper = CacheKeeper(other, file, .usual, on: loop, every: .milliseconds(1)) {
      notes.add($0)
      if case .saved = $0 { loop.stop() }
    }
    loop.schedule(after: .zero) {
      keeper.start()
      other.insert("one.more.example.com", at: BootInstant.now.nanoseconds / second)
    }
    loop.schedule(after: .seconds(60)) { loop.stop() }
    loop.run()
    keeper.close(within: .seconds(60))
    guard case .loaded(let counts, _) = notes.all[2], case .saved(let save, _) = notes.all[3] else {
      Issue.record("\(notes.all)")
      return
    }
    #expect(counts.loaded == 3_000)
    #expect(save.entries == 3_001)
    #expect(notes.all.allSatisfy { !$0.isProblem })
  }

  @Test func `a file that was not read to its end is not replaced`() throws {
    insert("www.example.com")
    _ = try folder.file.save(cache, .usual, at: .at(1_000))
    let before = folder.read()
    let other = MessageCache.empty()
    // Its thread waits for what comes out of a pipe, and nothing does before the end of the test.
    var pipe: [Int32] = [-1, -1]
    #expect(pipe2(&pipe, O_CLOEXEC) == 0)
    let (input, output) = (pipe[0], pipe[1])
    let task = BlockingTask.start("never") {
      var octet: UInt8 = 0
      _ = read(input, &octet, 1)
      close(input)
    }
    defer { close(output) }
    let keeper = CacheKeeper(
      other, folder.file, .usual, on: loop, every: .seconds(600), startTask: { _, _ in task },
      note: { [notes] in notes.add($0) })
    keeper.start()
    other.insert("new.example.com", at: 1_000)
    keeper.close(within: .milliseconds(1))
    #expect(folder.read() == before)
    #expect(notes.all == [.notSaved("\(folder.path)/cache: not done after 1 ms")])
  }

  @Test func `fresh loaded entries are reported once`() {
    let first = keeper()
    var told: [[LoadedEntry]] = []
    first.start { told.append($0) }
    loop.settle()
    #expect(told.map(\.count) == [0])
    var hot = EntryLife(lifetime: 10_000)
    (hot.heat, hot.staleFor, hot.source) = (3, 86_400, 1)
    insert("www.example.com", hot)
    var short = EntryLife(lifetime: 5)
    short.staleFor = 86_400
    insert("short.example.com", short)
    loop.advance(by: .seconds(600))
    first.close()
    #expect(told.count == 1)
    let target = MessageCache.empty()
    let second = keeper(of: target)
    second.start { told.append($0) }
    loop.settle()
    #expect(target.usage.entries == 2)
    #expect(told.last?.map(\.life.heat) == [3])
    #expect(told.last?.map(\.isNXDOMAIN) == [false])
    let loaded = told.last?.first
    #expect(loaded.flatMap { target.state(hash: $0.hash) }?.storedAt == loaded?.storedAt)
    #expect(told.count == 2)
  }
}

@Suite struct `A save before its time` {
  private let folder = TemporaryFolder()
  private let loop = SimulatedLoop()
  private let cache = MessageCache.empty()

  /// Work that is done when a test wants it.
  private final class Works: @unchecked Sendable {
    var waiting: [@Sendable () -> Void] = []
  }

  private func keeper(_ works: Works, path: String? = nil) -> CacheKeeper {
    CacheKeeper(
      cache, path.map { CacheFile(path: $0) } ?? folder.file, .usual, on: loop, every: .seconds(600),
      startTask: { _, work in
        works.waiting.append(work)
        return nil
      }, note: { _ in })
  }

  private func perform(_ works: Works) {
    guard !works.waiting.isEmpty else { return }
    works.waiting.removeFirst()()
    loop.settle()
  }

  private final class Ends: @unchecked Sendable {
    var all: [String?] = []
  }

  private func save(_ keeper: CacheKeeper, _ ends: Ends) {
    loop.startTask { ends.all.append(await keeper.saveNow()) }
    loop.settle()
  }

  @Test func `a save on request replaces the file before it returns, unless nothing is new`() {
    let (works, ends) = (Works(), Ends())
    let keeper = keeper(works)
    keeper.start()
    perform(works)
    cache.insert("www.example.com", at: loop.now.nanoseconds / second)
    save(keeper, ends)
    #expect(ends.all.isEmpty && !folder.names.contains("cache"))
    perform(works)
    #expect(ends.all == [nil] && folder.names.contains("cache"))
    save(keeper, ends)
    #expect(ends.all == [nil, nil] && works.waiting.isEmpty)
    keeper.close()
  }

  @Test func `a save on request follows one in progress`() {
    let (works, ends) = (Works(), Ends())
    let keeper = keeper(works)
    keeper.start()
    perform(works)
    cache.insert("a.example.com", at: loop.now.nanoseconds / second)
    loop.advance(by: .seconds(600))
    #expect(works.waiting.count == 1)
    cache.insert("b.example.com", at: loop.now.nanoseconds / second)
    save(keeper, ends)
    perform(works)
    #expect(ends.all.isEmpty && works.waiting.count == 1)
    perform(works)
    #expect(ends.all == [nil])
    keeper.close()
  }

  @Test func `a save on request returns its failure, and ends in time`() {
    let (works, ends) = (Works(), Ends())
    let keeper = keeper(works, path: "\(folder.path)/none/cache")
    keeper.start()
    perform(works)
    cache.insert("a.example.com", at: loop.now.nanoseconds / second)
    save(keeper, ends)
    perform(works)
    #expect(ends.all.count == 1 && ends.all[0]?.contains("No such file or directory") == true)
    save(keeper, ends)
    loop.advance(by: CacheKeeper.usualPatience)
    #expect(ends.all.count == 2 && ends.all[1]?.contains("not done after 5000 ms") == true)
    perform(works)
    #expect(ends.all.count == 2)
    keeper.close()
  }
}
