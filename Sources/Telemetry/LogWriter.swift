// LogWriter.swift -- writes lines to a descriptor and never waits for whoever reads them.
//
// A journal or a container's log that is stuck must not stop the nameserver. What the reader does not take waits in a
// bounded buffer; beyond that lines are lost, and counted.

import Glibc
import Synchronization

/// Writes lines. Any thread.
public final class LogWriter: Sendable {
  /// How important it is that a line arrives.
  public enum Importance: Sendable {
    /// One of many, which leaves the others half of the room.
    case minor
    /// One that says something by itself.
    case usual
  }

  private struct State: Sendable {
    /// What the reader has not taken yet, from `start` on.
    var waiting: [UInt8] = []
    var start = 0
    var lost = 0
    var isBehind: Bool { start < waiting.count }
    var count: Int { waiting.count - start }
  }

  private let descriptor: Int32
  private let target: Target
  private let state = Mutex(State())
  private let lossLine: @Sendable (Int) -> String
  private let behind = Mutex<(@Sendable () -> Void)?>(nil)

  /// What the descriptor is, and so how it is written to without waiting.
  private enum Target {
    /// One of our own, opened without waiting.
    case own(Int32)
    /// A socket, which can be asked not to wait each time.
    case socket
    /// A file takes everything at once.
    case file
    /// A pipe of somebody else: where it is ready it takes so much without waiting.
    case other
  }

  /// Octets that may wait.
  public static let mostWaiting = 256 << 10
  /// Octets that a pipe takes whole or not at all (pipe(7)), and takes where it is said to be ready.
  private static let portion = 4096

  /// A writer to `descriptor`, which stays the caller's.
  ///
  /// - Parameter lossLine: a line, with its line break, that says how many were lost.
  public init(_ descriptor: Int32, lossLine: @escaping @Sendable (Int) -> String) {
    self.descriptor = descriptor
    self.lossLine = lossLine
    target = LogWriter.target(of: descriptor)
  }

  deinit { if case .own(let descriptor) = target { close(descriptor) } }

  /// O_NONBLOCK belongs to what all who inherited the descriptor share, a shell's terminal say. Opened anew, a pipe or
  /// a terminal has a flag of its own; where another user made it, it cannot be opened.
  private static func target(of descriptor: Int32) -> Target {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return .other }
    switch status.st_mode & S_IFMT {
    case S_IFSOCK: return .socket
    case S_IFREG: return .file
    case S_IFIFO, S_IFCHR:
      let own = open("/proc/self/fd/\(descriptor)", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
      return own >= 0 ? .own(own) : .other
    default: return .other
    }
  }

  /// Calls `action` each time when the reader begins to be too slow: `retry` has to be called until it says that nothing
  /// waits.
  public func whenBehind(_ action: @escaping @Sendable () -> Void) { behind.withLock { $0 = action } }

  /// Writes a line with its line break, now, later or, where too much waits, not at all.
  ///
  /// - Returns: whether it was taken.
  @discardableResult
  public func write(_ line: String, _ importance: Importance = .usual) -> Bool {
    var line = line
    let (isTaken, beginsToWait) = state.withLock { state in
      let wasBehind = state.isBehind
      if wasBehind { advance(&state) }
      let limit = importance == .usual ? LogWriter.mostWaiting : LogWriter.mostWaiting / 2
      guard state.count + line.utf8.count <= limit else {
        if importance == .usual { state.lost += 1 }
        return (false, false)
      }
      line.withUTF8 { state.waiting += $0 }
      advance(&state)
      return (true, !wasBehind && state.isBehind)
    }
    if beginsToWait { behind.withLock { $0 }?() }
    return isTaken
  }

  /// Whether there is room for a good deal more.
  public var hasRoom: Bool { state.withLock { $0.count < LogWriter.mostWaiting / 4 } }

  /// Writes what waits, as far as it is taken.
  ///
  /// - Returns: whether nothing waits any more.
  @discardableResult
  public func retry() -> Bool {
    state.withLock { state in
      advance(&state)
      return !state.isBehind
    }
  }

  /// Writes what waits, for no longer than so many milliseconds.
  public func finish(within milliseconds: Int) {
    for _ in 0..<max(1, milliseconds / 10) where !retry() {
      var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      _ = poll(&ready, 1, 10)
    }
    retry()
  }

  private func advance(_ state: inout State) {
    while state.isBehind {
      let end = portionEnd(state)
      let count = state.waiting.withUnsafeBufferPointer { push(UnsafeRawBufferPointer($0)[state.start..<end]) }
      guard count > 0 else {
        if count < 0 { state = State() }
        break
      }
      state.start += count
      if !state.isBehind, state.lost > 0 {
        let line = lossLine(state.lost)
        state.lost = 0
        state.waiting += line.utf8
      }
    }
    if !state.isBehind {
      state.waiting.removeAll(keepingCapacity: state.waiting.capacity <= LogWriter.portion)
      state.start = 0
    } else if state.start > LogWriter.mostWaiting / 2 {
      state.waiting.removeFirst(state.start)
      state.start = 0
    }
  }

  /// Whole lines where that is possible: others may write to the same pipe.
  private func portionEnd(_ state: State) -> Int {
    let limit = state.start + LogWriter.portion
    guard limit < state.waiting.count else { return state.waiting.count }
    let lineBreak = state.waiting[state.start..<limit].lastIndex(of: UInt8(ascii: "\n"))
    return lineBreak.map { $0 + 1 } ?? limit
  }

  /// Octets that were taken; 0 where the reader is not ready, negative where nobody will ever read them.
  private func push(_ octets: Slice<UnsafeRawBufferPointer>) -> Int {
    let octets = UnsafeRawBufferPointer(rebasing: octets)
    while true {
      let count =
        switch target {
        case .own(let own): Glibc.write(own, octets.baseAddress, octets.count)
        case .socket: send(descriptor, octets.baseAddress, octets.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        case .file: Glibc.write(descriptor, octets.baseAddress, octets.count)
        case .other: isReady ? Glibc.write(descriptor, octets.baseAddress, octets.count) : 0
        }
      if count >= 0 { return count }
      switch errno {
      case EINTR: continue
      // A full disk has room again some day.
      case EAGAIN, ENOBUFS, ENOSPC, EDQUOT: return 0
      default: return -1
      }
    }
  }

  private var isReady: Bool {
    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return poll(&ready, 1, 0) == 1 && ready.revents & Int16(POLLOUT | POLLERR) != 0
  }
}
