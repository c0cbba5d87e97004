// StoreClient.swift -- the client of one store, with a circuit breaker: callers never wait for a store that is down.
//
// After a failure the breaker is open: every call fails immediately, until a PING is answered in time. A timer starts
// the next attempt, after 1 to 30 s if callers have requested the store since the last one, otherwise after 10 minutes,
// so that an idle daemon rarely wakes up.

import Configuration
import EventLoop
import Logging

/// The client of one store. Loop thread only.
public final class StoreClient: StoreLink {
  /// Called each time the store becomes usable, never during a call to this object.
  public var onUp: (() -> Void)?
  /// Called each time the store is no longer usable, except after `close`.
  public var onDown: (() -> Void)?

  private enum State {
    /// Not started.
    case idle
    case connecting
    /// A PING is in flight over an existing connection.
    case checking
    case up
    /// Not used until the retry interval ends.
    case backingOff
    /// Not used until a caller requests it, or until `idleRetryInterval` ends.
    case dormant
    case closed
  }

  /// Retry interval while idle.
  private static let idleRetryInterval = Duration.seconds(600)
  /// Pause after a refusal: of the user, of a command, or of all writes. Only tests change it.
  var refusalPause = Duration.seconds(60)
  /// After this many failed PINGs the connection is replaced.
  private static let checkLimit = 3

  private let dialer: StoreDialer
  private let loop: EventLoop
  private let notes: StoreNotes
  private var state = State.idle
  private var since: BootInstant
  private var connection: StoreConnection?
  private let timer = OwnedTimer()
  /// Whether a caller has requested the store since the last attempt.
  private var isUseRequested = false
  private var backoff = Backoff()
  private var window = TimeoutWindow()
  private var failedChecks = 0
  private var random = SystemRandomNumberGenerator()
  /// No writes before this time, after one was refused; nil once writes are accepted again.
  private var writesPausedUntil: BootInstant?
  /// Why writes are refused; nil once a write has succeeded.
  private var writeFailure: String?
  /// Commands that were refused for lack of permission, each with the error and the end of its pause. Removed when the
  /// command succeeds.
  private var refusedCommands: [String: (error: String, until: BootInstant)] = [:]
  /// Commands that were not sent. Their callers are notified in the next turn of the loop.
  private var unsent: [(failure: StoreFailure, done: Completion?)] = []
  private let unsentTimer = OwnedTimer()
  private var lastFailure: String?
  private var latency = MovingMedian()
  private var (calls, timeouts, errors) = (0 as UInt64, 0 as UInt64, 0 as UInt64)

  /// Creates a client. `start` connects it.
  ///
  /// - Parameters:
  ///   - resolve: resolves the store's host name.
  ///   - note: called with lines for the log, at most one of each kind a minute; for changes of state, at most eight.
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

  /// Whether commands are sent; otherwise they fail with `.open` or `.closed`.
  public var isUp: Bool { state == .up }

  /// Whether the store is up, and the pause after a refused write is over.
  public var mayWrite: Bool { isUp && (writesPausedUntil.map { $0 <= loop.now } ?? true) }

  /// The current state, and counters since the client was created.
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
    var report = StoreReport(state: text, isUp: isUp, since: since, latency: latency.value)
    (report.lastFailure, report.complaint) = (lastFailure, isUp ? complaint?.text : nil)
    (report.calls, report.timeouts, report.errors) = (calls, timeouts, errors)
    return report
  }

  /// What the store refuses although it is up, and its error text; nil for nothing.
  private var complaint: (missing: String, text: String)? {
    if let writeFailure { return ("writes", writeFailure) }
    guard let first = refusedCommands.min(by: { $0.key < $1.key }) else { return nil }
    return (refusedCommands.keys.sorted().joined(separator: ", "), first.value.error)
  }

  /// Connects, and reconnects as often as needed until `close`. Does nothing if started already.
  public func start() {
    loop.assertCurrent()
    if state == .idle { attempt() }
  }

  /// Retries immediately, for example after a reload. Does not start a client that was not started.
  public func retry() {
    loop.assertCurrent()
    if writesPausedUntil != nil { writesPausedUntil = loop.now }
    for name in refusedCommands.keys { refusedCommands[name]?.until = loop.now }
    guard state == .backingOff || state == .dormant else { return }
    backoff.reset()
    attempt()
  }

  /// Closes the client. Commands without a reply fail with `.closed` before this returns; later ones fail in the next
  /// turn of the loop.
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

  /// Reports that the store would be used if it were up: the next attempt is sooner than `idleRetryInterval`.
  public func requestUse() {
    loop.assertCurrent()
    isUseRequested = true
    if state == .dormant { backOff(for: .zero) }
  }

  /// Sends a command. While the store is not up, `done` gets the failure in the next turn of the loop.
  public func call(_ words: [[UInt8]], timeout: Duration, _ done: @escaping Completion) {
    loop.assertCurrent()
    isUseRequested = true
    send(words, timeout: timeout, done)
  }

  /// Sends a command without a timeout, for which no client waits. Unlike `call` it does not count as a request for the
  /// store.
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

  /// The error of a command that was refused and whose pause is not over; nil if it may be sent.
  private func refusal(of name: [UInt8]) -> String? {
    guard !refusedCommands.isEmpty else { return nil }
    let name = RESPCommand.name(name)
    guard let refusal = refusedCommands[name], refusal.until > loop.now else { return nil }
    return refusal.error
  }

  /// Notifies a caller in the next turn of the loop that the command was not sent.
  private func failUnsent(_ failure: StoreFailure, _ done: Completion?) {
    // A closed client must set no timer. The completion handler must be called nevertheless.
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

  /// A command succeeded while the store refuses something: ends the refusal if the command shows that it is over.
  ///
  /// Only after the pause: until then the reply may be to a command that was sent before the refusal.
  private func succeeded(_ name: [UInt8]) {
    let command = RESPCommand.name(name)
    if let refusal = refusedCommands[command], refusal.until <= loop.now {
      refusedCommands[command] = nil
      notes.line(.accepted(command), .info, "\(command) is accepted again")
    }
    guard writeFailure != nil, let end = writesPausedUntil, end <= loop.now, StoreCommand(name)?.needsMemory == true
    else { return }
    (writeFailure, writesPausedUntil) = (nil, nil)
    notes.line(.accepted("writes"), .info, "writes are accepted again")
  }

  private func timedOut() {
    timeouts += 1
    guard window.add(loop.now), state == .up else { return }
    open(.down, .warning, "\(TimeoutWindow.limit) timeouts within \(brief(TimeoutWindow.span))")
  }

  /// Handles an error reply.
  private func failed(_ error: StoreError, of command: String) {
    guard state == .up || state == .checking || state == .connecting else { return }
    switch error.kind {
    case .command: break
    case .permission where command != "PING":
      refusedCommands[command] = (error.text, loop.now + refusalPause)
      notes.line(.refused(command), .error, "\(command) was refused, next attempt in 60 s: \(error.text)")
    case .identity, .permission:
      open(.identity, .error, "\(command) was refused: \(error.text)", for: refusalPause, dropsConnection: true)
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

  /// Checks the connection by a PING, or connects if there is none.
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
    // The new connection may be to another store: forget what was refused.
    (writeFailure, writesPausedUntil, refusedCommands) = (nil, nil, [:])
    if let complaint { pauseWrites(complaint) }
    if time <= dialer.settings.fleet.timeout { comeUp(time) } else { check() }
  }

  /// Sends a PING; the store is up again if it is answered in time.
  private func check() {
    set(.checking)
    let begin = loop.now
    let time = dialer.settings.fleet.timeout
    let isSent = connection?.send(StoreCommand.ping.words(), timeout: time) { [weak self] result in
      self?.checked(result, since: begin)
    }
    if isSent != true { checkFailed("too many commands without a reply") }
  }

  private func checked(_ result: Result<RESPValue, StoreFailure>, since begin: BootInstant) {
    guard state == .checking else { return }
    switch result {
    case .success: comeUp(loop.now - begin)
    case .failure(.error(let text)):
      let error = StoreError(text)
      failed(error, of: "PING")
      // A store that cannot save to its disk refuses PING, too.
      if error.kind == .writes { comeUp(loop.now - begin) }
      if error.kind == .command { open(.down, .warning, "PING failed: \(text)") }
    case .failure(.timeout): checkFailed("no reply to PING within \(brief(dialer.settings.fleet.timeout))")
    case .failure: break
    }
  }

  private func checkFailed(_ reason: String) {
    failedChecks += 1
    // Only this connection may be dead, for example because a server or a middlebox was replaced.
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

  /// The connection has ended, or could not be made.
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

  /// Opens the circuit breaker: the store is not used until a PING is answered in time. Commands of `call` fail with
  /// `.open`; those of `post` still get their replies. If the connection is dropped, all of them fail with `.closed`.
  ///
  /// - Parameter time: the time to the next attempt; nil for the next retry interval.
  private func open(
    _ kind: StoreNotes.Kind, _ level: Logger.Level, _ reason: String, for time: Duration? = nil,
    dropsConnection: Bool = false
  ) {
    if state == .up {
      if loop.now - since >= Backoff.longest { backoff.reset() }
      // The store was in use: make one attempt after the retry interval, even if no caller requests it.
      isUseRequested = true
    }
    let pause = time ?? backoff.next(using: &random)
    lastFailure = reason
    backOff(for: pause)
    notes.down(kind, level, "\(reason); not used, next attempt in \(brief(pause))")
    if dropsConnection { drop(.closed) } else { connection?.abandon(.open, timedOnly: true) }
  }

  /// Does not use the store for `pause`. Then the next attempt follows if a caller has requested it; otherwise the
  /// client is dormant.
  private func backOff(for pause: Duration) {
    set(.backingOff)
    timer.set(after: pause, on: loop, for: self) { $0.pauseEnded(after: pause) }
  }

  private func pauseEnded(after pause: Duration) {
    guard !isUseRequested else { return attempt() }
    set(.dormant)
    timer.set(after: StoreClient.idleRetryInterval - pause, on: loop, for: self) { $0.attempt() }
  }

  /// Closes the connection; its commands without a reply fail.
  private func drop(_ failure: StoreFailure) {
    let dropped = connection
    connection = nil
    failedChecks = 0
    dropped?.close()
    dropped?.abandon(failure)
  }

  private func set(_ new: State) {
    // `since` is when the store was last taken into use, or out of use.
    let wasUp = isUp
    if wasUp != (new == .up) || new == .closed { since = loop.now }
    state = new
    if wasUp, new != .up, new != .closed { onDown?() }
  }
}
