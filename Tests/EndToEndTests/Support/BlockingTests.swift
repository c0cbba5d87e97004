// BlockingTests.swift -- tests that wait in system calls run on threads of their own, some at a time.
//
// Swift's global executor has a thread for each core; a test that blocks one of them holds up all others.

import Foundation
import Testing

extension Trait where Self == BlockingTests {
  /// The tests of a suite may block.
  static var blocking: BlockingTests { BlockingTests() }
}

/// Runs each test of a suite on a thread where it may block.
struct BlockingTests: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  @concurrent func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(BlockingThreads.shared) { try await function() }
  }
}

/// A few threads. They never end, so that what they start does not end with them (PR_SET_PDEATHSIG is per thread).
private final class BlockingThreads: TaskExecutor, @unchecked Sendable {
  static let shared = BlockingThreads()

  /// Most of these tests wait most of the time; their programs have two cores.
  private static let count = 6

  private let condition = NSCondition()
  private var jobs: [UnownedJob] = []

  private init() {
    for _ in 0..<BlockingThreads.count {
      let thread = Thread { [self] in run() }
      thread.stackSize = 8 << 20
      thread.start()
    }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    condition.withLock {
      jobs.append(job)
      condition.signal()
    }
  }

  private func run() -> Never {
    while true { next().runSynchronously(on: asUnownedTaskExecutor()) }
  }

  private func next() -> UnownedJob {
    condition.withLock {
      while jobs.isEmpty { condition.wait() }
      return jobs.removeFirst()
    }
  }
}
