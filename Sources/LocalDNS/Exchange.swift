// Exchange.swift -- one socket to one server, one query, one response.
//
// On the loop's thread only. The socket is closed by `finish`, which every path reaches, at the latest by the deadline.

import DNSWire
import EventLoop
import Glibc

/// What came of an exchange.
enum ExchangeOutcome {
  case response(Message)
  case truncated
  case failure(LocalDNSFailure)
}

/// What exchanges over UDP and TCP have in common.
class Exchange: @unchecked Sendable {
  let wire: SocketWire
  let query: PreparedQuery
  let server: SocketAddress
  private(set) var descriptor: Int32 = -1
  private var event: LoopEvent?
  private var timers: [LoopTimer] = []
  private var continuation: CheckedContinuation<ExchangeOutcome, Never>?

  init(wire: SocketWire, query: PreparedQuery, server: SocketAddress) {
    self.wire = wire
    self.query = query
    self.server = server
  }

  /// Sends the query and waits, until the deadline, for what belongs to it.
  final func run(until deadline: BootInstant) async -> ExchangeOutcome {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        self.continuation = continuation
        schedule(at: deadline) { [self] in finish(.failure(.timedOut)) }
        start(deadline)
      }
    } onCancel: {
      wire.loop.execute { [self] in finish(.failure(.cancelled)) }
    }
  }

  /// Opens the socket and sends, or starts to.
  func start(_ deadline: BootInstant) {}

  /// The socket can be read or written.
  func ready(_ interest: Interest) {}

  /// Ends the exchange; only the first call counts.
  final func finish(_ outcome: ExchangeOutcome) {
    guard let continuation else { return }
    self.continuation = nil
    event = nil
    for timer in timers { timer.cancel() }
    timers = []
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
    continuation.resume(returning: outcome)
  }

  /// Ends the exchange with the error of the last system call.
  final func fail() { finish(.failure(.network(errno))) }

  final func schedule(at deadline: BootInstant, _ action: @escaping () -> Void) {
    timers.append(wire.loop.schedule(at: deadline, action))
  }

  /// A socket that is connected to the server, or about to be; false when the exchange has ended instead.
  ///
  /// A connected socket gets datagrams from that server's address and port only. The kernel gives it a port that it
  /// draws at random from its range, some 28,000 by default; with the ID that is what RFC 5452 section 9 asks for.
  final func open(_ type: __socket_type) -> Bool {
    descriptor = socket(server.family, Int32(type.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else {
      fail()
      return false
    }
    guard
      server.withSockaddr({ connect(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }) == 0
        || errno == EINPROGRESS
    else {
      fail()
      return false
    }
    return true
  }

  /// Waits for the socket, instead of what it waited for before.
  final func wait(for interest: Interest) {
    event = LoopEvent(on: wire.loop, descriptor: descriptor, interest) { [self] in ready($0) }
  }

  /// Ends the exchange if octets from the server are the response; counts them if they are not.
  final func consider(_ reply: ArraySlice<UInt8>) {
    switch query.judge(reply) {
    case .foreign: wire.ignoredReplies += 1
    case .truncated: finish(.truncated)
    case .response(let message): finish(.response(message))
    }
  }
}
