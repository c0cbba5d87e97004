// ReplySender.swift -- answers the queries that waited, over UDP or a stream. Resolver's loop only.

import CEvent
import CSocket
import DNSWire
import EventLoop
import FairShares
import Glibc

/// Sends responses to queries in slots and releases the slots.
package final class ReplySender {
  /// Sends a response over UDP, now or at the end of the loop's turn: its octets, the socket's descriptor, the peer.
  package typealias SendDatagram = (UnsafeBufferPointer<UInt8>, Int32, UnsafePointer<datagram_peer>) -> Void

  /// The queries that wait.
  package let queries: ClientQueries
  private let loop: any Loop
  private let maxUDPPayload: Int
  private let sendDatagram: SendDatagram
  private let counters: QueryCounters
  private let output: UnsafeMutablePointer<UInt8>
  /// Sends a response over a stream, by the ticket of its query.
  package var sendOverStream: ((UnsafeBufferPointer<UInt8>, QueryTransport, _ ticket: UInt64) -> Void)?
  /// Receives each answered query, where queries are logged.
  package var log: QueryLog?
  /// Counts failed answers by name.
  package var failing: FailingNames?
  /// Reports answers that were slow or failed.
  package var watch: AnswerWatch?

  /// - Parameters:
  ///   - loop: the resolver's loop.
  ///   - counters: the counters of queries that had to wait.
  ///   - sendDatagram: sends a response over UDP.
  package init(
    _ queries: ClientQueries, on loop: any Loop, maxUDPPayload: Int,
    counters: QueryCounters = QueryCounters(), sendDatagram: @escaping SendDatagram
  ) {
    self.queries = queries
    self.loop = loop
    self.counters = counters
    self.maxUDPPayload = maxUDPPayload
    self.sendDatagram = sendDatagram
    output = .allocate(capacity: 65535 + ResponseWriter.overhead)
  }

  deinit { output.deallocate() }

  /// The client of a slot's query.
  package func client(_ slot: Int) -> ClientKey {
    withUnsafePointer(to: queries.peer(slot).pointee.address) { ClientKey($0) }
  }

  /// The source and ID of a UDP query; nil over TCP.
  package func asker(_ slot: Int) -> Asker? {
    let descriptor = queries.slots[slot].descriptor
    guard descriptor >= 0 else { return nil }
    return Asker(queries.peer(slot).pointee, id: queries.slots[slot].query.id, descriptor: descriptor)
  }

  /// Sends a response and releases the slot.
  ///
  /// - Parameters:
  ///   - body: the records in wire form; compression pointers refer to the query's own question.
  ///   - isTruncated: whether records are missing, so that TC is set over UDP.
  ///   - failure: why there is no answer, for the log.
  package func complete(
    _ slot: Int, _ head: ResponseHead, body: [UInt8], isTruncated: Bool = false, _ outcome: LoggedQuery.Fate,
    failure: String? = nil
  ) {
    loop.assertCurrent()
    let query = queries.slots[slot].query
    let transport = queries.slots[slot].transport
    let isUDP = transport.isUDP
    let limits =
      isUDP
      ? ResponseLimits.udp(query, maximum: maxUDPPayload)
      : ResponseLimits.stream(queries.slots[slot].options, advertisedPayload: maxUDPPayload)
    body.withUnsafeBufferPointer { source in
      let count = min(source.count, limits.size - query.questionEnd)
      if let base = source.baseAddress { (output + query.questionEnd).update(from: base, count: count) }
    }
    let message = UnsafeBufferPointer(start: queries.message(slot), count: query.questionEnd)
    let length = ResponseWriter.complete(query, of: message.span, head, limits, into: output)
    if isTruncated, isUDP { output[2] |= UInt8(HeaderFlag.tc >> 8) }
    let response = UnsafeBufferPointer(start: UnsafePointer(output), count: length)
    if isUDP {
      sendDatagram(response, queries.slots[slot].descriptor, queries.peer(slot))
    } else {
      sendOverStream?(response, transport, queries.slots[slot].ticket)
    }
    counters.tally.count(code: head.responseCode)
    let (now, receivedAt) = (BootInstant.now, BootInstant(nanoseconds: queries.slots[slot].receivedAt))
    counters.tally.count(answers: 1, took: (now - receivedAt).nanoseconds)
    if let failure, let name = DomainName(octets: questionName(slot, of: message)) {
      failing?.failed(name, type: query.type, reason: failure, now: now)
    }
    watch?.answered(at: now, took: now - receivedAt, failure: failure)
    log?.add(
      LoggedQuery(
        receivedAt: receivedAt, took: now - receivedAt, client: clientOctets(slot), transport: transport,
        name: questionName(slot, of: message),
        type: query.type, code: head.responseCode, rule: queries.slots[slot].rule, token: queries.slots[slot].token,
        outcome: outcome, reason: failure))
    queries.release(slot)
  }

  private func questionName(_ slot: Int, of message: UnsafeBufferPointer<UInt8>) -> [UInt8] {
    let length = queries.slots[slot].query.nameLength
    return Array(message[QueryReader.headerLength..<(QueryReader.headerLength + length)])
  }

  private func clientOctets(_ slot: Int) -> [UInt8] {
    withUnsafePointer(to: queries.peer(slot).pointee.address) { IPNumber($0).octets }
  }
}
