// StoreStream.swift -- a connection of its own for one command that blocks, such as XREAD BLOCK 0.
//
// While the command waits there is no timer: TCP's keepalive finds a peer that is gone.

import EventLoop

/// Sends a command again and again, and passes on its replies. Loop thread only.
public final class StoreStream {
  /// Octets that one reply may have.
  public static let replyLimit = 1 << 20
  /// The pause after the store refused the user or the command.
  private static let refusalPause = Duration.seconds(60)
  /// The shortest time between two commands: whoever can write to the store can keep it answering.
  private static let pace = Duration.milliseconds(5)

  /// Called each time the connection is made, before its first command.
  public var onConnected: (() -> Void)?
  /// Called each time it has ended, or ends before it could be used.
  public var onEnded: (() -> Void)?

  /// Why it was not connected, or its command failed, the last time; nil if neither happened.
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
  /// Whether the store has answered the command since the connection last ended.
  private var hasReplied = false
  private var isClosed = false

  /// Creates a stream that is not connected; `connect` begins that. The parameters are those of `StoreClient`.
  public init(
    _ settings: StoreSettings, on loop: EventLoop, resolve: @escaping StoreResolver,
    note: @escaping (StoreEvent) -> Void
  ) {
    self.loop = loop
    dialer = StoreDialer(settings, replyLimit: StoreStream.replyLimit, on: loop, resolve: resolve)
    notes = StoreNotes(settings.address, isUp: true, on: loop, note)
  }

  deinit { end() }

  /// Whether it is connected.
  public var isConnected: Bool { connectedAt != nil }

  /// Sets what is read. To be called once.
  ///
  /// - Parameters:
  ///   - words: gives the command that is sent next: once connected, and after each reply.
  ///   - receive: gets each reply that is no error; returns whether the next command is to be sent at once. The stream pauses
  ///     otherwise, as it does after an error.
  public func read(_ words: @escaping () -> [[UInt8]], _ receive: @escaping (RESPValue) -> Bool) {
    loop.assertCurrent()
    precondition(reading == nil, "a stream reads once")
    guard !isClosed else { return }
    reading = (words, receive)
  }

  /// Connects now, also if it is connected: the next command is asked for again. From then on the stream connects as often
  /// as needed, until `disconnect`.
  public func connect() {
    disconnect()
    guard reading != nil else { return }
    open()
  }

  /// Connects at once if it waits to do so: somebody may have mended something.
  public func retry() {
    loop.assertCurrent()
    guard connection == nil, timer.isSet else { return }
    backoff.reset()
    connect()
  }

  /// Ends the connection, and does not make another one.
  public func disconnect() {
    loop.assertCurrent()
    timer.cancel()
    drop()
  }

  /// Ends the stream; nothing is called from then on.
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
    // `words` is the owner's: it may have closed the stream.
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
      notes.up("\(command) is answered again")
      let goesOn = reading?.receive(reply) ?? false
      // `receive` is the owner's: it may have connected again or closed.
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

  /// Reacts to an error reply: the same command would fail again at once.
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
      // If the next attempt succeeds, that the connection ended is no news.
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
