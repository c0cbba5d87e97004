// ExchangeThread.swift -- the thread on which exchanges with the kernel block.
//
// The kernel holds its lock while a rule set is loaded, and a commit to a large set of intervals takes milliseconds. The
// resolver's loop must not wait for either.

import Configuration
import EventLoop
import Glibc
import Synchronization

/// What is to be done about sets.
enum SetWork: Sendable {
  case add(SetBatch)
  case look([FirewallSetName])
}

extension SetExchange {
  func run(_ work: SetWork) -> [SetReport] {
    switch work {
    case .add(let batch): add(batch)
    case .look(let sets): look(sets)
    }
  }
}

/// Takes work in its order and delivers the reports on the loop, never during `submit`. The owner bounds what waits.
protocol ExchangeLane: AnyObject {
  func submit(_ number: Int, _ work: SetWork)
  /// Takes back all work that has not begun. Does not wait.
  func close()
}

/// Called on the loop with the number of a piece of work.
typealias Deliver = (Int, [SetReport]) -> Void

/// The real lane. It has its own reference until it is closed and its last exchange has ended. Any thread.
final class ExchangeThread: ExchangeLane, Sendable {
  private let loop: EventLoop
  private let makeKernel: @Sendable () -> any SetKernel
  /// Used on the loop only.
  nonisolated(unsafe) private let deliver: Deliver
  private let state = Mutex(State())
  /// Counts the pieces of work, and the closing.
  nonisolated(unsafe) private let arrivals = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  private struct State: Sendable {
    var queue: [(number: Int, work: SetWork)] = []
    /// How many of `queue` have begun.
    var begun = 0
    var isClosed = false
  }

  /// Starts the thread.
  ///
  /// - Parameter makeKernel: called once, on the thread.
  /// - Throws: `SetFailure.error` if the system allows no more threads.
  init(
    on loop: EventLoop, makeKernel: @escaping @Sendable () -> any SetKernel, deliver: @escaping Deliver
  ) throws(SetFailure) {
    self.loop = loop
    self.makeKernel = makeKernel
    self.deliver = deliver
    sem_init(arrivals, 0, 0)
    var thread = pthread_t()
    let context = Unmanaged.passRetained(self).toOpaque()
    let code = pthread_create(&thread, nil, exchangeThreadMain, context)
    guard code == 0 else {
      Unmanaged<ExchangeThread>.fromOpaque(context).release()
      throw .error("no thread: \(String(cString: strerror(code)))")
    }
    pthread_detach(thread)
  }

  deinit {
    sem_destroy(arrivals)
    arrivals.deallocate()
  }

  func submit(_ number: Int, _ work: SetWork) {
    state.withLock { $0.queue.append((number, work)) }
    sem_post(arrivals)
  }

  func close() {
    state.withLock {
      $0.isClosed = true
      $0.queue = []
      $0.begun = 0
    }
    sem_post(arrivals)
  }

  fileprivate func run() {
    let exchange = SetExchange(makeKernel(), clock: { .now })
    while let (number, work) = next() {
      let reports = exchange.run(work)
      loop.execute { [self] in deliver(number, reports) }
    }
  }

  /// Waits for a piece of work; nil if the lane is closed.
  private func next() -> (number: Int, work: SetWork)? {
    while sem_wait(arrivals) != 0 {}
    return state.withLock { state in
      guard !state.isClosed, state.begun < state.queue.count else { return nil }
      let next = state.queue[state.begun]
      state.begun += 1
      if state.begun == state.queue.count || state.begun >= 64 {
        state.queue.removeFirst(state.begun)
        state.begun = 0
      }
      return next
    }
  }
}

private func exchangeThreadMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  pthread_setname_np(pthread_self(), "firewall sets")
  Unmanaged<ExchangeThread>.fromOpaque(context!).takeRetainedValue().run()
  return nil
}

/// The lane of a simulated loop, which has no other thread: the work is done in the loop's next turn.
final class ExchangeOnLoop: ExchangeLane {
  private let loop: any Loop
  private let exchange: SetExchange
  private let deliver: Deliver
  private var isClosed = false

  init(on loop: any Loop, _ kernel: any SetKernel, deliver: @escaping Deliver) {
    self.loop = loop
    self.deliver = deliver
    exchange = SetExchange(kernel, clock: { loop.now })
  }

  func submit(_ number: Int, _ work: SetWork) {
    loop.inNextTurn { [weak self] in
      guard let self, !isClosed else { return }
      deliver(number, exchange.run(work))
    }
  }

  func close() { isClosed = true }
}
