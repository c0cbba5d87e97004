// SignalSource.swift -- signals as something to wait for, in a program of one thread.

import Glibc

/// Where the handler writes to. A plain global: the handler must not initialise anything.
nonisolated(unsafe) private var signalPipe: Int32 = -1

/// A signal as an octet; what does not fit into the pipe any more is as good as there.
private func noteSignal(_ number: Int32) {
  let saved = errno
  var octet = UInt8(truncatingIfNeeded: number)
  _ = write(signalPipe, &octet, 1)
  errno = saved
}

/// Signals that come by a descriptor while they are taken. Only one at a time; closed with its life.
final class SignalSource {
  let descriptor: Int32
  private let writer: Int32
  private let signals: [Int32]
  private let ignored: [Int32]
  private var before: [(Int32, sigaction)] = []

  /// - Parameter ignored: signals that are thrown away meanwhile.
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

  /// From now on they come by the descriptor. What is ignored stays ignored, as under nohup.
  func take() {
    signalPipe = writer
    for signal in signals { set(signal, noteSignal) }
    for signal in ignored { set(signal, SIG_IGN) }
  }

  /// From now on they do what they did before.
  func restore() {
    for (signal, action) in before {
      var action = action
      sigaction(signal, &action, nil)
    }
    before = []
  }

  /// The next one that has come.
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
