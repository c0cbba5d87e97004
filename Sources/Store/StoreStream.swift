// StoreStream.swift -- a separate connection for a blocking command, such as XREAD BLOCK 0.
//
// While the command blocks no timer is set: TCP keepalive detects a dead peer.

import EventLoop
import Logging

/// Sends a command repeatedly, and reports its replies. Loop thread only.
public final class StoreStream {
  /// The longest reply in octets.
  public static let replyLimit = 1 << 20
  /// Pause after the store refused the user or the command.
  private static let refusalPause = Duration.seconds(60)
  /// The shortest time between two commands. A client that keeps adding entries could otherwise keep the daemon busy.
  private static let pace = Duration.milliseconds(5)

  /// Called each time the connection is ready, before its first command.
  public var onConnected: (() -> Void)?
  /// Called each time the connection has ended, also if it was never ready.
  public var onEnded: (() -> Void)?

  /// Why the connection or its command last failed; nil once connected again.
  public private(set) var lastFailure: String?

  private let dialer: StoreDialer
  private let loop: EventLoop
  private let notes: StoreNotes
  private var connection: StoreConnection?
  private let timer = OwnedTimer()
  private var backoff = Backoff()
  private var random = SystemRandomNumberGenerator()
  private var reading: (words: () -> [[UInt8]], receive: (RESPValue) -> Bool)?
  private var connectedAt: BootInstant?
  private var askedAt: BootInstant?
  /// Whether the command has had a reply since the connection last ended.
  private var hasReplied = false
  private var isClosed = false

  /// Creates a stream; `connect` connects it. The parameters are those of `StoreClient`.
  public init(
    _ settings: StoreSettings, on loop: EventLoop, resolve: @escaping StoreResolver,
    note: @escaping (StoreEvent) -> Void
  ) {
    self.loop = loop
    dialer = StoreDialer(settings, replyLimit: StoreStream.replyLimit, on: loop, resolve: resolve)
    notes = StoreNotes(settings.address, isUp: true, on: loop, note)
  }

  deinit { end() }

  /// Whether the connection is ready.
  public var isConnected: Bool { connectedAt != nil }

  /// Sets the command and its handler. Call this once, before `connect`; a second call traps.
  ///
  /// - Parameters:
  ///   - words: returns the next command; called once connected and after each reply.
  ///   - receive: called with each reply that is not an error. Returns whether to send the next command immediately;
  ///     otherwise the stream waits for the next retry interval.
  public func read(_ words: @escaping () -> [[UInt8]], _ receive: @escaping (RESPValue) -> Bool) {
    loop.assertCurrent()
    precondition(reading == nil, "a stream reads once")
    guard !isClosed else { return }
    reading = (words, receive)
  }

  /// Connects, and reconnects as often as needed until `disconnect`. An existing connection is replaced, and `words` is
  /// called again.
  public func connect() {
    disconnect()
    guard reading != nil else { return }
    open()
  }

  /// Connects immediately if the stream waits for its next attempt, for example after a reload.
  public func retry() {
    loop.assertCurrent()
    guard connection == nil, timer.isSet else { return }
    backoff.reset()
    connect()
  }

  /// Closes the connection, and does not reconnect.
  public func disconnect() {
    loop.assertCurrent()
    timer.cancel()
    drop()
  }

  /// Closes the stream for good; nothing is called from then on.
  public func close() {
    loop.assertCurrent()
    end()
  }

  private func end() {
    isClosed = true
    (reading, onConnected, onEnded) = (nil, nil, nil)
    notes.end()
    timer.cancel()
    drop()
  }

  private func open() {
    do throws(StoreFault) {
      connection = try dialer.connect { [weak self] report in
        switch report {
        case .ready: self?.connected()
        case .ended(let fault): self?.ended(fault)
        }
      }
    } catch {
      ended(error)
    }
  }

  private func connected() {
    (connectedAt, lastFailure) = (loop.now, nil)
    onConnected?()
    ask()
  }

  private func ask() {
    guard let connection, let words = reading?.words() else { return }
    // The owner's `words` may have closed the stream.
    guard !isClosed else { return }
    askedAt = loop.now
    let name = words.first ?? []
    _ = connection.send(words, timeout: nil) { [weak self] result in self?.replied(result, to: RESPCommand.name(name)) }
  }

  private func replied(_ result: Result<RESPValue, StoreFailure>, to command: String) {
    guard !isClosed else { return }
    let connection = connection
    switch result {
    case .success(let reply):
      if reply != .null { backoff.reset() }
      hasReplied = true
      notes.up("\(command) succeeds again")
      let goesOn = reading?.receive(reply) ?? false
      // The owner's `receive` may have reconnected or closed the stream.
      guard self.connection === connection, connection != nil else { return }
      if goesOn {
        pause(max(.zero, (askedAt ?? loop.now) + StoreStream.pace - loop.now)) { $0.ask() }
      } else {
        pause(backoff.next(using: &random)) { $0.ask() }
      }
    case .failure(.error(let text)): refused(StoreError(text), command)
    case .failure: break
    }
  }

  /// Handles an error reply: the same command would fail again, so the stream reconnects after a pause.
  private func refused(_ error: StoreError, _ command: String) {
    lastFailure = "\(command) failed: \(error.text)"
    switch error.kind {
    case .identity, .permission:
      notes.down(.refused(command), .error, "\(command) was refused: \(error.text); not used, next attempt in 60 s")
      drop()
      pause(StoreStream.refusalPause) { $0.open() }
    case .unready, .cluster, .writes, .command:
      let time = backoff.next(using: &random)
      notes.down(.down, .warning, "\(command) failed: \(error.text); not used, next attempt in \(brief(time))")
      drop()
      pause(time) { $0.open() }
    }
  }

  private func ended(_ fault: StoreFault) {
    if let connectedAt, loop.now - connectedAt >= Backoff.longest { backoff.reset() }
    lastFailure = fault.text
    drop()
    switch fault {
    case .refused(let command, let error) where error.kind != .unready:
      pause(StoreStream.refusalPause) { $0.open() }
      notes.down(.refused(command), .error, "\(fault.text); not used, next attempt in 60 s")
    case .lost, .nonsense, .refused, .tls, .unreachable, .unusable:
      let time = backoff.next(using: &random)
      pause(time) { $0.open() }
      // The end of a working connection is logged only if the next attempt fails as well.
      defer { hasReplied = false }
      if case .lost = fault, hasReplied { return }
      notes.down(.down, .warning, "\(fault.text); not used, next attempt in \(brief(time))")
    }
  }

  private func pause(_ time: Duration, then action: @escaping (StoreStream) -> Void) {
    timer.set(after: time, on: loop, for: self, action)
  }

  private func drop() {
    let dropped = connection
    (connection, connectedAt) = (nil, nil)
    dropped?.close()
    if dropped != nil { onEnded?() }
  }
}
