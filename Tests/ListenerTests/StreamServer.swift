// StreamServer.swift -- a TCP listener on its own loop and thread, whose answers the test controls.

import CEvent
import EventLoop
import Glibc
import Listener
import Testing

/// A value that closures share. The test ensures that only one thread uses it at a time.
final class Box<Value>: @unchecked Sendable {
  var value: Value
  init(_ value: Value) { self.value = value }
}

/// A listener with its table. Until `stop`, its state is for the loop's thread only.
final class StreamServer: @unchecked Sendable {
  /// The treatment of a query.
  enum Mode {
    /// It is sent back at once.
    case echo
    /// It waits until the test answers it.
    case hold
    /// It gets no answer.
    case discard
    /// Its connection is closed.
    case close
    /// That many octets are sent back.
    case answer(octets: Int)
  }

  let address: SocketAddress
  let table: TCPConnectionTable
  var mode: Mode
  /// Queries that wait for the test, in the order in which they came.
  var held: [(connection: TCPConnection, message: [UInt8])] = []
  /// The number of received queries.
  private(set) var count = 0
  let loop: EventLoop
  private var listener: TCPListener?
  private var thread = pthread_t()
  private var isRunning = true

  init(
    _ mode: Mode, at text: String = "127.0.0.1:0",
    limits: TCPLimits = TCPLimits(connections: 100, perClient: 100, idle: .seconds(30))
  ) throws {
    self.mode = mode
    loop = try EventLoop()
    table = TCPConnectionTable(limits: limits)
    let handler = Box<((TCPConnection, UnsafeBufferPointer<UInt8>) -> Void)?>(nil)
    let listener = try TCPListener(binding: #require(SocketAddress(text: text)), on: loop, table: table) {
      handler.value?($0, $1)
    }
    self.listener = listener
    address = listener.address
    handler.value = { [unowned self] in accept($0, $1) }
    let context = Unmanaged.passRetained(loop).toOpaque()
    let outcome = pthread_create(
      &thread, nil,
      { context in
        Unmanaged<EventLoop>.fromOpaque(context!).takeRetainedValue().run()
        return nil
      }, context)
    precondition(outcome == 0)
  }

  deinit { stop() }

  /// Ends the loop's thread; the test may then touch everything.
  func stop() {
    guard isRunning else { return }
    isRunning = false
    loop.stop()
    pthread_join(thread, nil)
    table.closeAll()
    listener = nil
  }

  /// Stops accepting, on the loop.
  func stopListening() { listener?.stop() }

  /// Runs `body` on the loop and waits for it.
  @discardableResult
  func onLoop<Value>(_ body: @escaping @Sendable (StreamServer) -> Value) -> Value {
    let result = Box<Value?>(nil)
    let done = Semaphore()
    loop.execute {
      result.value = body(self)
      done.signal()
    }
    done.wait()
    return result.value!
  }

  /// Waits until `condition` holds on the loop; returns false after ten seconds.
  func until(_ condition: @escaping @Sendable (StreamServer) -> Bool) -> Bool {
    let end = BootInstant.now + .seconds(10)
    while BootInstant.now < end { if onLoop(condition) { return true } }
    return false
  }

  /// Waits until that many queries wait for the test.
  func awaitHeld(_ count: Int) -> Bool { until { $0.held.count >= count } }

  private func accept(_ connection: TCPConnection, _ message: UnsafeBufferPointer<UInt8>) {
    count += 1
    switch mode {
    case .echo: connection.send(message)
    case .hold: held.append((connection, Array(message)))
    case .discard: connection.discard()
    case .close: connection.close()
    case .answer(let octets): connection.answer([UInt8](repeating: 7, count: octets))
    }
  }
}

extension TCPConnection {
  func answer(_ octets: [UInt8]) { octets.withUnsafeBufferPointer { send($0) } }
}

/// A POSIX semaphore.
final class Semaphore: @unchecked Sendable {
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  func signal() { sem_post(semaphore) }

  func wait() { while sem_wait(semaphore) != 0 {} }
}
