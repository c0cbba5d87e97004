// Events.swift -- file and signal events of a loop as objects.

import CEvent

/// The conditions that a file event waits for and reports.
public struct Interest: OptionSet, Sendable {
  /// libevent's bits.
  public let rawValue: Int16
  /// Creates a set from libevent's bits.
  public init(rawValue: Int16) { self.rawValue = rawValue }
  /// Readable, or closed by the peer.
  public static let read = Interest(rawValue: Int16(EV_READ))
  /// Writable.
  public static let write = Interest(rawValue: Int16(EV_WRITE))
}

/// A persistent event on a descriptor or a signal; removed on deinit. Loop thread only.
public final class LoopEvent {
  private var event: UnsafeMutablePointer<event>?
  private let handler: (Interest) -> Void

  /// Calls `handler` whenever `descriptor` is ready for `interest`. The descriptor stays the caller's.
  public init(on loop: EventLoop, descriptor: Int32, _ interest: Interest, handler: @escaping (Interest) -> Void) {
    self.handler = handler
    add(loop, descriptor, interest.rawValue | Int16(EV_PERSIST))
  }

  /// Calls `handler` whenever the process receives `signal`.
  public init(on loop: EventLoop, signal: Int32, handler: @escaping () -> Void) {
    self.handler = { _ in handler() }
    add(loop, signal, Int16(EV_SIGNAL | EV_PERSIST))
  }

  deinit { event_free(event) }

  private func add(_ loop: EventLoop, _ descriptor: Int32, _ what: Int16) {
    event = event_new(
      loop.base, descriptor, what, loopEventOccurred, Unmanaged.passUnretained(self).toOpaque())
    event_add(event, nil)
  }

  fileprivate func occurred(_ what: Int16) { handler(Interest(rawValue: what)) }
}

private func loopEventOccurred(_: Int32, _ what: Int16, _ context: UnsafeMutableRawPointer?) {
  let event = Unmanaged<LoopEvent>.fromOpaque(context!).takeUnretainedValue()
  withExtendedLifetime(event) { event.occurred(what) }
}
