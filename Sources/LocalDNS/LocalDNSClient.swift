// LocalDNSClient.swift -- queries the network's resolvers over UDP and TCP, with failover to the next server.
//
// Belongs to one loop and is used on its thread only. `ask` has one socket open, or up to three if servers are silent.
// Its caller limits how many calls run at once.

import DNSWire
import EventLoop

/// Counters of a client since its creation.
public struct LocalDNSCounters: Equatable, Sendable {
  /// Queries over UDP, without retransmissions.
  public var datagramQueries: UInt64 = 0
  /// Queries over TCP.
  public var streamQueries: UInt64 = 0
  /// Replies with a wrong ID or question, or that are not a message: spoofed or late (RFC 5452).
  public var ignoredReplies: UInt64 = 0
  /// Servers that did not respond in time, or not before a server that was asked later.
  public var timeouts: UInt64 = 0
  /// How often such a server was moved behind the others.
  public var demotions: UInt64 = 0

  /// Counters of nothing.
  public init() {}
}

/// Plain DNS over the sockets of this machine.
public final class LocalDNSClient: LocalDNSTransport, @unchecked Sendable {
  /// Maximum open sockets for one question.
  public static let mostSockets = ServerRace.mostRunners

  /// The counters so far. Read them on the loop's thread.
  public var counters: LocalDNSCounters {
    var counters = counted
    counters.ignoredReplies = exchanger.ignoredReplies
    return counters
  }

  let exchanger: any QueryExchanger
  fileprivate var counted = LocalDNSCounters()
  var standing = ServerStanding()

  /// Creates a client on a loop.
  public convenience init(loop: EventLoop) { self.init(over: SocketExchanger(loop: loop)) }

  init(over exchanger: any QueryExchanger) { self.exchanger = exchanger }

  /// Asks one server after the other: the next one when the previous one has failed or has been silent for 300 ms.
  /// Servers that were silent recently come last.
  public func ask(
    _ question: Question, dnssecOK: Bool, checkingDisabled: Bool, servers: [SocketAddress], timeout: Duration
  ) async -> Result<LocalDNSAnswer, LocalDNSFailure> {
    guard !servers.isEmpty else { return .failure(.noServer) }
    let race = ServerRace(self, standing.order(servers, at: exchanger.clock.now), timeout: timeout) { [self] in
      await Turn(
        client: self, question: question, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled, server: $0,
        deadline: $1
      ).ask()
    }
    return await race.run()
  }

  /// Forgets which servers were silent: on another network, other servers may have the same addresses.
  public func networkHasChanged() { standing = ServerStanding() }

  /// Records that a server did not respond in time, or that a later one responded first.
  func noteSilence(of server: SocketAddress) {
    counted.timeouts += 1
    if standing.wasSilent(server, at: exchanger.clock.now) { counted.demotions += 1 }
  }
}

/// The exchanges with one server.
private struct Turn {
  let client: LocalDNSClient
  let question: Question
  let dnssecOK: Bool
  let checkingDisabled: Bool
  let server: SocketAddress
  let deadline: BootInstant

  /// Queries with EDNS, and once more without if the server does not support EDNS (RFC 6891 section 7).
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
    var outcome = await client.exchanger.exchange(query, with: server, over: .datagram, until: deadline)
    if case .truncated = outcome {
      client.counted.streamQueries += 1
      let query = PreparedQuery(question, edns: edns, checkingDisabled: checkingDisabled)
      outcome = await client.exchanger.exchange(query, with: server, over: .stream, until: deadline)
    }
    return switch outcome {
    case .response(let message): .success(message)
    case .failure(let reason): .failure(reason)
    case .truncated: .failure(.responseCode(.servFail))
    }
  }

  private func accept(_ message: Message) -> Result<Message, LocalDNSFailure> {
    let code = message.responseCode
    guard !message.isReferral else { return .failure(.referral) }
    return code == .noError || code == .nxDomain
      ? .success(message) : .failure(.responseCode(code, message.extendedError))
  }
}

extension Message {
  /// Whether it is a referral: NOERROR with NS records in the Authority section, but neither an answer nor an SOA
  /// record.
  fileprivate var isReferral: Bool {
    responseCode == .noError && !header.aa && answers.isEmpty && authorities.contains { $0.type == .ns }
      && !authorities.contains { $0.type == .soa }
  }
}
