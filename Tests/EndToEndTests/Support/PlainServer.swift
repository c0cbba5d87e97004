// PlainServer.swift -- a plain DNS server on loopback that does what the test says: the network's resolver, LocalDNS.

import DNSWire
import Foundation

/// A server over UDP and TCP at one port, on a thread of its own.
final class PlainServer: @unchecked Sendable {
  /// What it sends back; nil for silence.
  typealias Handler = @Sendable (Message, Transport) -> Message?

  let address: Address
  private let udp: Socket
  private let tcp: Socket
  private let handler: Handler
  private let condition = NSCondition()
  private var seen: [(message: Message, transport: Transport)] = []
  private var isStopping = false

  /// How long the thread waits before it looks whether it shall stop.
  private static let turn = Duration.milliseconds(50)

  /// - Parameter place: where it serves; a free port of 127.0.0.1 unless a test says so.
  init(at place: Address? = nil, _ handler: @escaping Handler) throws {
    self.handler = handler
    if let place {
      udp = try Socket(SOCK_DGRAM, boundTo: place)
      tcp = try Socket(SOCK_STREAM, boundTo: place, reusing: true)
    } else {
      (udp, tcp) = try Socket.pair()
    }
    address = udp.address
    listen(tcp.descriptor, 64)
    let thread = Thread { [weak self] in
      while let self, self.serve() {}
    }
    thread.start()
  }

  /// A server that knows the addresses of some names; every other name does not exist.
  convenience init(addresses: [String: String], ttl: UInt32 = 300, at place: Address? = nil) throws {
    try self.init(at: place) { query, _ in
      let question = query.questions[0].question
      guard let text = addresses["\(question.name)"], let address = IPAddress(text: text) else {
        return query.reply(.nxDomain)
      }
      let isAsked = question.type == (address.isIPv6 ? .aaaa : .a)
      let record = ResourceRecord(owner: question.name, type: question.type, ttl: ttl, rdata: address.octets)
      return query.reply(answers: isAsked ? [record] : [])
    }
  }

  deinit { stop() }

  /// Ends the thread.
  func stop() {
    condition.withLock {
      isStopping = true
    }
  }

  /// The queries so far, without those by which a daemon finds out whether the server leads back to it.
  var queries: [(message: Message, transport: Transport)] {
    condition.withLock { seen }.filter { query in
      query.message.questions.first.map {
        $0.question.type != .txt || $0.question.name.text.wholeMatch(of: /[0-9a-f]{16}\.[0-9a-f]{16}\.example\./) == nil
      }
        ?? true
    }
  }

  /// One turn of the thread; false at the end.
  private func serve() -> Bool {
    var entries = [udp, tcp].map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
    poll(&entries, 2, Deadline(PlainServer.turn).milliseconds)
    if entries[0].revents != 0, let (octets, sender) = udp.receiveFrom(within: .zero),
      let reply = reply(to: octets, .udp)
    {
      udp.send(reply, to: sender)
    }
    if entries[1].revents != 0, let connection = tcp.accept(within: .zero),
      let octets = receiveFramed(connection, within: .seconds(1)), let reply = reply(to: octets, .tcp)
    {
      connection.send(framed(reply))
    }
    return condition.withLock { !isStopping }
  }

  private func reply(to octets: [UInt8], _ transport: Transport) -> [UInt8]? {
    guard let query = try? Message.parse(octets), query.questions.count == 1 else { return nil }
    condition.withLock { seen.append((query, transport)) }
    return handler(query, transport).flatMap { try? $0.compose() }
  }
}

extension Message {
  /// A response to this query.
  func reply(_ code: ResponseCode = .noError, answers: [ResourceRecord] = [], isTruncated: Bool = false) -> Message {
    var header = Header()
    header.qr = true
    header.rd = true
    header.ra = true
    header.tc = isTruncated
    header.rcode = UInt8(code.rawValue & 15)
    return Message(id: id, header: header, questions: questions, answers: answers)
  }
}
