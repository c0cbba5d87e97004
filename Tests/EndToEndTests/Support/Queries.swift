// Queries.swift -- queries as octets, without any code of the product, and responses taken apart.

import DNSWire
import Foundation
import Synchronization

/// A query, octet by octet.
struct TestQuery {
  /// Another one than those of the queries before: responses on one connection are told apart by it.
  var id = lastID.wrappingAdd(1, ordering: .relaxed).newValue
  /// RD unless something else is said.
  var flags: UInt16 = 0x0100
  var labels: [[UInt8]]
  var type: UInt16
  var qclass: UInt16 = 1
  /// The UDP payload size of an OPT record; nil for none.
  var payload: UInt16? = 1232
  /// The options of the OPT record.
  var options: [UInt8] = []

  private static let lastID = Atomic(UInt16.random(in: 0...UInt16.max))

  /// A query for a name in text without escapes, and a type by mnemonic or number.
  init(_ name: String, _ type: String = "A") {
    labels = name.split(separator: ".").map { Array($0.utf8) }
    self.type = RecordType(text: type)!.rawValue
  }

  var octets: [UInt8] {
    var octets = big(id) + big(flags) + [0, 1, 0, 0, 0, 0, 0, payload == nil ? 0 : 1]
    for label in labels { octets += [UInt8(label.count)] + label }
    octets += [0] + big(type) + big(qclass)
    if let payload { octets += [0, 0, 41] + big(payload) + [0, 0, 0, 0] + big(UInt16(options.count)) + options }
    return octets
  }

  /// The name as it stands on the wire.
  var name: [UInt8] { labels.flatMap { [UInt8($0.count)] + $0 } + [0] }
}

private func big(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xFF)] }

/// A response.
struct Reply {
  let octets: [UInt8]
  let message: Message

  /// Takes a response apart that must answer `query`: the ID, QR and the question exactly as it was sent.
  init(_ octets: [UInt8], to query: TestQuery) throws {
    self.octets = octets
    do { message = try Message.parse(octets) } catch { throw Failure("no message (\(error)): \(octets)") }
    let question = query.name + big(query.type) + big(query.qclass)
    guard message.id == query.id, message.header.qr, octets.count >= 12 + question.count,
      Array(octets[12..<(12 + question.count)]) == question
    else { throw Failure("no response to the query: \(octets)") }
  }

  var code: ResponseCode { message.responseCode }
  /// The data of the answer section's records of the asked type, as text.
  var data: [String] {
    message.answers.filter { $0.type == message.questions[0].question.type }.map { $0.text }
  }
  /// The smallest TTL of the answer section.
  var ttl: UInt32? { message.answers.map(\.ttl).min() }
  var errors: [UInt16] { message.edns?.extendedErrors.map(\.code.rawValue) ?? [] }
  /// The SOA records of the authority section.
  var soa: [ResourceRecord] { message.authorities.filter { $0.type == .soa } }
}

extension ResourceRecord {
  var text: String { RDATA.text(rdata, type: type) }
}

/// How a query goes.
enum Transport: CaseIterable { case udp, tcp }

/// Asks a server, and waits for its response.
@discardableResult
func ask(
  _ server: Address, _ query: TestQuery, over transport: Transport = .udp, from host: String? = nil,
  within duration: Duration = Socket.patience
) throws -> Reply {
  let octets: [UInt8]?
  switch transport {
  case .udp:
    let socket = try Socket(SOCK_DGRAM, family: server.family, boundTo: host.map { Address($0, 0) })
    try socket.connect(to: server)
    socket.send(query.octets)
    octets = socket.receive(within: duration)
  case .tcp:
    let socket = try Socket.stream(to: server, from: host)
    socket.send(framed(query.octets))
    octets = receiveFramed(socket, within: duration)
  }
  guard let octets else { throw Failure("no response over \(transport) within \(duration), or none at all: \(query)") }
  return try Reply(octets, to: query)
}

/// The same for a name and a type.
@discardableResult
func ask(
  _ server: Address, _ name: String, _ type: String = "A", over transport: Transport = .udp,
  within duration: Duration = Socket.patience
) throws -> Reply {
  try ask(server, TestQuery(name, type), over: transport, within: duration)
}

/// Asks many questions at once over UDP, and returns the replies in the order of the questions.
func askAll(
  _ server: Address, _ queries: [TestQuery], within duration: Duration = Socket.patience
) throws -> [(reply: Reply, duration: Duration)] {
  let start = ContinuousClock.now
  let sockets = try queries.map { query in
    let socket = try Socket(SOCK_DGRAM, family: server.family)
    try socket.connect(to: server)
    socket.send(query.octets)
    return socket
  }
  let deadline = Deadline(duration)
  var replies: [Int: (Reply, Duration)] = [:]
  while replies.count < queries.count {
    let waiting = queries.indices.filter { replies[$0] == nil }
    var entries = waiting.map { pollfd(fd: sockets[$0].descriptor, events: Int16(POLLIN), revents: 0) }
    guard poll(&entries, nfds_t(entries.count), deadline.milliseconds) > 0 else {
      throw Failure("no response within \(duration) to \(waiting.map { queries[$0] })")
    }
    for (entry, index) in zip(entries, waiting) where entry.revents != 0 {
      replies[index] = (try Reply(sockets[index].receive() ?? [], to: queries[index]), .now - start)
    }
  }
  return queries.indices.map { replies[$0]! }
}

/// A message with its length before it (RFC 1035 section 4.2.2).
func framed(_ octets: [UInt8]) -> [UInt8] { big(UInt16(octets.count)) + octets }

/// The next message of a stream; nil where none comes in time.
func receiveFramed(_ socket: Socket, within duration: Duration = Socket.patience) -> [UInt8]? {
  guard let length = socket.receive(exactly: 2, within: duration) else { return nil }
  return socket.receive(exactly: Int(length[0]) << 8 | Int(length[1]), within: duration)
}
