// LocalDNSClient.swift -- asks the network's resolvers: UDP, TCP where UDP is too small, the next server where one fails.
//
// Lives on one loop and is used on its thread only. An `ask` has one socket open at any time; its caller bounds how many
// run at once.

import DNSWire
import EventLoop

/// What a client has seen since it was made.
public struct LocalDNSCounters: Equatable, Sendable {
  /// Queries over UDP, without those sent again.
  public var datagramQueries: UInt64 = 0
  /// Queries over TCP.
  public var streamQueries: UInt64 = 0
  /// Replies with a wrong ID or question, or that were no message: somebody guesses, or they were late (RFC 5452).
  public var ignoredReplies: UInt64 = 0
  /// Servers that did not answer in their time.
  public var timeouts: UInt64 = 0
}

/// Plain DNS over the sockets of this machine.
public final class LocalDNSClient: LocalDNSTransport, @unchecked Sendable {
  /// What has happened so far. Read it on the loop's thread.
  public var counters: LocalDNSCounters {
    var counters = counted
    counters.ignoredReplies = wire.ignoredReplies
    return counters
  }

  fileprivate let wire: any Wire
  fileprivate var counted = LocalDNSCounters()

  /// A client on a loop.
  public convenience init(loop: EventLoop) { self.init(over: SocketWire(loop: loop)) }

  init(over wire: any Wire) { self.wire = wire }

  /// Asks one server after the other; each gets an equal share of the time that is left.
  public func ask(
    _ question: Question, dnssecOK: Bool, checkingDisabled: Bool, servers: [SocketAddress], timeout: Duration
  ) async -> Result<Message, LocalDNSFailure> {
    let clock = wire.clock
    let end = clock.now + timeout
    var failure = LocalDNSFailure.noServer
    for (index, server) in servers.enumerated() {
      let begin = clock.now
      let share = (end - begin) / (servers.count - index)
      guard share > .zero else { return .failure(.timedOut) }
      let turn = Turn(
        client: self, question: question, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled, server: server,
        deadline: begin + share)
      switch await turn.ask() {
      // What was under way while the machine slept is as old as that.
      case .success where clock.hasSlept(since: begin, waitingFor: share): failure = .timedOut
      case .success(let message): return .success(message)
      case .failure(.cancelled): return .failure(.cancelled)
      case .failure(let reason): failure = reason
      }
      if failure == .timedOut { counted.timeouts += 1 }
    }
    return .failure(failure)
  }
}

/// One server's turn.
private struct Turn {
  let client: LocalDNSClient
  let question: Question
  let dnssecOK: Bool
  let checkingDisabled: Bool
  let server: SocketAddress
  let deadline: BootInstant

  /// Asks with EDNS, and once more without if the server does not know EDNS (RFC 6891 section 7).
  func ask() async -> Result<Message, LocalDNSFailure> {
    let result = await ask(edns: EDNS(dnssecOK: dnssecOK))
    guard case .success(let message) = result, message.edns == nil,
      message.responseCode == .formErr || message.responseCode == .notImp
    else { return result.flatMap(accept) }
    return await ask(edns: nil).flatMap(accept)
  }

  private func ask(edns: EDNS?) async -> Result<Message, LocalDNSFailure> {
    let query = PreparedQuery(question, edns: edns, checkingDisabled: checkingDisabled)
    client.counted.datagramQueries += 1
    var outcome = await client.wire.exchange(query, with: server, over: .datagram, until: deadline)
    if case .truncated = outcome {
      client.counted.streamQueries += 1
      let query = PreparedQuery(question, edns: edns, checkingDisabled: checkingDisabled)
      outcome = await client.wire.exchange(query, with: server, over: .stream, until: deadline)
    }
    return switch outcome {
    case .response(let message): .success(message)
    case .failure(let reason): .failure(reason)
    case .truncated: .failure(.responseCode(.servFail))
    }
  }

  private func accept(_ message: Message) -> Result<Message, LocalDNSFailure> {
    let code = message.responseCode
    return code == .noError || code == .nxDomain ? .success(message) : .failure(.responseCode(code))
  }
}
