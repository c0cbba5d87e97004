// Exchange.swift -- one socket to one server, one query, one response.
//
// On the loop's thread only. `finish` closes the socket; every path reaches it, at the latest at the deadline.

import DNSWire
import EventLoop
import Glibc

/// The outcome of an exchange.
enum ExchangeOutcome {
  case response(Message)
  case truncated
  case failure(LocalDNSFailure)
}

/// The common part of exchanges over UDP and TCP.
class Exchange: @unchecked Sendable {
  let exchanger: SocketExchanger
  let query: PreparedQuery
  let server: SocketAddress
  private(set) var descriptor: Int32 = -1
  private var event: LoopEvent?
  private var timers: [LoopTimer] = []
  private var continuation: CheckedContinuation<ExchangeOutcome, Never>?

  init(exchanger: SocketExchanger, query: PreparedQuery, server: SocketAddress) {
    self.exchanger = exchanger
    self.query = query
    self.server = server
  }

  /// Sends the query and waits for its response until the deadline.
  final func run(until deadline: BootInstant) async -> ExchangeOutcome {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        self.continuation = continuation
        schedule(at: deadline) { [self] in finish(.failure(.timedOut)) }
        start(deadline)
      }
    } onCancel: {
      exchanger.loop.execute { [self] in finish(.failure(.cancelled)) }
    }
  }

  /// Opens the socket and sends the query, or begins to. Subclasses override it.
  func start(_ deadline: BootInstant) {}

  /// Called when the socket is readable or writable. Subclasses override it.
  func ready(_ interest: Interest) {}

  /// Ends the exchange. Only the first call has an effect.
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
    timers.append(exchanger.loop.schedule(at: deadline, action))
  }

  /// Opens a socket that is connected to the server, or in the process of connecting. Returns false if the exchange has
  /// ended instead.
  ///
  /// A connected socket receives datagrams from that server's address and port only. The kernel assigns a random port
  /// from its range, by default some 28,000; with the random ID this meets RFC 5452 section 9.
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

  /// Waits for these events instead of the previous ones.
  final func wait(for interest: Interest) {
    event = LoopEvent(on: exchanger.loop, descriptor: descriptor, interest) { [self] in ready($0) }
  }

  /// Ends the exchange if the octets are the response to the query; otherwise counts them as ignored.
  final func consider(_ reply: ArraySlice<UInt8>) {
    switch query.judge(reply) {
    case .foreign: exchanger.ignoredReplies += 1
    case .truncated: finish(.truncated)
    case .response(let message): finish(.response(message))
    }
  }
}
