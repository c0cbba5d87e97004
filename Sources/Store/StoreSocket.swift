// StoreSocket.swift -- sends and receives octets over a connected socket, plain or with TLS.
//
// `write` passes octets to the kernel immediately: a command usually costs one system call and no turn of the loop.

import CTLS
import EventLoop
import Glibc

/// Owns a connected socket. Loop thread only. Reports only from the loop, never during `write`.
final class StoreSocket {
  /// Events for the owner.
  enum Report {
    /// The TLS handshake is complete, or TLS is not used.
    case connected
    /// Octets have arrived; the pointer is valid during the call.
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
  /// Armed only while the kernel accepts no more octets, or OpenSSL waits to write.
  private var writeEvent: LoopEvent?
  /// Runs `proceed` in a later turn, when the loop has time for it.
  private let soon = OwnedPlace()
  private var fault: StoreFault?
  private var output: [UInt8] = []
  private var buffer = [UInt8](repeating: 0, count: 16_384)

  /// The longest time of reads in one turn of the loop, for fairness to other connections.
  private static let readTime = Duration.milliseconds(1)

  /// Starts the TLS handshake, or reports `connected` if TLS is not used; both in a later turn of the loop. Owns the
  /// descriptor from the start: it is closed if this throws.
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

  /// The number of octets that the kernel has not accepted yet.
  var unsent: Int { output.count }

  /// Closes the socket; nothing is reported from then on.
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

  /// Sends octets, or buffers them until the kernel accepts them.
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
    // Also after a failed write: the store may have sent a reason before it closed the connection.
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

  /// Writes as much as the kernel accepts. A failure is reported in a later turn.
  private func flush() {
    var begin = 0
    while begin < output.count {
      let count = output.withUnsafeBytes { send(UnsafeRawBufferPointer(rebasing: $0[begin...])) }
      guard count > 0 else { break }
      begin += count
    }
    if begin == output.count {
      output.removeAll(keepingCapacity: output.capacity <= buffer.count)
      // Without a read event, a read of OpenSSL waits for the write event.
      if readEvent != nil { writeEvent = nil }
    } else {
      output.removeFirst(begin)
    }
    if fault != nil { proceedSoon() }
  }

  /// Returns the number of octets that were accepted; 0 if the kernel's buffer is full or the connection failed.
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
    // The read event retries.
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
      // `report` cannot modify `buffer` meanwhile: only `receive` does.
      buffer.withUnsafeBufferPointer { report(.octets(UnsafeBufferPointer(rebasing: $0[..<count]))) }
      // A short read has emptied the kernel's buffer. With TLS, OpenSSL may hold the rest of a record.
      if ssl == nil, count < buffer.count { return }
      guard descriptor >= 0 else { return }
    } while loop.preciseNow < stop
    proceedSoon()
  }

  /// Returns the number of received octets; 0 if there are none or the connection ended.
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
      // OpenSSL must first write, for example its reply to a key update. Until then do not wait for reads.
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
