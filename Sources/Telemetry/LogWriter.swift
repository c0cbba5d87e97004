// LogWriter.swift -- writes lines to a descriptor without ever blocking.
//
// A stalled journal or container log must not stop the nameserver. Lines that the reader does not take are buffered up
// to a limit; above it they are dropped and counted.

import Glibc
import Synchronization

/// Writes lines. Any thread.
public final class LogWriter: Sendable {
  /// The share of the buffer that a line may use.
  public enum Importance: Sendable {
    /// Half of the buffer: for lines that come in large numbers. Dropped ones are not counted here.
    case minor
    /// The whole buffer.
    case usual
  }

  private struct State: Sendable {
    /// The buffer; octets before `start` are written already.
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

  /// The kind of descriptor, which decides how to write without blocking.
  private enum Target {
    /// A descriptor of our own, opened with O_NONBLOCK.
    case own(Int32)
    /// A socket: each call passes MSG_DONTWAIT.
    case socket
    /// A regular file never blocks.
    case file
    /// A pipe or terminal that cannot be reopened: written when poll reports it ready.
    case other
  }

  /// The size of the buffer, in octets.
  public static let mostWaiting = 256 << 10
  /// PIPE_BUF: the most octets that a pipe takes atomically, and without blocking when poll reports it ready (pipe(7)).
  private static let portion = 4096

  /// The descriptor stays the caller's.
  ///
  /// - Parameter lossLine: returns a line, with its line break, that reports the number of dropped lines.
  public init(_ descriptor: Int32, lossLine: @escaping @Sendable (Int) -> String) {
    self.descriptor = descriptor
    self.lossLine = lossLine
    target = LogWriter.target(of: descriptor)
  }

  deinit { if case .own(let descriptor) = target { close(descriptor) } }

  /// O_NONBLOCK applies to the open file description, which other processes share, such as the shell at a terminal. A
  /// reopened pipe or terminal has its own; one that belongs to another user cannot be reopened.
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

  /// Sets the action to run whenever the reader falls behind. From then on, call `retry` until it returns true.
  public func whenBehind(_ action: @escaping @Sendable () -> Void) { behind.withLock { $0 = action } }

  /// Writes or buffers a line, which ends with its line break. Never blocks.
  ///
  /// - Returns: false if the line was dropped because the buffer is full.
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

  /// Whether less than a quarter of the buffer is in use.
  public var hasRoom: Bool { state.withLock { $0.count < LogWriter.mostWaiting / 4 } }

  /// Writes buffered lines without blocking.
  ///
  /// - Returns: true when the buffer is empty.
  @discardableResult
  public func retry() -> Bool {
    state.withLock { state in
      advance(&state)
      return !state.isBehind
    }
  }

  /// Writes buffered lines and blocks for up to `milliseconds`.
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

  /// The end of the next portion: whole lines if possible, because other processes may write to the same pipe.
  private func portionEnd(_ state: State) -> Int {
    let limit = state.start + LogWriter.portion
    guard limit < state.waiting.count else { return state.waiting.count }
    let lineBreak = state.waiting[state.start..<limit].lastIndex(of: UInt8(ascii: "\n"))
    return lineBreak.map { $0 + 1 } ?? limit
  }

  /// The number of octets written; 0 if the reader is not ready, negative if there will never be a reader.
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
      // A full disk may have room again later.
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
