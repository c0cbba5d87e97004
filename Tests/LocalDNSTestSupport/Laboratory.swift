// Laboratory.swift -- a network of plain resolvers on a virtual clock, each with habits of its own, below `LocalDNSClient`.

import DNSWire
import EventLoop
import LocalDNS
import TestSupport

/// A query that arrived at a resolver of the laboratory.
package struct LabQuery {
  package var message: Message
  package var overTCP: Bool
  /// How many queries arrived at the resolver before.
  package var count: Int
  package var at: BootInstant

  package var hasEDNS: Bool { message.edns != nil }
  package var question: Question { message.questions[0].question }

  /// The start of a response.
  package func response(_ code: ResponseCode = .noError) -> Message {
    var response = message
    response.header.qr = true
    response.header.ra = true
    response.header.rcode = UInt8(code.rawValue)
    if hasEDNS { response.edns = EDNS() }
    return response
  }
}

/// What a resolver does with a query.
package enum LabAction: Sendable {
  /// Sends a message, which UDP truncates to the client's size.
  case reply(Message)
  /// Sends these octets.
  case octets([UInt8])
  /// Does this after another time than the usual.
  indirect case after(Duration, LabAction)
  /// Ends the socket: a refused connection, for example.
  case failure(LocalDNSFailure)
}

/// A resolver of the laboratory.
package struct LabServer: Sendable {
  /// What it does; an empty array for silence.
  package var habit: @Sendable (LabQuery) -> [LabAction]
  /// How long that takes.
  package var latency = Duration.milliseconds(10)

  package init(latency: Duration = .milliseconds(10), _ habit: @escaping @Sendable (LabQuery) -> [LabAction]) {
    self.habit = habit
    self.latency = latency
  }
}

/// Sockets to resolvers that do what their habits say. There are no others: what goes elsewhere is lost.
package final class Laboratory: ServerSockets, @unchecked Sendable {
  private let loop: any Loop
  package var servers: [SocketAddress: LabServer] = [:]
  /// The queries of each resolver.
  package private(set) var queries: [SocketAddress: [LabQuery]] = [:]
  /// The sockets that are open.
  package private(set) var openSockets = 0
  package private(set) var mostOpenSockets = 0
  package var clock: any Loop { loop }

  package init(on loop: any Loop) { self.loop = loop }

  /// Forgets the queries so far.
  package func forget() { queries = [:] }

  package func open(
    to resolver: PlainResolver, overTCP: Bool, _ report: @escaping (SocketEvent) -> Void
  ) throws(LocalDNSFailure) -> any ServerSocket {
    openSockets += 1
    mostOpenSockets = max(mostOpenSockets, openSockets)
    return LabSocket(self, resolver.address, overTCP: overTCP, report)
  }

  fileprivate func closed() { openSockets -= 1 }

  fileprivate func arrived(_ octets: [UInt8], at address: SocketAddress, on socket: LabSocket) {
    guard let server = servers[address], let message = try? Message.parse(octets) else { return }
    let query = LabQuery(
      message: message, overTCP: socket.overTCP, count: queries[address]?.count ?? 0, at: loop.now)
    queries[address, default: []].append(query)
    for action in server.habit(query) { perform(action, query, on: socket, after: server.latency) }
  }

  private func perform(_ action: LabAction, _ query: LabQuery, on socket: LabSocket, after latency: Duration) {
    let event: SocketEvent
    switch action {
    case .after(let time, let action): return perform(action, query, on: socket, after: time)
    case .reply(let message): event = .message(Laboratory.octets(message, to: query)[...])
    case .octets(let octets): event = .message(octets[...])
    case .failure(let reason): event = .failure(reason)
    }
    loop.schedule(after: latency) { socket.happen(event) }
  }

  /// A message as it goes over the wire: over UDP, with as many records as fit, and TC if these are not all.
  package static func octets(_ message: Message, to query: LabQuery) -> [UInt8] {
    var message = message
    let limit = query.overTCP ? 65_535 : max(512, Int(query.message.edns?.udpPayloadSize ?? 512))
    while true {
      let octets = try! message.compose()
      if octets.count <= limit { return octets }
      message.header.tc = true
      message.answers.removeLast()
    }
  }
}

private final class LabSocket: ServerSocket {
  fileprivate let overTCP: Bool
  private let laboratory: Laboratory
  private let address: SocketAddress
  private var report: ((SocketEvent) -> Void)?

  init(
    _ laboratory: Laboratory, _ address: SocketAddress, overTCP: Bool, _ report: @escaping (SocketEvent) -> Void
  ) {
    (self.laboratory, self.address, self.overTCP, self.report) = (laboratory, address, overTCP, report)
  }

  func send(_ message: [UInt8]) { laboratory.arrived(message, at: address, on: self) }

  func happen(_ event: SocketEvent) {
    let report = report
    if case .failure = event { close() }
    report?(event)
  }

  func close() {
    if report != nil { laboratory.closed() }
    report = nil
  }
}
