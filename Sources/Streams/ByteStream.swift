// ByteStream.swift -- octets over a connected socket, plain or with TLS: both sides of HTTP, and the store.
//
// The peer decides how long one call of OpenSSL takes. The bounds are here and in CTLS.h: OpenSSL does not read on by itself
// after a record without content (no SSL_MODE_AUTO_RETRY), and ends the connection after 64 of them in a row; reads of
// content end after a millisecond, and go on in a later turn of the loop.
//
// `write` passes octets to the kernel at once: a command or a request usually costs one system call, and no turn. A stream
// without unsent octets holds no buffer; what it reads goes into one that many streams share.
//
// A client that has sent its last request may close its direction (FIN, close_notify) and still wait for the answer. So a
// server's stream goes on after that (`inputEnded`), and has the same way to end itself (`finish`). For a client the end of
// the server's direction is the end of the stream.

import CTLS
import EventLoop
import Glibc

/// Where a stream reads to. Streams that pass on what they have read before they return to the loop may share one.
public final class ReadBuffer {
  let octets: UnsafeMutableBufferPointer<UInt8>

  public init(capacity: Int) { octets = .allocate(capacity: capacity) }

  deinit { octets.deallocate() }
}

/// Why a stream has ended.
public enum StreamFailure: Error, Hashable, Sendable {
  case handshake(TLSFailure)
  /// The peer has closed the connection: end of file, or close_notify.
  case closed
  /// The `errno` of a system call.
  case system(Int32)
  /// TLS failed after the handshake.
  case tls(TLSFailure)
  /// The peer has exhausted the stream's patience.
  case timeout
}

/// How long a peer may leave undone what it owes.
public struct StreamPatience: Sendable {
  /// The most time for the TLS handshake.
  public var handshake: Duration
  /// The most time in which the peer takes none of the octets that wait for it; then it sees a reset.
  public var reading: Duration

  public init(handshake: Duration, reading: Duration) {
    self.handshake = handshake
    self.reading = reading
  }
}

/// Owns a connected socket. Loop thread only. Reports only from the loop, never during `write`.
public final class ByteStream: QueueMember {
  public enum Report {
    /// The TLS handshake is complete, or TLS is not used.
    case connected
    /// Octets have arrived; the pointer is valid during the call.
    case octets(UnsafeBufferPointer<UInt8>)
    /// All that had arrived was reported, or the time for this turn is over.
    case readTurnEnded
    /// The kernel has taken the last of the octets that waited.
    case drained
    /// The peer sends nothing more, and may still read. Only of a server's stream; once.
    case inputEnded
    /// The stream has ended; nothing follows.
    case ended(StreamFailure)
  }

  /// Which end of the connection a stream is.
  public enum Side: Sendable {
    case client
    case server
  }

  /// The TLS connection; nil for none.
  public let tls: TLSConnection?
  /// Receives the reports; another owner takes the stream over by replacing it.
  public var report: (Report) -> Void
  /// The octets that the kernel or OpenSSL has taken so far: a peer that reads makes it grow.
  public private(set) var sent: UInt64 = 0
  private let loop: EventLoop
  private let buffer: ReadBuffer
  private let side: Side
  /// Negative when the stream is closed.
  private var descriptor: Int32
  /// Without it, a peer has any time. To be set before the handshake begins.
  public var patience: StreamPatience? {
    didSet { if let patience, tls != nil, !isConnected { awaitPeer(for: patience.handshake) } }
  }
  private var isConnected = false
  private var isPaused = false
  private var hasInputEnded = false
  private var ending = Ending.none
  private var readEvent: LoopEvent?
  /// Armed only while the kernel takes no more octets, or OpenSSL waits to write.
  private var writeEvent: LoopEvent?
  /// Runs `proceed` in a later turn, when the loop has time for this stream.
  private let soon = OwnedPlace()
  /// Runs while the peer owes something.
  private let patienceTimer = OwnedTimer()
  /// What was sent when that timer was set.
  private var sentBefore: UInt64 = 0
  /// Whether OpenSSL still has to write its reply to an update of keys.
  private var owesReply = false
  private var failure: StreamFailure?
  /// Octets that the kernel has not taken, behind `taken` that it has.
  private var output: [UInt8] = []
  private var taken = 0

  /// How far this side's direction has ended.
  private enum Ending {
    case none
    /// `finish` waits for unsent octets.
    case wanted
    /// close_notify and FIN are sent.
    case done
  }

  /// The longest time of reads in one turn. Octets differ in what they cost.
  private static let readTime = Duration.milliseconds(1)
  /// Octets before the unsent ones in `output` that are removed at once.
  private static let mostTaken = 65_536

  /// Starts the TLS handshake, or reports `connected` if TLS is not used; both in a later turn of the loop.
  ///
  /// - Parameters:
  ///   - descriptor: the socket, which the stream owns from now on; it must not block.
  ///   - tls: a TLS connection over it, before its handshake; nil for no TLS.
  public init(
    _ descriptor: Int32, _ tls: TLSConnection?, as side: Side = .client, into buffer: ReadBuffer, on loop: EventLoop,
    report: @escaping (Report) -> Void
  ) {
    self.descriptor = descriptor
    self.tls = tls
    self.side = side
    self.buffer = buffer
    self.loop = loop
    self.report = report
    awaitReadable()
    proceedSoon()
  }

  deinit { close() }

  /// The number of octets that the kernel has not taken yet.
  public var unsent: Int { output.count - taken }

  /// Whether the connection has failed. Octets that have arrived are still reported, then the end.
  public var hasFailed: Bool { failure != nil }

  /// Whether the stream was closed, reset, or has ended.
  public var isClosed: Bool { descriptor < 0 }

  /// The user ID of the peer of a Unix socket at the time it connected; nil for other sockets.
  public var peerUser: UInt32? {
    // struct ucred: process, user, group.
    var credentials: (Int32, UInt32, UInt32) = (0, 0, 0)
    var length = socklen_t(MemoryLayout.size(ofValue: credentials))
    guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return nil }
    // For other socket types the kernel returns -1.
    return credentials.1 == .max ? nil : credentials.1
  }

  /// Closes the socket; nothing is reported from then on.
  public func close() {
    guard descriptor >= 0 else { return }
    if let tls, isConnected, ending != .done {
      ERR_clear_error()
      // OpenSSL resumes no session of a connection that was not shut down.
      if failure == nil || failure == .closed {
        SSL_shutdown(tls.ssl)
      } else {
        SSL_set_shutdown(tls.ssl, SSL_SENT_SHUTDOWN)
      }
    }
    release()
  }

  /// Closes the socket so that the peer sees a reset (RST) over TCP; nothing is reported from then on.
  public func reset() {
    guard descriptor >= 0 else { return }
    var linger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
    release()
  }

  private func release() {
    soon.cancel()
    patienceTimer.cancel()
    readEvent = nil
    writeEvent = nil
    Glibc.close(descriptor)
    descriptor = -1
    output = []
    taken = 0
  }

  /// Sends close_notify and FIN once the kernel has taken all octets. What the peer sends is still reported; the owner closes
  /// the stream.
  public func finish() {
    guard descriptor >= 0, ending == .none else { return }
    ending = .wanted
    if unsent == 0 { sendEnd() }
  }

  /// Reads nothing more until `resume`.
  public func pause() {
    isPaused = true
    // While shaking hands OpenSSL has to read.
    if isConnected { readEvent = nil }
  }

  /// Reads again after `pause`, also what OpenSSL has already. Reports in a later turn of the loop.
  public func resume() {
    guard isPaused, descriptor >= 0 else { return }
    isPaused = false
    proceedSoon()
  }

  /// Sends octets, or keeps them until the kernel takes them. Only when `connected` was reported.
  public func write(_ octets: [UInt8]) { octets.withUnsafeBytes { write($0) } }

  /// Sends octets, or keeps a copy until the kernel takes them. Only when `connected` was reported.
  public func write(_ octets: UnsafeRawBufferPointer) {
    guard descriptor >= 0, failure == nil, ending == .none else { return }
    assert(isConnected, "a write would shake hands")
    guard output.isEmpty else { return output.append(contentsOf: octets) }
    let count = send(octets)
    if count < octets.count {
      output.append(contentsOf: UnsafeRawBufferPointer(rebasing: octets[count...]))
      if let patience { awaitPeer(for: patience.reading) }
    }
    if failure != nil { proceedSoon() }
  }

  private func proceedSoon() { soon.take(on: loop, for: self) }

  package func placeHasCome() { proceed() }

  private func proceed() {
    if !isConnected { shakeHands() }
    guard isConnected, descriptor >= 0 else { return }
    if failure == nil { flush() }
    guard descriptor >= 0 else { return }
    if isPaused || hasInputEnded {
      if let failure { end(failure) }
      return
    }
    if readEvent == nil { awaitReadable() }
    // Also after a failed write: the peer may have said something before it closed the connection.
    read()
  }

  private func shakeHands() {
    if let tls {
      ERR_clear_error()
      let result = SSL_do_handshake(tls.ssl)
      guard result == 1 else {
        switch SSL_get_error(tls.ssl, result) {
        case SSL_ERROR_WANT_READ: writeEvent = nil
        case SSL_ERROR_WANT_WRITE: awaitWritable()
        case let status: end(.handshake(TLSFailure(handshake: tls, status: status)))
        }
        return
      }
    }
    writeEvent = nil
    patienceTimer.cancel()
    isConnected = true
    if isPaused { readEvent = nil }
    report(.connected)
  }

  // MARK: - Writing

  /// Sends what has waited.
  private func flush() {
    guard !output.isEmpty else {
      writeEvent = nil
      return
    }
    taken += output.withUnsafeBytes { send(UnsafeRawBufferPointer(rebasing: $0[taken...])) }
    guard unsent == 0 else {
      if taken > ByteStream.mostTaken {
        output.removeFirst(taken)
        taken = 0
      }
      return
    }
    writeEvent = nil
    patienceTimer.cancel()
    output = []
    taken = 0
    if ending == .wanted { sendEnd() }
    report(.drained)
  }

  private func sendEnd() {
    ending = .done
    guard failure == nil else { return }
    if let tls {
      ERR_clear_error()
      SSL_shutdown(tls.ssl)
    }
    shutdown(descriptor, Int32(SHUT_WR))
  }

  /// Sends as much as the kernel takes, and waits for it if that is not all. Returns the number of octets.
  private func send(_ octets: UnsafeRawBufferPointer) -> Int {
    var begin = 0
    while begin < octets.count {
      let count = sendOnce(UnsafeRawBufferPointer(rebasing: octets[begin...]))
      guard count > 0 else { break }
      begin += count
    }
    sent &+= UInt64(begin)
    return begin
  }

  /// Returns the number of octets that were taken; 0 if the kernel's buffer is full or the connection failed.
  private func sendOnce(_ octets: UnsafeRawBufferPointer) -> Int {
    guard let tls else {
      let count = Glibc.send(descriptor, octets.baseAddress, octets.count, Int32(MSG_NOSIGNAL))
      if count < 0 {
        if errno == EAGAIN || errno == EINTR { awaitWritable() } else { failure = .system(errno) }
      }
      return max(0, count)
    }
    ERR_clear_error()
    let count = SSL_write(tls.ssl, octets.baseAddress, Int32(clamping: octets.count))
    guard count <= 0 else { return Int(count) }
    switch SSL_get_error(tls.ssl, count) {
    case SSL_ERROR_WANT_WRITE: awaitWritable()
    // Not without renegotiation; the read event would retry.
    case SSL_ERROR_WANT_READ: break
    case let status: failure = .tls(TLSFailure(status: status))
    }
    return 0
  }

  // MARK: - Reading

  private func read() {
    let stop = loop.preciseNow + ByteStream.readTime
    while descriptor >= 0 {
      let hadFailed = failure != nil
      let count = receive()
      guard count > 0 else { return readNothing(afterFailure: hadFailed) }
      report(.octets(UnsafeBufferPointer(rebasing: buffer.octets[..<count])))
      guard descriptor >= 0 else { return }
      guard !isPaused else { return report(.readTurnEnded) }
      // An event reports what the kernel still has, but not what OpenSSL has.
      let isMore = if let tls { SSL_has_pending(tls.ssl) == 1 } else { count == buffer.octets.count }
      guard isMore || failure != nil else { return report(.readTurnEnded) }
      if loop.preciseNow >= stop {
        proceedSoon()
        return report(.readTurnEnded)
      }
    }
  }

  private func readNothing(afterFailure hadFailed: Bool) {
    guard let failure else { return report(.readTurnEnded) }
    guard side == .server, failure == .closed, !hadFailed else { return end(failure) }
    // The read event would report the end of file in every turn.
    self.failure = nil
    hasInputEnded = true
    readEvent = nil
    report(.inputEnded)
  }

  /// Returns the number of octets that were received; 0 if there are none or the connection has ended.
  private func receive() -> Int {
    guard let tls else {
      let count = recv(descriptor, buffer.octets.baseAddress, buffer.octets.count, 0)
      if count == 0 { failure = .closed }
      if count < 0, errno != EAGAIN, errno != EINTR { failure = .system(errno) }
      return max(0, count)
    }
    while true {
      ERR_clear_error()
      let empty = tls.emptyRecords
      let count = SSL_read(tls.ssl, buffer.octets.baseAddress, Int32(buffer.octets.count))
      guard count <= 0 else { return Int(count) }
      switch SSL_get_error(tls.ssl, count) {
      // Only a record without content was read, or only the reply to an update of keys was written: OpenSSL may have
      // further records, which no event reports.
      case SSL_ERROR_WANT_READ where tls.emptyRecords != empty || owesReply:
        owesReply = false
        continue
      case SSL_ERROR_WANT_READ: return 0
      case SSL_ERROR_WANT_WRITE:
        // The answer to an update of keys (RFC 8446 section 4.6.3). Until it is written, what can be read is not.
        owesReply = true
        readEvent = nil
        awaitWritable()
        return 0
      case SSL_ERROR_ZERO_RETURN: failure = .closed
      case let status: failure = .tls(TLSFailure(status: status))
      }
      return 0
    }
  }

  private func awaitReadable() {
    readEvent = LoopEvent(on: loop, descriptor: descriptor, .read, for: self) { $0.proceedSoon() }
  }

  private func awaitWritable() {
    guard writeEvent == nil else { return }
    writeEvent = LoopEvent(on: loop, descriptor: descriptor, .write, for: self) { $0.proceedSoon() }
  }

  private func awaitPeer(for time: Duration) {
    sentBefore = sent
    patienceTimer.set(after: time, on: loop, for: self) { $0.patienceEnded() }
  }

  private func patienceEnded() {
    if isConnected, sent != sentBefore, let patience { return awaitPeer(for: patience.reading) }
    reset()
    report(.ended(.timeout))
  }

  private func end(_ failure: StreamFailure) {
    guard descriptor >= 0 else { return }
    self.failure = failure
    close()
    report(.ended(failure))
  }
}
