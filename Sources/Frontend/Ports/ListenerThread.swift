// ListenerThread.swift -- a thread that runs the hot path of one UDP socket.
//
// It has no event loop: it waits in recvmmsg, which costs a system call a batch less. A signal ends the wait.

import CEvent
import Glibc
import Listener
import ServiceManager
import Synchronization

/// One listener thread. Started and stopped by the resolver's thread.
///
/// Of the threads that share a socket the first one waits for queries. Each of the others is woken by the one before it
/// when that finds a full batch: threads that are not needed cost nothing, and batches stay large.
package final class ListenerThread: WatchedThread, @unchecked Sendable {
  /// What a person calls it.
  package let name: String
  private let port: UDPPort
  private let role: Role
  /// Wakes a helper.
  private let wakeDescriptor: Int32
  private let isWoken = Atomic<Bool>(false)
  private let stopRequested = Atomic<Bool>(false)
  private let hasEnded = Atomic<Bool>(true)
  private let rounds = Atomic<UInt64>(0)
  private var thread = pthread_t()
  private var isJoinable = false

  /// When a thread reads.
  package enum Role {
    /// It waits for queries.
    case first
    /// It reads while there is too much for the threads before it.
    case helper
  }

  private let helper: ListenerThread?

  /// - Parameter helper: the thread to wake where there is too much for this one.
  package init(
    _ port: UDPPort, _ role: Role, helper: ListenerThread?, name: String = "listener"
  ) throws(StartError) {
    self.name = name
    self.port = port
    self.role = role
    self.helper = helper
    wakeDescriptor = role == .helper ? eventfd(0, Int32(EFD_CLOEXEC)) : -1
    guard role == .first || wakeDescriptor >= 0 else {
      throw .other("no event descriptor: \(String(cString: strerror(errno)))")
    }
  }

  deinit { if wakeDescriptor >= 0 { close(wakeDescriptor) } }

  /// Starts the thread; it reads from now on.
  ///
  /// - Throws: `StartError.other` where there are as many threads as there may be.
  package func start() throws(StartError) {
    ListenerThread.handleSignal()
    hasEnded.store(false, ordering: .relaxed)
    // The thread owns a reference until it ends.
    let context = Unmanaged.passRetained(self).toOpaque()
    let code = pthread_create(&thread, nil, listenerThreadMain, context)
    isJoinable = code == 0
    guard !isJoinable else { return }
    Unmanaged<ListenerThread>.fromOpaque(context).release()
    hasEnded.store(true, ordering: .relaxed)
    throw .other("no thread for a listener: \(String(cString: strerror(code)))")
  }

  /// Asks the thread to read no more and to end; answers what it has received still.
  ///
  /// - Returns: whether it has ended. The signal is lost where it comes just before the thread begins to wait: until then
  ///   call again, a little later.
  package func stop() -> Bool {
    stopRequested.store(true, ordering: .releasing)
    guard !hasEnded.load(ordering: .acquiring) else { return true }
    pthread_kill(thread, ListenerThread.signal)
    return false
  }

  /// Gives the thread other tables, which it takes before the next batch.
  package func offer(_ tables: QueryTables) {
    port.paths.offer(tables)
    nudge()
  }

  /// Whether the thread answers by the tables that it was given last, or not at all any more. Where not, call again a
  /// little later.
  package func hasTakenTables() -> Bool {
    guard !port.paths.hasTaken(), !hasEnded.load(ordering: .acquiring) else { return true }
    nudge()
    return false
  }

  /// Waits for the thread's end, which `stop` has asked for.
  package func join() {
    while !stop() { usleep(100) }
    if isJoinable { pthread_join(thread, nil) }
    isJoinable = false
  }

  /// How often it has looked for queries, or would have had there been some.
  package var turns: UInt64 { rounds.load(ordering: .relaxed) }

  /// Makes a thread that waits go round once. Lost where it comes just before the thread begins to wait.
  package func nudge() {
    guard !hasEnded.load(ordering: .acquiring) else { return }
    pthread_kill(thread, ListenerThread.signal)
  }

  fileprivate func run() {
    ListenerThread.unblockSignal()
    while !stopRequested.load(ordering: .acquiring) {
      countRound()
      switch role {
      case .first: _ = port.serve(waiting: true) { helper?.wake() }
      case .helper:
        var count: eventfd_t = 0
        guard eventfd_read(wakeDescriptor, &count) == 0 else {
          port.paths.takeOffered()
          continue
        }
        // Before reading: whoever finds too much after that wakes it once more.
        isWoken.store(false, ordering: .sequentiallyConsistent)
        while port.serve(waiting: false, whenFull: { helper?.wake() }), !stopRequested.load(ordering: .acquiring) {
          countRound()
        }
      }
    }
    hasEnded.store(true, ordering: .releasing)
  }

  /// Only this thread writes it.
  private func countRound() { rounds.store(rounds.load(ordering: .relaxed) &+ 1, ordering: .relaxed) }

  private func wake() {
    guard !isWoken.exchange(true, ordering: .sequentiallyConsistent) else { return }
    eventfd_write(wakeDescriptor, 1)
  }

  /// Ignored where nobody handles it, so a stray one does no harm.
  private static let signal = SIGURG

  /// A handler that does nothing, without SA_RESTART: the system call that waits returns.
  private static func handleSignal() {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in }
    sigaction(signal, &action, nil)
  }

  /// A thread begins with the mask of the one that made it.
  private static func unblockSignal() {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, signal)
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
  }
}

private func listenerThreadMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  pthread_setname_np(pthread_self(), "listener")
  Unmanaged<ListenerThread>.fromOpaque(context!).takeRetainedValue().run()
  return nil
}
