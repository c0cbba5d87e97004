// SignalSource.swift -- delivers signals through a descriptor, in a process with one thread.

import Glibc

/// The pipe that the handler writes to. A plain global, because a signal handler must not run a lazy initialiser.
nonisolated(unsafe) private var signalPipe: Int32 = -1

/// Writes a signal as one octet. If the pipe is full, its reader will wake up anyway.
private func noteSignal(_ number: Int32) {
  let saved = errno
  var octet = UInt8(truncatingIfNeeded: number)
  _ = write(signalPipe, &octet, 1)
  errno = saved
}

/// Delivers signals through a descriptor while they are taken. Only one source at a time may have taken them.
final class SignalSource {
  let descriptor: Int32
  private let writer: Int32
  private let signals: [Int32]
  private let ignored: [Int32]
  private var before: [(Int32, sigaction)] = []

  /// - Parameter ignored: signals to ignore while the source is active.
  init?(_ signals: [Int32], ignoring ignored: [Int32]) {
    var ends: [Int32] = [-1, -1]
    guard pipe2(&ends, O_CLOEXEC | O_NONBLOCK) == 0 else { return nil }
    (descriptor, writer) = (ends[0], ends[1])
    self.signals = signals
    self.ignored = ignored
  }

  deinit {
    restore()
    close(descriptor)
    close(writer)
  }

  /// Starts delivery through the descriptor. Signals that were ignored before, as under nohup, stay ignored.
  func take() {
    signalPipe = writer
    for signal in signals { set(signal, noteSignal) }
    for signal in ignored { set(signal, SIG_IGN) }
  }

  /// Restores the previous signal actions.
  func restore() {
    for (signal, action) in before {
      var action = action
      sigaction(signal, &action, nil)
    }
    before = []
  }

  /// The next pending signal; nil if no signal is pending.
  func next() -> Int32? {
    var octet: UInt8 = 0
    return read(descriptor, &octet, 1) == 1 ? Int32(octet) : nil
  }

  private func set(_ signal: Int32, _ handler: @escaping @convention(c) (Int32) -> Void) {
    var old = sigaction()
    sigaction(signal, nil, &old)
    if unsafeBitCast(old.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self) {
      return
    }
    var action = sigaction()
    action.__sigaction_handler.sa_handler = handler
    sigaction(signal, &action, nil)
    before.append((signal, old))
  }
}
