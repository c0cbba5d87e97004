// Events.swift -- file and signal events of a loop as objects.

import CEvent

/// The conditions that a file event waits for and reports.
public struct Interest: OptionSet, Sendable {
  /// libevent's bits.
  public let rawValue: Int16
  public init(rawValue: Int16) { self.rawValue = rawValue }
  /// Readable, or closed by the peer.
  public static let read = Interest(rawValue: Int16(EV_READ))
  /// Writable.
  public static let write = Interest(rawValue: Int16(EV_WRITE))
}

/// A persistent event on a descriptor or a signal; removed on deinit. Loop thread only.
public final class LoopEvent {
  private var event: UnsafeMutablePointer<event>?
  fileprivate let handler: (Interest) -> Void

  /// Calls `handler` whenever `descriptor` is ready for `interest`. The descriptor stays the caller's.
  public init(on loop: EventLoop, descriptor: Int32, _ interest: Interest, handler: @escaping (Interest) -> Void) {
    self.handler = handler
    add(loop, descriptor, interest.rawValue | Int16(EV_PERSIST))
  }

  /// Calls `handler`, with the object that has this event as a property of its own, whenever `descriptor` is ready for
  /// `interest`. The descriptor stays the caller's.
  public convenience init<Owner: AnyObject>(
    on loop: EventLoop, descriptor: Int32, _ interest: Interest, for owner: Owner,
    handler: @escaping (Owner, Interest) -> Void
  ) {
    // The owner's end is the event's.
    self.init(on: loop, descriptor: descriptor, interest) { [unowned owner] in handler(owner, $0) }
  }

  /// The same, for an owner that waits for one condition.
  public convenience init<Owner: AnyObject>(
    on loop: EventLoop, descriptor: Int32, _ interest: Interest, for owner: Owner, handler: @escaping (Owner) -> Void
  ) {
    self.init(on: loop, descriptor: descriptor, interest, for: owner) { owner, _ in handler(owner) }
  }

  /// Calls `handler` whenever the process receives `signal`.
  public init(on loop: EventLoop, signal: Int32, handler: @escaping () -> Void) {
    self.handler = { _ in handler() }
    add(loop, signal, Int16(EV_SIGNAL | EV_PERSIST))
  }

  deinit { event_free(event) }

  private func add(_ loop: EventLoop, _ descriptor: Int32, _ what: Int16) {
    event = event_new(loop.base, descriptor, what, loopEventOccurred, Unmanaged.passUnretained(self).toOpaque())
    event_add(event, nil)
  }
}

private func loopEventOccurred(_: Int32, _ what: Int16, _ context: UnsafeMutableRawPointer?) {
  // Only the handler is retained, so that an event leaves libevent as soon as its handler releases it. If it stayed until
  // the handler's end, a descriptor that is closed and opened again there would count as watched, and never be reported.
  let handler = Unmanaged<LoopEvent>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.handler }
  handler(Interest(rawValue: what))
}
