// StoreClient.swift -- a connection to the store that helps or is absent: callers never wait for a store that is down.
//
// While the store fails ("open", as of a breaker) every call fails at once; a PING in time ends that. Attempts come from
// timers, and only while somebody wants the store, so that an idle daemon is not woken.

import EventLoop

/// The link to one store. Loop thread only.
public final class StoreClient: StoreLink {
  /// Called each time the store becomes usable, never during a call.
  public var onUp: (() -> Void)?
  /// Called each time it is no longer usable, except by `close`.
  public var onDown: (() -> Void)?

  private enum State {
    /// Nothing was tried yet.
    case idle
    case connecting
    /// A PING is on its way over a connection that lives.
    case checking
    case up
    /// Not used until a timer fires.
    case backingOff
    /// Not used until somebody wants it, or for ten minutes.
    case dormant
    case closed
  }

  /// The time between attempts that nobody wants.
  private static let idleRetryInterval = Duration.seconds(600)
  /// The time that what was refused rests: the user, a command, or all writes. Only tests change it.
  var refusalPause = Duration.seconds(60)
  /// PINGs without an answer after which a connection is replaced.
  private static let checkLimit = 3

  private let dialer: StoreDialer
  private let loop: EventLoop
  private let notes: StoreNotes
  private var state = State.idle
  private var since: BootInstant
  private var connection: StoreConnection?
  private let timer = OwnedTimer()
  /// Whether somebody called since the last attempt.
  private var isUseRequested = false
  private var backoff = Backoff()
  private var window = TimeoutWindow()
  private var failedChecks = 0
  private var random = SystemRandomNumberGenerator()
  private var writesPausedUntil: BootInstant?
  /// Why writes failed; nil once one has succeeded again.
  private var writeFailure: String?
  /// Commands that the user lacks the permission for, each with the error and the end of its rest, until one succeeds.
  private var refusedCommands: [String: (error: String, until: BootInstant)] = [:]
  /// Commands that were not sent, whose callers are notified in the next turn.
  private var unsent: [(failure: StoreFailure, done: Completion?)] = []
  private let unsentTimer = OwnedTimer()
  private var lastFailure: String?
  private var latency = MovingMedian()
  private var (calls, timeouts, errors) = (0 as UInt64, 0 as UInt64, 0 as UInt64)

  /// Creates a link that is not connected; `start` begins that.
  ///
  /// - Parameters:
  ///   - resolve: finds the addresses of the store's host.
  ///   - note: takes lines for the log: changes of state, and at most one line of a kind a minute.
  public init(
    _ settings: StoreSettings, on loop: EventLoop, resolve: @escaping StoreResolver,
    note: @escaping (StoreEvent) -> Void
  ) {
    self.loop = loop
    dialer = StoreDialer(settings, replyLimit: RESPReader.replyLimit, on: loop, resolve: resolve)
    notes = StoreNotes(settings.address, on: loop, note)
    since = loop.now
  }

  deinit { end() }

  /// Whether commands may be sent.
  public var isUp: Bool { state == .up }

  /// Whether the store is up, and has not refused a write within the last minute.
  public var mayWrite: Bool { isUp && (writesPausedUntil.map { $0 <= loop.now } ?? true) }

  /// The state and the counters since the link was created.
  public var report: StoreReport {
    loop.assertCurrent()
    let text =
      switch state {
      case .idle: "not connected yet"
      case .connecting: "connecting"
      case .checking: "being checked"
      case .up: complaint.map { "up, without \($0.missing)" } ?? "up"
      case .backingOff, .dormant: "not used"
      case .closed: "closed"
      }
    return StoreReport(
      state: text, isUp: isUp, since: since, lastFailure: lastFailure, complaint: isUp ? complaint?.text : nil,
      latency: latency.value, calls: calls, timeouts: timeouts, errors: errors)
  }

  /// What the store does not do although it is up, and its words for that.
  private var complaint: (missing: String, text: String)? {
    if let writeFailure { return ("writes", writeFailure) }
    guard let first = refusedCommands.min(by: { $0.key < $1.key }) else { return nil }
    return (refusedCommands.keys.sorted().joined(separator: ", "), first.value.error)
  }

  /// Connects now, and from now on as often as needed.
  public func start() {
    loop.assertCurrent()
    if state == .idle { attempt() }
  }

  /// Tries at once what rests: somebody may have mended it.
  public func retry() {
    loop.assertCurrent()
    if writesPausedUntil != nil { writesPausedUntil = loop.now }
    for name in refusedCommands.keys { refusedCommands[name]?.until = loop.now }
    guard state == .backingOff || state == .dormant else { return }
    backoff.reset()
    attempt()
  }

  /// Ends the link. Every caller that waits is notified before it returns; later calls fail with `.closed`.
  public func close() {
    loop.assertCurrent()
    end()
  }

  private func end() {
    guard state != .closed else { return }
    set(.closed)
    notes.end()
    timer.cancel()
    drop(.closed)
    unsentTimer.cancel()
    let refused = unsent
    unsent = []
    for (failure, done) in refused { done?(.failure(failure)) }
  }

  // MARK: - Commands

  /// Says that the store would be used if it were up, so that a connection is tried sooner.
  public func requestUse() {
    loop.assertCurrent()
    isUseRequested = true
    if state == .dormant { backOff(for: .zero) }
  }

  /// Sends a command; fails at once, though not during this call, while the store is not up.
  public func call(_ words: [[UInt8]], timeout: Duration, _ done: @escaping Completion) {
    loop.assertCurrent()
    isUseRequested = true
    send(words, timeout: timeout, done)
  }

  /// Sends a command for which no client waits; that alone does not make a store wanted that is down.
  public func post(_ words: [[UInt8]], _ done: Completion?) {
    loop.assertCurrent()
    send(words, timeout: nil, done)
  }

  private func send(_ words: [[UInt8]], timeout: Duration?, _ done: Completion?) {
    guard state == .up, let connection else { return failUnsent(state == .closed ? .closed : .open, done) }
    let name = words.first ?? []
    if let error = refusal(of: name) { return failUnsent(.error(error), done) }
    let begin = loop.now
    let isSent = connection.send(words, timeout: timeout) { [weak self] result in
      self?.replied(result, to: name, since: begin)
      done?(result)
    }
    guard isSent else { return failUnsent(.tooManyWaiting, done) }
    calls += 1
  }

  private func refusal(of name: [UInt8]) -> String? {
    guard !refusedCommands.isEmpty else { return nil }
    let name = RESPCommand.name(name)
    guard let refusal = refusedCommands[name], refusal.until > loop.now else { return nil }
    return refusal.error
  }

  /// Notifies a caller in the next turn that nothing was sent.
  private func failUnsent(_ failure: StoreFailure, _ done: Completion?) {
    // Nothing of a closed link may stay with the loop, except the promise to the caller.
    guard state != .closed else {
      if let done { loop.inNextTurn { done(.failure(failure)) } }
      return
    }
    if isUseRequested, state == .dormant { backOff(for: .zero) }
    guard done != nil || failure == .tooManyWaiting else { return }
    unsent.append((failure, done))
    if !unsentTimer.isSet { unsentTimer.set(after: .zero, on: loop, for: self) { $0.notifyUnsent() } }
  }

  private func notifyUnsent() {
    let refused = unsent
    unsent = []
    for (failure, done) in refused {
      if failure == .tooManyWaiting { timedOut() }
      done?(.failure(failure))
    }
  }

  // MARK: - Replies

  private func replied(_ result: Result<RESPValue, StoreFailure>, to name: [UInt8], since begin: BootInstant) {
    switch result {
    case .success:
      latency.add(loop.now - begin)
      backoff.reset()
      if complaint != nil { succeeded(name) }
    case .failure(.timeout): timedOut()
    case .failure(.error(let text)):
      errors += 1
      failed(StoreError(text), of: RESPCommand.name(name))
    case .failure: break
    }
  }

  /// A command succeeded while something is known to fail.
  ///
  /// What was sent before the failure proves nothing: the rest after it has to be over.
  private func succeeded(_ name: [UInt8]) {
    let command = RESPCommand.name(name)
    if let refusal = refusedCommands[command], refusal.until <= loop.now {
      refusedCommands[command] = nil
      notes.line(.accepted(command), .info, "\(command) is accepted again")
    }
    guard writeFailure != nil, let end = writesPausedUntil, end <= loop.now, RESPCommand.adds(name) else { return }
    (writeFailure, writesPausedUntil) = (nil, nil)
    notes.line(.accepted("writes"), .info, "writes are accepted again")
  }

  private func timedOut() {
    timeouts += 1
    guard window.add(loop.now), state == .up else { return }
    open(.down, .warning, "\(TimeoutWindow.limit) replies late within \(brief(TimeoutWindow.span))")
  }

  /// Reacts to an error reply.
  private func failed(_ error: StoreError, of command: String) {
    guard state == .up || state == .checking || state == .connecting else { return }
    switch error.kind {
    case .command: break
    case .permission where command != "PING":
      refusedCommands[command] = (error.text, loop.now + refusalPause)
      notes.line(.refused(command), .error, "\(command) was refused, next attempt in 60 s: \(error.text)")
    case .identity, .permission:
      open(
        .identity, .error, "\(command) was refused: \(error.text)", for: refusalPause, dropsConnection: true)
    case .writes: pauseWrites(error)
    case .unready: open(.down, .warning, error.text)
    case .cluster: open(.cluster, .warning, "Redis Cluster is not supported: \(error.text)")
    }
  }

  private func pauseWrites(_ error: StoreError) {
    (writeFailure, writesPausedUntil) = (error.text, loop.now + refusalPause)
    notes.line(.writes(error.code), .warning, "no writes for 60 s: \(error.text)")
  }

  // MARK: - Attempts

  private func attempt() {
    timer.cancel()
    isUseRequested = false
    if connection != nil { return check() }
    set(.connecting)
    do throws(StoreFault) {
      connection = try dialer.connect { [weak self] report in
        switch report {
        case .ready(let time, let complaint): self?.connected(time, complaint)
        case .ended(let fault): self?.ended(fault)
        }
      }
    } catch {
      ended(error)
    }
  }

  private func connected(_ time: Duration, _ complaint: StoreError?) {
    // Another store may take what the one before refused.
    (writeFailure, writesPausedUntil, refusedCommands) = (nil, nil, [:])
    if let complaint { pauseWrites(complaint) }
    if time <= dialer.settings.timeout { comeUp(time) } else { check() }
  }

  /// Asks whether a connection that lives can be used.
  private func check() {
    set(.checking)
    let begin = loop.now
    let time = dialer.settings.timeout
    let isSent = connection?.send([Array("PING".utf8)], timeout: time) { [weak self] result in
      self?.checked(result, since: begin)
    }
    if isSent != true { checkFailed("too many replies are missing") }
  }

  private func checked(_ result: Result<RESPValue, StoreFailure>, since begin: BootInstant) {
    guard state == .checking else { return }
    switch result {
    case .success: comeUp(loop.now - begin)
    case .failure(.error(let text)):
      let error = StoreError(text)
      failed(error, of: "PING")
      // A store that cannot save to its disk answers so to PING as well.
      if error.kind == .writes { comeUp(loop.now - begin) }
      if error.kind == .command { open(.down, .warning, "PING failed: \(text)") }
    case .failure(.timeout): checkFailed("no reply to PING within \(brief(dialer.settings.timeout))")
    case .failure: break
    }
  }

  private func checkFailed(_ reason: String) {
    failedChecks += 1
    // What hangs may be this connection alone: its server, or something in between, was replaced.
    open(.down, .warning, reason, dropsConnection: failedChecks >= StoreClient.checkLimit)
  }

  private func comeUp(_ time: Duration) {
    latency.add(time)
    failedChecks = 0
    window.reset()
    set(.up)
    notes.up("up")
    onUp?()
  }

  /// Handles the end of the connection, or that there will be none.
  private func ended(_ fault: StoreFault) {
    switch fault {
    case .refused(let command, let error):
      switch error.kind {
      case .unready: open(.down, .warning, fault.text, dropsConnection: true)
      case .cluster: open(.cluster, .warning, "Redis Cluster is not supported: \(error.text)", dropsConnection: true)
      default: open(.refused(command), .error, fault.text, for: refusalPause, dropsConnection: true)
      }
    case .nonsense: open(.nonsense, .warning, fault.text, dropsConnection: true)
    case .tls, .unreachable, .unusable, .lost: open(.down, .warning, fault.text, dropsConnection: true)
    }
  }

  /// Stops using the store until a PING is answered in time. Callers that wait are notified; those of `post` get their
  /// replies if the connection lives.
  ///
  /// - Parameter time: the pause; nil for the next one of the backoff.
  private func open(
    _ kind: StoreNotes.Kind, _ level: StoreEvent.Level, _ reason: String, for time: Duration? = nil,
    dropsConnection: Bool = false
  ) {
    if state == .up {
      if loop.now - since >= Backoff.longest { backoff.reset() }
      // One attempt follows in any case, since the store was in use.
      isUseRequested = true
    }
    let pause = time ?? backoff.next(using: &random)
    lastFailure = reason
    backOff(for: pause)
    notes.down(kind, level, "\(reason); not used, next attempt in \(brief(pause))")
    if dropsConnection { drop(.closed) } else { connection?.abandon(.open, timedOnly: true) }
  }

  private func backOff(for pause: Duration) {
    set(.backingOff)
    timer.set(after: pause, on: loop, for: self) { $0.pauseEnded(after: pause) }
  }

  private func pauseEnded(after pause: Duration) {
    guard !isUseRequested else { return attempt() }
    set(.dormant)
    timer.set(after: StoreClient.idleRetryInterval - pause, on: loop, for: self) { $0.attempt() }
  }

  /// Closes the connection and notifies its callers.
  private func drop(_ failure: StoreFailure) {
    let dropped = connection
    connection = nil
    failedChecks = 0
    dropped?.close()
    dropped?.abandon(failure)
  }

  private func set(_ new: State) {
    // What `since` shows is how long the store has been in use, or not.
    let wasUp = isUp
    if wasUp != (new == .up) || new == .closed { since = loop.now }
    state = new
    if wasUp, new != .up, new != .closed { onDown?() }
  }
}
