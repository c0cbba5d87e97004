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
  public internal(set) var counters = LocalDNSCounters()

  let loop: EventLoop
  /// Room for any message; what it holds is used up before the loop goes on.
  var buffer = [UInt8](repeating: 0, count: 65_535)

  /// A client on a loop.
  public init(loop: EventLoop) { self.loop = loop }

  /// Asks one server after the other; each gets an equal share of the time that is left.
  public func ask(
    _ question: Question, dnssecOK: Bool, checkingDisabled: Bool, servers: [SocketAddress], timeout: Duration
  ) async -> Result<Message, LocalDNSFailure> {
    let end = loop.now + timeout
    var failure = LocalDNSFailure.noServer
    for (index, server) in servers.enumerated() {
      let share = (end - loop.now) / (servers.count - index)
      guard share > .zero else { return .failure(.timedOut) }
      let turn = Turn(
        client: self, question: question, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled, server: server,
        deadline: loop.now + share)
      switch await turn.ask() {
      case .success(let message): return .success(message)
      case .failure(.cancelled): return .failure(.cancelled)
      case .failure(let reason): failure = reason
      }
      if failure == .timedOut { counters.timeouts += 1 }
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
    client.counters.datagramQueries += 1
    var outcome = await DatagramExchange(client: client, query: query, server: server).run(until: deadline)
    if case .truncated = outcome {
      client.counters.streamQueries += 1
      let query = PreparedQuery(question, edns: edns, checkingDisabled: checkingDisabled)
      outcome = await StreamExchange(client: client, query: query, server: server).run(until: deadline)
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
