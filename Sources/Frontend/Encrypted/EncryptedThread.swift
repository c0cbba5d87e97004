// EncryptedThread.swift -- the thread of the encrypted listeners: a loop of its own, so that no handshake delays UDP or a miss.

import EventLoop
import Glibc
import Listener
import ServiceManager
import Streams
import Synchronization

/// The thread, and what other threads may tell it. It exists only with an encrypted listener.
package final class EncryptedThread: WatchedThread, Sendable {
  package let name = "encrypted listener"
  /// Carries the resolver's answers here.
  package let outbox: StreamOutbox
  private let loop: EventLoop
  /// The thread's own once it runs.
  nonisolated(unsafe) private let frontend: EncryptedFrontend
  /// Policies that were offered and are not in use yet.
  private let offered = Atomic<Int>(0)
  private let isDrained = Atomic<Bool>(false)
  /// Looks whether all connections have closed. Of the thread only.
  nonisolated(unsafe) private let drainTimer = OwnedTimer()
  /// Of who starts and joins the thread.
  nonisolated(unsafe) private var thread = pthread_t()
  nonisolated(unsafe) private var isJoinable = false

  /// - Parameter makeFrontend: makes what the thread runs, on its loop.
  /// - Throws: `StartError.other` if the kernel provides no loop.
  package init(_ makeFrontend: (EventLoop) throws(StartError) -> EncryptedFrontend) throws(StartError) {
    do throws(EventLoopError) { loop = try EventLoop() } catch { throw .other(error.description) }
    frontend = try makeFrontend(loop)
    outbox = StreamOutbox(to: loop)
  }

  /// Serves from now on.
  ///
  /// - Throws: `StartError.other` if the system allows no more threads.
  package func start() throws(StartError) {
    loop.everyTurn { [outbox, frontend] in
      outbox.drain { frontend.deliver($0, for: $1) }
      frontend.countOpen()
    }
    let context = Unmanaged.passRetained(loop).toOpaque()
    let code = pthread_create(&thread, nil, encryptedThreadMain, context)
    isJoinable = code == 0
    guard !isJoinable else { return }
    Unmanaged<EventLoop>.fromOpaque(context).release()
    throw .other("no thread for encrypted listeners: \(String(cString: strerror(code)))")
  }

  /// Has the thread follow another policy, in one of its next turns.
  package func offer(_ policy: EncryptedPolicy) {
    offered.add(1, ordering: .relaxed)
    loop.execute { [self] in
      frontend.use(policy)
      offered.subtract(1, ordering: .releasing)
    }
  }

  /// Whether the thread follows the policy that was offered last.
  package var hasTakenPolicy: Bool { offered.load(ordering: .acquiring) == 0 }

  /// Has the thread use another certificate for handshakes from now on.
  package func use(_ pair: CertificatePair) { loop.execute { [self] in frontend.use(pair) } }

  /// Stops accepting and reading; connections close when their queries are answered.
  package func drain() {
    loop.execute { [self] in
      frontend.drain()
      awaitDrained()
    }
  }

  private func awaitDrained() {
    if frontend.count == 0 { return isDrained.store(true, ordering: .releasing) }
    drainTimer.set(after: .milliseconds(10), on: loop, for: self) { $0.awaitDrained() }
  }

  /// Whether all connections have closed since `drain`.
  package var hasDrained: Bool { isDrained.load(ordering: .acquiring) }

  /// Closes every connection, and ends the thread. Blocks until then.
  package func join() {
    guard isJoinable else { return }
    isJoinable = false
    loop.execute { [self] in
      frontend.closeAll()
      loop.everyTurn(nil)
      loop.stop()
    }
    pthread_join(thread, nil)
  }

  package var turns: UInt64 { loop.turns.load(ordering: .relaxed) }

  package func nudge() { loop.wake() }
}

private func encryptedThreadMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  pthread_setname_np(pthread_self(), "encrypted")
  Unmanaged<EventLoop>.fromOpaque(context!).takeRetainedValue().run()
  return nil
}
