// ListenerThread.swift -- a thread that runs the hot path of one UDP socket.
//
// It has no event loop: it waits in recvmmsg, which saves a system call a batch. A signal ends the wait.

import CEvent
import Glibc
import Listener
import ServiceManager
import Synchronization

/// One listener thread. The resolver's thread starts and stops it.
///
/// Of the threads that share a socket, the first one waits for queries. Each other thread is woken by the one before it
/// when that finds a full batch: threads that are not needed cost nothing, and batches stay large.
package final class ListenerThread: WatchedThread, @unchecked Sendable {
  /// The human-readable name.
  package let name: String
  private let port: UDPPort
  private let role: Role
  /// The eventfd that wakes a helper; -1 for the first thread.
  private let wakeDescriptor: Int32
  private let isWoken = Atomic<Bool>(false)
  private let stopRequested = Atomic<Bool>(false)
  private let hasEnded = Atomic<Bool>(true)
  private let rounds = Atomic<UInt64>(0)
  private var thread = pthread_t()
  private var isJoinable = false

  /// When a thread reads from the socket.
  package enum Role {
    /// It waits for queries.
    case first
    /// It reads while the threads before it cannot keep up.
    case helper
  }

  private let helper: ListenerThread?

  /// - Parameter helper: the thread to wake when this one reads a full batch.
  package init(_ port: UDPPort, _ role: Role, helper: ListenerThread?, name: String = "listener") throws(StartError) {
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

  /// Starts the thread, which reads from now on.
  ///
  /// - Throws: `StartError.other` if the system allows no more threads.
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

  /// Asks the thread to stop reading and to end; it still answers what it has received.
  ///
  /// - Returns: whether it has ended. The signal is lost if it arrives just before the thread begins to wait: while
  ///   this returns false, call it again a little later.
  package func stop() -> Bool {
    stopRequested.store(true, ordering: .releasing)
    guard !hasEnded.load(ordering: .acquiring) else { return true }
    pthread_kill(thread, ListenerThread.signal)
    return false
  }

  /// Offers the thread other tables, which it takes before the next batch. Traps if it has not taken the last ones.
  package func offer(_ tables: QueryTables) {
    port.paths.offer(tables)
    nudge()
  }

  /// Whether the thread uses the tables that were offered last, or has ended. While this returns false, call it again a
  /// little later.
  package func hasTakenTables() -> Bool {
    guard !port.paths.hasTaken(), !hasEnded.load(ordering: .acquiring) else { return true }
    nudge()
    return false
  }

  /// Waits for the thread's end; calls `stop` until then. Blocks.
  package func join() {
    while !stop() { usleep(100) }
    if isJoinable { pthread_join(thread, nil) }
    isJoinable = false
  }

  /// Rounds so far: how often the thread has read, or would have if there had been queries. Any thread.
  package var turns: UInt64 { rounds.load(ordering: .relaxed) }

  /// Makes a waiting thread go round once. The signal is lost if it arrives just before the thread begins to wait.
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
        // Before reading: a thread that finds a full batch after this wakes this one again.
        isWoken.store(false, ordering: .sequentiallyConsistent)
        while port.serve(waiting: false, whenFull: { helper?.wake() }), !stopRequested.load(ordering: .acquiring) {
          countRound()
        }
      }
    }
    hasEnded.store(true, ordering: .releasing)
  }

  /// Only this thread writes `rounds`.
  private func countRound() { rounds.store(rounds.load(ordering: .relaxed) &+ 1, ordering: .relaxed) }

  private func wake() {
    guard !isWoken.exchange(true, ordering: .sequentiallyConsistent) else { return }
    eventfd_write(wakeDescriptor, 1)
  }

  /// Ignored by default, so a stray one does no harm.
  private static let signal = SIGURG

  /// Installs a handler that does nothing, without SA_RESTART: the waiting system call returns.
  private static func handleSignal() {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in }
    sigaction(signal, &action, nil)
  }

  /// A new thread inherits the signal mask of the thread that creates it.
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
