// StoreConnection.swift -- one connection to the store, from resolving the host name to the last reply.
//
// Replies arrive in the order of their commands. A command that has timed out stays in the queue until its reply has
// arrived and is dropped, so that no reply is matched to another command.

import Ciphers
import Configuration
import EventLoop
import Glibc
import Streams

/// Resolves the store's host name. Ports of the results are ignored. If `host` is an IP address, an empty result means
/// that address.
public typealias StoreResolver = (_ host: Host) async -> [SocketAddress]

/// A connection. Owned by its client or stream, which closes it. Loop thread only.
final class StoreConnection {
  /// Events for the owner, never reported during a call to the connection.
  enum Report {
    /// The store has accepted the user and the database, and has answered a PING.
    ///
    /// - Parameters:
    ///   - latency: the time from sending these commands to the last reply.
    ///   - complaint: the error if the store refuses writes; nil otherwise.
    case ready(latency: Duration, complaint: StoreError?)
    /// The connection has ended, or could not be made. Completion handlers were not called: `abandon` does that.
    case ended(StoreFault)
  }

  /// The most commands without a reply.
  static let unansweredLimit = 256
  /// See `setUserTimeout`.
  private static let userTimeout = Duration.seconds(30)
  private static let bufferSize = 16_384
  /// No further command is sent while this many octets wait for the kernel.
  private static let unsentLimit = 4 << 20

  private let settings: StoreSettings
  private let tls: TLSClient?
  private let order: StoreAddressOrder
  /// The peer's address once connected.
  private var address: SocketAddress?
  private let loop: EventLoop
  private let report: (Report) -> Void
  private var reader: RESPReader
  private var connector: Connector?
  private var stream: ByteStream?
  private let deadline = OwnedTimer()
  /// Sent commands in order; the first `answered` of them have their reply.
  private var waiting: [WaitingCommand] = []
  private var answered = 0
  private var isClosed = false
  private(set) var isReady = false

  /// Starts to connect.
  ///
  /// - Parameter replyLimit: the longest reply in octets.
  init(
    _ settings: StoreSettings, _ tls: TLSClient?, _ order: StoreAddressOrder, replyLimit: Int,
    on loop: EventLoop,
    resolve: @escaping StoreResolver, report: @escaping (Report) -> Void
  ) {
    self.settings = settings
    self.tls = tls
    self.order = order
    self.loop = loop
    self.report = report
    reader = RESPReader(limit: replyLimit)
    deadline.set(after: settings.fleet.connectTimeout, on: loop, for: self) { $0.timeOut() }
    locate(resolve)
  }

  deinit { close() }

  /// The number of commands without a reply.
  var unanswered: Int { waiting.count - answered }

  /// Sends a command.
  ///
  /// - Parameters:
  ///   - timeout: when `done` is called with `.timeout`; nil for never.
  ///   - done: called once, never during this call.
  /// - Returns: false if not connected, or if too many commands or octets are waiting; then `done` is not called.
  func send(_ words: [[UInt8]], timeout: Duration?, _ done: @escaping StoreLink.Completion) -> Bool {
    guard let stream, unanswered < StoreConnection.unansweredLimit, stream.unsent < StoreConnection.unsentLimit else {
      return false
    }
    let command = WaitingCommand(words.first ?? [], done)
    if let timeout { command.setTimer(loop, timeout) }
    waiting.append(command)
    var octets: [UInt8] = []
    RESPCommand.compose(words, into: &octets)
    stream.write(octets)
    return true
  }

  /// Fails all commands without a reply, or only those with a timeout. Late replies are dropped.
  func abandon(_ failure: StoreFailure, timedOnly: Bool = false) {
    // Collect all handlers before calling one: it may send or close.
    let abandoned = waiting[answered...].filter { $0.isTimed || !timedOnly }.map { $0.takeDone() }
    for done in abandoned { done?(.failure(failure)) }
  }

  /// Closes the connection; nothing is reported from then on. Completion handlers are called by `abandon` only.
  func close() {
    isClosed = true
    isReady = false
    deadline.cancel()
    connector?.cancel()
    connector = nil
    stream?.close()
    stream = nil
  }

  private func end(_ fault: StoreFault) {
    guard !isClosed else { return }
    close()
    report(.ended(fault))
  }

  private func timeOut() {
    if let address { order.markSilent(address) }
    let fault: StoreFault =
      switch (connector, stream) {
      case (nil, nil): .unreachable("its host name was not resolved in time")
      case (_, nil): .unreachable("no connection in time")
      default: .unusable(waiting.isEmpty ? "no TLS handshake in time; does the store speak TLS?" : "no reply in time")
      }
    end(fault)
  }

  // MARK: - Connecting

  private func locate(_ resolve: @escaping StoreResolver) {
    switch settings.address {
    case .socket(let path):
      connect(to: SocketAddress(unixPath: path).map { [$0] } ?? [], or: "invalid path of a Unix socket")
    case .host(let host, let port):
      let literal = SocketAddress(text: settings.address.description)
      loop.startTask { [weak self] in
        var found = await resolve(host).compactMap { SocketAddress(octets: $0.octets, port: port) }
        if found.isEmpty, let literal { found = [literal] }
        guard let self, !isClosed else { return }
        connect(to: found, or: "'\(host.text)' has no address")
      }
    }
  }

  private func connect(to addresses: [SocketAddress], or reason: String) {
    guard !addresses.isEmpty else {
      deadline.set(after: .zero, on: loop, for: self) { $0.end(.unreachable(reason)) }
      return
    }
    connector = Connector(
      to: order.sorted(addresses), within: settings.fleet.connectTimeout, userTimeout: StoreConnection.userTimeout,
      on: loop
    ) { [weak self] result in
      self?.connector = nil
      switch result {
      case .failure(let failure): self?.end(.unreachable(failure.systemError))
      case .success(let connected):
        self?.address = connected.address
        self?.open(connected.descriptor)
      }
    }
  }

  private func open(_ descriptor: Int32) {
    let connection = tls?.connection(over: descriptor)
    if let tls, connection == nil {
      Glibc.close(descriptor)
      return end(.tls("'\(tls.name)' is not a valid host name or IP address"))
    }
    let buffer = ReadBuffer(capacity: StoreConnection.bufferSize)
    stream = ByteStream(descriptor, connection, into: buffer, on: loop) { [weak self] in self?.happened($0) }
  }

  private func happened(_ event: ByteStream.Report) {
    switch event {
    case .connected: introduce()
    case .octets(let octets): received(octets)
    case .readTurnEnded, .drained, .inputEnded: break
    case .ended(.handshake(let failure)): end(StoreFault(handshake: failure, for: tls?.name ?? ""))
    case .ended(let failure) where !isReady:
      let reason = StoreFault.reason(of: failure)
      end(.unusable("the connection ended: \(reason)" + (mayRequireTLS ? "; does the store require TLS?" : "")))
    case .ended(let failure): end(.lost(StoreFault.reason(of: failure)))
    }
  }

  /// Whether missing TLS can be the reason that the store closed the connection.
  private var mayRequireTLS: Bool {
    if case .host = settings.address { tls == nil } else { false }
  }

  // MARK: - The first commands

  /// Sends AUTH, SELECT and PING in one write, as far as the settings need them.
  private func introduce() {
    var commands: [[[UInt8]]] = []
    let password = settings.fleet.password?.reveal ?? []
    if let user = settings.fleet.user {
      commands.append(StoreCommand.auth.words(user.utf8, password))
    } else if !password.isEmpty {
      commands.append(StoreCommand.auth.words(password))
    }
    if settings.database > 0 { commands.append(StoreCommand.select.words("\(settings.database)".utf8)) }
    commands.append(StoreCommand.ping.words())
    let begin = loop.now
    var octets: [UInt8] = []
    for (index, words) in commands.enumerated() {
      RESPCommand.compose(words, into: &octets)
      let isLast = index == commands.count - 1
      waiting.append(
        WaitingCommand(words[0]) { [weak self] in self?.introduced(words[0], $0, isLast: isLast, since: begin) }
      )
    }
    stream?.write(octets)
  }

  private func introduced(
    _ command: [UInt8], _ result: Result<RESPValue, StoreFailure>, isLast: Bool, since begin: BootInstant
  ) {
    guard !isClosed else { return }
    var complaint: StoreError?
    switch result {
    case .success: break
    // A store that cannot save to its disk refuses PING, too.
    case .failure(.error(let text)) where isLast && StoreError(text).kind == .writes: complaint = StoreError(text)
    case .failure(.error(let text)): return end(.refused(command: RESPCommand.name(command), StoreError(text)))
    case .failure: return
    }
    guard isLast else { return }
    deadline.cancel()
    isReady = true
    if let address { order.markResponsive(address) }
    report(.ready(latency: loop.now - begin, complaint: complaint))
  }

  // MARK: - Replies

  private func received(_ octets: UnsafeBufferPointer<UInt8>) {
    reader.append(octets)
    do throws(RESPFailure) {
      while !isClosed, let reply = try reader.next() { handle(reply) }
    } catch {
      end(.nonsense(error.description))
    }
  }

  /// Matches a reply to the oldest command without one.
  private func handle(_ reply: RESPValue) {
    guard answered < waiting.count else { return end(.nonsense("more replies than commands")) }
    let command = waiting[answered]
    guard StoreCommand(command.name)?.fits(reply) ?? true else {
      return end(.nonsense("not a reply to \(RESPCommand.name(command.name))"))
    }
    answered += 1
    // Remove answered commands once they are half of the array, so that each command is moved once on average.
    if answered * 2 >= waiting.count {
      waiting.removeFirst(answered)
      answered = 0
    }
    guard let done = command.takeDone() else { return }
    if case .error(let text) = reply { done(.failure(.error(text))) } else { done(.success(reply)) }
  }
}

/// A command in the queue of a connection.
private final class WaitingCommand {
  /// The command's first word.
  let name: [UInt8]
  /// Nil once it was called.
  private var done: StoreLink.Completion?
  private let timer = OwnedTimer()

  init(_ name: [UInt8], _ done: @escaping StoreLink.Completion) {
    self.name = name
    self.done = done
  }

  deinit { timer.cancel() }

  /// Whether the command has a timeout that has not expired.
  var isTimed: Bool { timer.isSet }

  func setTimer(_ loop: EventLoop, _ timeout: Duration) {
    timer.set(after: timeout, on: loop, for: self) { $0.takeDone()?(.failure(.timeout)) }
  }

  /// Cancels the timeout and returns the completion handler; nil if it was taken before.
  func takeDone() -> StoreLink.Completion? {
    timer.cancel()
    defer { done = nil }
    return done
  }
}
