// ListenerThread.swift -- a thread with a loop of its own that runs the hot path of some UDP sockets.

import EventLoop
import Glibc
import Listener

/// One listener thread. Started and stopped by the resolver's thread.
final class ListenerThread: @unchecked Sendable {
  private let loop: EventLoop
  private let ports: [UDPPort]
  private var thread = pthread_t()
  private var isRunning = false

  init(
    _ listeners: [UDPListener], tables: QueryTables, queries: ClientQueries, resolverLoop: EventLoop
  ) throws(EventLoopError) {
    let loop = try EventLoop()
    let path = QueryPath(tables)
    self.loop = loop
    ports = listeners.map { UDPPort($0, on: loop, path: path, queries: queries, resolverLoop: resolverLoop) }
  }

  /// Starts the thread; it reads from now on.
  func start() {
    for port in ports { port.start() }
    // The thread owns a reference until it ends.
    let context = Unmanaged.passRetained(self).toOpaque()
    isRunning = pthread_create(&thread, nil, listenerThreadMain, context) == 0
    precondition(isRunning, "no thread for a listener")
  }

  /// Reads no more; the thread lives on, and so do its sockets, through which answers still go.
  func stopReading() {
    loop.execute { [self] in
      for port in ports { port.stop() }
    }
  }

  /// Ends the thread and waits for it.
  func stop() {
    guard isRunning else { return }
    isRunning = false
    loop.stop()
    pthread_join(thread, nil)
  }

  fileprivate func run() { loop.run() }
}

private func listenerThreadMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  pthread_setname_np(pthread_self(), "listener")
  Unmanaged<ListenerThread>.fromOpaque(context!).takeRetainedValue().run()
  return nil
}
