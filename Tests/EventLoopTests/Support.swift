// Support.swift -- threads, pipes and boxes for tests of the loop.

import EventLoop
import Glibc
import Synchronization

extension EventLoop {
  /// The number of turns so far.
  var turnCount: UInt64 { turns.load(ordering: .relaxed) }
}

/// A value that closures share. The test ensures that only one thread uses it at a time.
final class Box<Value>: @unchecked Sendable {
  var value: Value
  init(_ value: Value) { self.value = value }
}

/// A POSIX thread that runs a closure once.
final class PlainThread: @unchecked Sendable {
  private var thread = pthread_t()

  init(_ body: @escaping @Sendable () -> Void) {
    let outcome = pthread_create(&thread, nil, plainThreadMain, Unmanaged.passRetained(Box(body)).toOpaque())
    precondition(outcome == 0, "no thread: \(outcome)")
  }

  func join() { pthread_join(thread, nil) }
}

private func plainThreadMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  Unmanaged<Box<@Sendable () -> Void>>.fromOpaque(context!).takeRetainedValue().value()
  return nil
}

/// A pipe whose ends are closed on deinit.
final class Pipe: Sendable {
  let reader: Int32
  let writer: Int32

  init() throws {
    var ends: [Int32] = [-1, -1]
    guard pipe2(&ends, O_NONBLOCK | O_CLOEXEC) == 0 else { throw Failure(code: errno) }
    reader = ends[0]
    writer = ends[1]
  }

  deinit {
    close(reader)
    close(writer)
  }

  /// Makes the reader readable.
  func fill() {
    var octet: UInt8 = 1
    _ = write(writer, &octet, 1)
  }

  /// Reads all pending octets.
  func drain() {
    var octets = [UInt8](repeating: 0, count: 64)
    while read(reader, &octets, octets.count) > 0 {}
  }

  struct Failure: Error {
    let code: Int32
  }
}
