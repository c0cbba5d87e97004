// SteadyLoad.swift -- queries at a fixed rate, whether or not they are answered, and the number of answers.

import DNSWire
import Foundation
import Synchronization

/// Asks a server in turn for some names, without waiting for answers. Each query is one of a kind: socket and ID.
final class SteadyLoad: Sendable {
  private struct Counts: Sendable {
    var sent = 0
    var answered = 0
    /// Answers without records, by RCODE and extended error.
    var failures: [String: Int] = [:]
  }

  private static let perSecond = 5_000
  /// Queries that are sent together, every few milliseconds: the kernel's timers are no more precise.
  private static let burst = 25
  /// IDs of a socket.
  private static let perSocket = 60_000

  private let server: Address
  private let names: [String]
  private let counts = Mutex(Counts())
  private let isSending = Atomic<Bool>(true)
  private let sendersEnd = DispatchSemaphore(value: 0)
  private let receiversEnd = DispatchSemaphore(value: 0)

  /// Begins.
  init(_ server: Address, _ names: [String]) throws {
    self.server = server
    self.names = names
    let sockets = try (0..<4).map { _ in
      let socket = try Socket(SOCK_DGRAM)
      guard socket.setReceiveBuffer(64 << 20) else { throw Failure("no room for answers") }
      try socket.connect(to: server)
      return socket
    }
    Thread { [self] in send(sockets) }.start()
    Thread { [self] in receive(sockets) }.start()
  }

  /// Queries so far.
  var sent: Int { counts.withLock { $0.sent } }

  /// Stops sending, and waits for the queries in flight.
  ///
  /// - Returns: what was sent, what was not answered in time, and what was answered without addresses.
  func end(within duration: Duration = .seconds(10)) throws -> (sent: Int, lost: Int, failures: [String: Int]) {
    isSending.store(false, ordering: .releasing)
    sendersEnd.wait()
    _ = try? eventually("every answer", within: duration) { () -> Bool? in
      counts.withLock { $0.answered >= $0.sent ? true : nil }
    }
    let last = counts.withLock { $0 }
    counts.withLock { $0.sent = -1 }
    receiversEnd.wait()
    return (last.sent, last.sent - last.answered, last.failures)
  }

  private func send(_ sockets: [Socket]) {
    let templates = names.map { TestQuery($0).octets }
    var number = 0
    var next = ContinuousClock.now
    while isSending.load(ordering: .acquiring), number < sockets.count * SteadyLoad.perSocket {
      for _ in 0..<SteadyLoad.burst {
        var octets = templates[number % templates.count]
        let id = number / sockets.count
        (octets[0], octets[1]) = (UInt8(id >> 8), UInt8(id & 0xFF))
        // What the kernel does not take was not asked: no buffer of ours is full.
        if sockets[number % sockets.count].send(octets) { counts.withLock { $0.sent += 1 } }
        number += 1
      }
      next += .seconds(1) * SteadyLoad.burst / SteadyLoad.perSecond
      let pause = next - .now
      if pause > .zero { usleep(UInt32(pause / .microseconds(1))) }
    }
    sendersEnd.signal()
  }

  private func receive(_ sockets: [Socket]) {
    var seen = sockets.map { _ in [Bool](repeating: false, count: 65_536) }
    var entries = sockets.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
    var octets = [UInt8](repeating: 0, count: 2_048)
    while counts.withLock({ $0.sent >= 0 }) {
      guard poll(&entries, nfds_t(entries.count), 50) > 0 else { continue }
      for index in entries.indices where entries[index].revents != 0 {
        while case let count = recv(entries[index].fd, &octets, octets.count, 0), count >= 12 {
          let id = Int(octets[0]) << 8 | Int(octets[1])
          guard !seen[index][id] else { continue }
          seen[index][id] = true
          let failure = failure(octets[..<count])
          counts.withLock {
            $0.answered += 1
            if let failure { $0.failures[failure, default: 0] += 1 }
          }
        }
      }
    }
    receiversEnd.signal()
  }

  private func failure(_ octets: ArraySlice<UInt8>) -> String? {
    guard octets[3] & 0xF != 0 || octets[7] == 0 else { return nil }
    guard let message = try? Message.parse(Array(octets)) else { return "no message" }
    return "\(message.responseCode) \(message.edns?.extendedErrors.map(\.code.rawValue) ?? [])"
  }
}
