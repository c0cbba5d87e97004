// StoreSocket.swift -- octets to and from the store over a connected socket, plain or with TLS.
//
// Octets are written at once where the kernel takes them: a command costs one system call and no turn of the loop.

import CTLS
import EventLoop
import Glibc

/// A connected socket, which it owns. Loop thread only; calls its owner only from the loop, never within `write`.
final class StoreSocket {
  /// What the owner learns.
  enum Report {
    /// The TLS handshake is done, or there is none to do.
    case connected
    /// Octets have arrived; valid during the call.
    case octets(UnsafeBufferPointer<UInt8>)
    /// The connection ended; nothing follows.
    case ended(StoreFault)
  }

  private let loop: EventLoop
  private let tls: StoreTLSContext?
  private let report: (Report) -> Void
  private var descriptor: Int32
  private var ssl: OpaquePointer?
  private var isConnected = false
  private var readEvent: LoopEvent?
  /// Armed only while the kernel takes no more octets.
  private var writeEvent: LoopEvent?
  /// Goes on, and calls the owner, when the loop has time for it.
  private let soon = OwnedPlace()
  private var fault: StoreFault?
  private var output: [UInt8] = []
  private var buffer = [UInt8](repeating: 0, count: 16_384)

  /// The time for reads at once, before others get theirs.
  private static let readTime = Duration.milliseconds(1)

  /// Begins the TLS handshake, or reports that it is connected in the next turn.
  init(
    _ descriptor: Int32, _ tls: StoreTLSContext?, on loop: EventLoop, report: @escaping (Report) -> Void
  ) throws(StoreFault) {
    self.loop = loop
    self.tls = tls
    self.report = report
    self.descriptor = descriptor
    do throws(StoreFault) {
      ssl = try tls?.connection(over: descriptor)
    } catch {
      Glibc.close(descriptor)
      self.descriptor = -1
      throw error
    }
    awaitReadable()
    proceedSoon()
  }

  deinit { close() }

  /// Octets that the kernel has not taken.
  var unsent: Int { output.count }

  /// Closes it; nothing is reported from then on.
  func close() {
    guard descriptor >= 0 else { return }
    soon.cancel()
    readEvent = nil
    writeEvent = nil
    if let ssl {
      ERR_clear_error()
      if isConnected, fault == nil { SSL_shutdown(ssl) }
      SSL_free(ssl)
    }
    ssl = nil
    Glibc.close(descriptor)
    descriptor = -1
    output = []
  }

  /// Sends octets, or keeps them until the kernel takes them.
  func write(_ octets: [UInt8]) {
    guard descriptor >= 0, fault == nil else { return }
    output += octets
    if output.count == octets.count { flush() }
  }

  private func proceedSoon() { soon.take(on: loop, for: self) { $0.proceed() } }

  private func proceed() {
    if readEvent == nil { awaitReadable() }
    if !isConnected { handshake() }
    guard isConnected, descriptor >= 0 else { return }
    if fault == nil { flush() }
    // Also after a failed write: the store may have said why it closed the connection.
    read()
  }

  private func handshake() {
    if let ssl, let tls {
      ERR_clear_error()
      let result = SSL_connect(ssl)
      guard result == 1 else {
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: writeEvent = nil
        case SSL_ERROR_WANT_WRITE: awaitWritable()
        default: end(tls.failure(of: ssl))
        }
        return
      }
    }
    writeEvent = nil
    isConnected = true
    report(.connected)
  }

  /// Writes what the kernel takes. A failure is reported in the next turn.
  private func flush() {
    var begin = 0
    while begin < output.count {
      let count = output.withUnsafeBytes { send(UnsafeRawBufferPointer(rebasing: $0[begin...])) }
      guard count > 0 else { break }
      begin += count
    }
    if begin == output.count {
      output.removeAll(keepingCapacity: output.capacity <= buffer.count)
      // Without a read event, OpenSSL waits to write before it reads on.
      if readEvent != nil { writeEvent = nil }
    } else {
      output.removeFirst(begin)
    }
    if fault != nil { proceedSoon() }
  }

  /// Returns how many octets were taken; 0 if the kernel takes none for now or the connection failed.
  private func send(_ octets: UnsafeRawBufferPointer) -> Int {
    guard let ssl else {
      let count = Glibc.send(descriptor, octets.baseAddress, octets.count, Int32(MSG_NOSIGNAL))
      if count < 0 {
        if errno == EAGAIN || errno == EINTR { awaitWritable() } else { fault = .lost(errno) }
      }
      return max(0, count)
    }
    ERR_clear_error()
    let count = SSL_write(ssl, octets.baseAddress, Int32(clamping: octets.count))
    guard count <= 0 else { return Int(count) }
    switch SSL_get_error(ssl, count) {
    case SSL_ERROR_WANT_WRITE: awaitWritable()
    // The read event tries again.
    case SSL_ERROR_WANT_READ: break
    default: fault = .lost(StoreTLSContext.reason ?? "closed by the store")
    }
    return 0
  }

  private func read() {
    let stop = loop.preciseNow + StoreSocket.readTime
    repeat {
      let count = receive()
      guard count > 0 else {
        if let fault { end(fault) }
        return
      }
      // Nobody else uses the buffer meanwhile: what is reported here is only read.
      buffer.withUnsafeBufferPointer { report(.octets(UnsafeBufferPointer(rebasing: $0[..<count]))) }
      // A read that left space has emptied the kernel's buffer; OpenSSL may have more of a record.
      if ssl == nil, count < buffer.count { return }
      guard descriptor >= 0 else { return }
    } while loop.preciseNow < stop
    proceedSoon()
  }

  /// Returns how many octets came; 0 if none did or the connection ended.
  private func receive() -> Int {
    guard let ssl else {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count == 0 { fault = .lost("closed by the store") }
      if count < 0, errno != EAGAIN, errno != EINTR { fault = .lost(errno) }
      return max(0, count)
    }
    ERR_clear_error()
    let count = SSL_read(ssl, &buffer, Int32(buffer.count))
    guard count <= 0 else { return Int(count) }
    switch SSL_get_error(ssl, count) {
    case SSL_ERROR_WANT_READ: break
    case SSL_ERROR_WANT_WRITE:
      // Until the answer to an update of keys is written, what can be read is not.
      readEvent = nil
      awaitWritable()
    case SSL_ERROR_ZERO_RETURN: fault = .lost("closed by the store")
    default: fault = .lost(StoreTLSContext.reason ?? "closed by the store")
    }
    return 0
  }

  private func awaitReadable() {
    readEvent = LoopEvent(on: loop, descriptor: descriptor, .read, for: self) { $0.proceedSoon() }
  }

  private func awaitWritable() {
    guard writeEvent == nil else { return }
    writeEvent = LoopEvent(on: loop, descriptor: descriptor, .write, for: self) { $0.proceedSoon() }
  }

  private func end(_ fault: StoreFault) {
    guard descriptor >= 0 else { return }
    self.fault = fault
    close()
    report(.ended(fault))
  }
}
