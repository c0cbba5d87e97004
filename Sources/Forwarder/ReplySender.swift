// ReplySender.swift -- answers the queries that waited, over UDP or TCP. Resolver's loop only.

import CEvent
import CSocket
import DNSWire
import EventLoop
import Glibc
import Listener

/// Sends responses to queries in slots and gives the slots back.
final class ReplySender {
  /// Sends a response over UDP, now or at the end of the loop's turn: its octets, the socket's descriptor, the peer.
  typealias SendDatagram = (UnsafeBufferPointer<UInt8>, Int32, UnsafePointer<datagram_peer>) -> Void

  /// The queries that wait.
  let queries: ClientQueries
  private let maxUDPPayload: Int
  private let keepalive: Int32
  private let sendDatagram: SendDatagram
  private let counters: QueryCounters
  private let output: UnsafeMutablePointer<UInt8>
  private var connections: [Int: TCPConnection] = [:]

  /// - Parameters:
  ///   - keepalive: the idle timeout that clients over TCP are told, in units of 100 ms.
  ///   - counters: those of queries that had to wait.
  ///   - sendDatagram: how responses over UDP leave.
  init(
    _ queries: ClientQueries, maxUDPPayload: Int, keepalive: Int32, counters: QueryCounters = QueryCounters(),
    sendDatagram: @escaping SendDatagram
  ) {
    self.queries = queries
    self.counters = counters
    self.maxUDPPayload = maxUDPPayload
    self.keepalive = keepalive
    self.sendDatagram = sendDatagram
    output = .allocate(capacity: 65535 + ResponseWriter.overhead)
  }

  deinit { output.deallocate() }

  /// Queries that wait on a TCP connection are answered there.
  func setConnection(_ connection: TCPConnection, for slot: Int) { connections[slot] = connection }

  /// Whether two queries come from one client: the same address, and the same port or message ID.
  func isSameClient(_ one: Int, _ other: Int) -> Bool {
    let left = queries.peer(one).pointee
    let right = queries.peer(other).pointee
    guard queries.slots[one].descriptor >= 0, queries.slots[other].descriptor >= 0 else { return false }
    return withUnsafeBytes(of: left.address) { left in
      withUnsafeBytes(of: right.address) { right in
        let isSameFamily = left[..<2].elementsEqual(right[..<2])
        let range = left[0] == UInt8(AF_INET) ? 4..<8 : 8..<24
        let isSameAddress = isSameFamily && left[range].elementsEqual(right[range])
        let isSamePort = left[2] == right[2] && left[3] == right[3]
        return isSameAddress && (isSamePort || queries.slots[one].query.id == queries.slots[other].query.id)
      }
    }
  }

  /// Sends what came of a question.
  func send(_ result: Result<FinishedAnswer, UpstreamFailure>, to slot: Int) {
    switch result {
    case .success(let answer): send(answer, to: slot)
    case .failure(let failure): send(failure, to: slot)
    }
  }

  /// Sends SERVFAIL with an extended error.
  func send(_ failure: UpstreamFailure, to slot: Int) {
    complete(
      slot, ResponseHead(responseCode: 2, extendedError: failure.extendedError.rawValue), body: [])
  }

  /// Sends an answer.
  func send(_ answer: FinishedAnswer, to slot: Int) {
    var head = ResponseHead(responseCode: answer.response.responseCode.rawValue)
    head.isAuthenticated = answer.response.isAuthenticated
    head.answers = answer.response.answers
    head.authorities = answer.response.authorities
    head.bodyLength = answer.response.body.count
    head.extendedError = answer.response.extendedError?.rawValue ?? ResponseHead.noExtendedError
    if let scope = answer.scope { head.subnetScope = Int16(clamping: scope) }
    complete(slot, head, body: answer.response.body)
  }

  private func complete(_ slot: Int, _ head: ResponseHead, body: [UInt8]) {
    let query = queries.slots[slot].query
    let isUDP = queries.slots[slot].descriptor >= 0
    let limits =
      isUDP
      ? ResponseLimits.udp(query, maximum: maxUDPPayload)
      : ResponseLimits(size: 65535, advertisedPayload: UInt16(maxUDPPayload), keepalive: keepalive)
    if query.questionEnd + body.count <= limits.size {
      body.withUnsafeBufferPointer { source in
        if let base = source.baseAddress { (output + query.questionEnd).update(from: base, count: source.count) }
      }
    }
    let message = UnsafeBufferPointer(start: queries.message(slot), count: query.questionEnd)
    let length = ResponseWriter.complete(query, of: message.span, head, limits, into: output)
    let response = UnsafeBufferPointer(start: UnsafePointer(output), count: length)
    if isUDP {
      sendDatagram(response, queries.slots[slot].descriptor, queries.peer(slot))
    } else {
      connections.removeValue(forKey: slot)?.send(response)
    }
    counters.tally.count(code: head.responseCode)
    counters.tally.count(answers: 1, took: BootInstant.now.nanoseconds - queries.slots[slot].receivedAt)
    queries.release(slot)
  }
}
