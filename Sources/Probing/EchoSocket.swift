// EchoSocket.swift -- measures addresses of one family by ICMP echo requests on one socket.
//
// The socket is a datagram socket (icmp(7), "ping socket"), which needs no privilege if net.ipv4.ping_group_range
// includes the group of the process. A raw socket is never used.

import CSocket
import EventLoop
import Glibc

/// Sends echo requests to addresses of one family. Loop thread only.
public final class EchoSocket {
  private struct Pending {
    var message: EchoMessage
    var address: SocketAddress
    /// Nanoseconds of the system clock, as the kernel stamps replies.
    var sentAt: Int64
    let timer: OwnedTimer
    var report: (ProbeOutcome) -> Void
  }

  /// `AF_INET` or `AF_INET6`.
  public let family: Int32
  private let loop: EventLoop
  private let timeout: Duration
  private var descriptor: Int32 = -1
  private var event: LoopEvent?
  private var pending: [UInt16: Pending] = [:]
  /// Maximum replies that are read in a row, so that other events get their turn.
  private static let readLimit = 16
  private var nextSequence = UInt16.random(in: 0 ... .max)

  /// Creates it without a descriptor; `open` or the first request opens the socket.
  public init(family: Int32, timeout: Duration = probeTimeout, on loop: EventLoop) {
    self.family = family
    self.timeout = timeout
    self.loop = loop
  }

  deinit { close() }

  /// Sends an echo request and reports its outcome, never during this call.
  public func ping(_ address: SocketAddress, report: @escaping (ProbeOutcome) -> Void) {
    var sequence = nextSequence
    while pending[sequence] != nil { sequence &+= 1 }
    nextSequence = sequence &+ 1
    let message = EchoMessage(sequence: sequence, token: (.random(in: 0 ... .max), .random(in: 0 ... .max)))
    let sentAt = Self.systemTime
    let failure = send(message, to: address)
    let timer = OwnedTimer()
    timer.set(after: failure == nil ? timeout : .zero, on: loop) { [weak self] in
      self?.end(sequence, failure ?? .failed)
    }
    pending[sequence] = Pending(message: message, address: address, sentAt: sentAt, timer: timer, report: report)
  }

  /// Cancels all requests without a report and closes the socket.
  public func close() {
    for request in pending.values { request.timer.cancel() }
    pending = [:]
    event = nil
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  /// Opens the socket unless it is open. Returns nil, or the `errno` of the failure.
  public func open() -> Int32? {
    guard descriptor < 0 else { return nil }
    descriptor = echo_socket(family)
    guard descriptor >= 0 else { return errno }
    event = LoopEvent(on: loop, descriptor: descriptor, .read, for: self) { $0.receive() }
    return nil
  }

  private func send(_ message: EchoMessage, to address: SocketAddress) -> ProbeOutcome? {
    if let error = open() { return .notSent(errno: error) }
    let octets = message.octets(isIPv6: family == AF_INET6)
    let sent = address.withSockaddr { pointer, length in
      sendto(descriptor, octets, octets.count, Int32(MSG_NOSIGNAL), .init(__sockaddr__: pointer), length)
    }
    return sent == octets.count ? nil : .notSent(errno: errno)
  }

  private func receive() {
    var octets = [UInt8](repeating: 0, count: 128)
    for _ in 0..<Self.readLimit where descriptor >= 0 {
      var source = [UInt8](repeating: 0, count: 128)
      var sourceLength = socklen_t(source.count)
      var arrival: Int64 = 0
      let length = echo_receive(descriptor, &octets, octets.count, &source, &sourceLength, &arrival)
      guard length >= 0 else { return }
      let peer = source.withUnsafeBytes {
        SocketAddress(copying: UnsafeRawBufferPointer(rebasing: $0[..<Int(sourceLength)]))
      }
      guard let peer, let reply = EchoMessage.reply(Array(octets[..<length]), isIPv6: family == AF_INET6),
        let request = pending[reply.sequence], request.message == reply, request.address.octets == peer.octets
      else { continue }
      let nanoseconds = arrival - request.sentAt
      // The system clock was set in between, or the reply came after the timeout.
      guard nanoseconds >= 0, nanoseconds <= timeout.nanoseconds else {
        end(reply.sequence, .spoiled)
        continue
      }
      end(reply.sequence, .answered(microseconds: UInt32(clamping: nanoseconds / 1_000)))
    }
  }

  private func end(_ sequence: UInt16, _ outcome: ProbeOutcome) {
    guard let request = pending.removeValue(forKey: sequence) else { return }
    request.timer.cancel()
    request.report(outcome)
  }

  private static var systemTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
