// OwnerLockTests.swift -- of two programs with the same path one writes, and the other says who does.

import EventLoop
import Files
import Glibc
import MessageCache
import Synchronization
import TestSupport
import Testing

@testable import Persistence

@Suite struct `The lock of a path` {
  private let folder = TemporaryFolder()

  private func lock() -> OwnerLock { OwnerLock(of: folder.path(of: "cache"), file: folder.path(of: "cache.lock")) }

  private func problem(_ lock: OwnerLock) -> String? {
    do throws(FileProblem) {
      try lock.take()
      return nil
    } catch { return error.description }
  }

  @Test func `a path's lock belongs to one program until it is released`() {
    let (first, second) = (lock(), lock())
    #expect(problem(first) == nil && problem(first) == nil)
    #expect(folder.mode("cache.lock") == 0o600)
    let line = problem(second)
    #expect(line?.contains("/cache: in use by another httpdnsd (process \(getpid())") == true, "\(line ?? "taken")")
    first.release()
    #expect(!folder.names.contains("cache.lock"))
    #expect(problem(second) == nil)
    #expect(problem(first) != nil)
  }

  @Test func `the lock of a killed program is free, though its file remains`() {
    folder.write(Array("process 1 on nowhere\n".utf8), to: "cache.lock")
    let lock = lock()
    #expect(problem(lock) == nil)
    #expect(
      folder.read("cache.lock").map { String(decoding: $0, as: UTF8.self) }?.hasPrefix("process \(getpid())") == true)
  }

  @Test func `a lock is taken again if its file was removed`() {
    let (first, second) = (lock(), lock())
    #expect(problem(first) == nil)
    unlink(folder.path(of: "cache.lock"))
    #expect(problem(second) == nil)
    #expect(problem(first) != nil)
    first.release()
    #expect(folder.names.contains("cache.lock"), "the file is the other's")
  }

  @Test func `without a folder there is no lock`() {
    #expect(problem(OwnerLock(of: "/nonexistent/cache", file: "/nonexistent/cache.lock")) == nil)
  }

  @Test func `a lock file that is not a regular file is refused`() {
    mkdir(folder.path(of: "cache.lock"), 0o700)
    #expect(problem(lock())?.contains("cache.lock: ") == true)
  }
}

@Suite struct `Two programs with one place` {
  private let folder = TemporaryFolder()
  private let loop = SimulatedLoop()
  private let notes = Notes()

  private var now: CacheTime {
    CacheTime(boot: loop.now.nanoseconds, wall: loop.wallTime * second)
  }

  private func keeper(_ cache: MessageCache) -> CacheKeeper {
    CacheKeeper(
      cache, folder.file, .usual, on: loop, every: .seconds(600),
      startTask: { _, work in
        work()
        return nil
      }, note: { [notes] in notes.add($0) })
  }

  @Test func `only the first daemon saves the cache, and the second one after its end`() {
    let (cache, rival) = (MessageCache.empty(), MessageCache.empty())
    let keepers = [keeper(cache), keeper(rival)]
    for keeper in keepers { keeper.start() }
    loop.settle()
    let refusals = notes.all.filter(\.isProblem)
    #expect(refusals.count == 1)
    #expect(refusals.first?.description.hasPrefix("the cache is not saved: \(folder.path)/cache: in use by") == true)
    let life = EntryLife(lifetime: 10_000)
    cache.insert("first.example.com", at: loop.now.nanoseconds / second, life)
    rival.insert("second.example.com", at: loop.now.nanoseconds / second, life)
    rival.insert("third.example.com", at: loop.now.nanoseconds / second, life)
    loop.advance(by: .seconds(600))
    #expect(folder.file.load(into: .empty(), .usual, at: now) == kept(1))
    keepers[0].close()
    loop.advance(by: .seconds(600))
    #expect(folder.file.load(into: .empty(), .usual, at: now) == kept(2))
    #expect(notes.all.filter(\.isProblem).count == 1, "the same again is no news")
    #expect(notes.all.last?.description == "the cache is saved again: 2 entries")
    keepers[1].close()
  }

  @Test func `a damaged file is not renamed while another daemon writes it`() {
    folder.write(Array("a letter home".utf8))
    let owner = folder.file
    #expect(throws: Never.self) { try owner.take() }
    guard case .unreadable(let reason) = folder.file.load(into: .empty(), .usual, at: .at(0)) else {
      Issue.record("it was renamed or read")
      return
    }
    #expect(reason.contains("in use by another httpdnsd"))
    #expect(folder.names.contains("cache"))
  }

  @Test func `only the first daemon writes its state, and the second one after its end`() {
    let told = Mutex<[String]>([])
    func place() -> (StateFolder, StateFile) {
      let state = StateFolder(path: folder.path) { note in told.withLock { $0.append(note.description) } }
      return (state, state.file("units") { problem in told.withLock { $0.append(problem) } })
    }
    let ((first, ofFirst), (second, ofSecond)) = (place(), place())
    ofFirst.saveNow([1])
    #expect(folder.read("units") == nil, "no daemon runs yet")
    first.use()
    second.use()
    #expect(told.withLock { $0.count } == 1)
    #expect(told.withLock { $0.first }?.contains("\(folder.path): in use by another httpdnsd (process ") == true)
    ofFirst.saveNow([1])
    ofSecond.saveNow([2])
    #expect(folder.read("units") == [1])
    first.leave()
    ofFirst.saveNow([1, 1])
    ofSecond.saveNow([2])
    #expect(folder.read("units") == [2])
    #expect(told.withLock { $0.last }?.contains("is free, and written to from now on") == true)
    #expect(told.withLock { $0.count } == 2, "the same again is no news")
  }
}
