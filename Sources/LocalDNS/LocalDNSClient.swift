// LocalDNSClient.swift -- asks the network's resolvers: UDP, TCP where UDP is too small, the next server where one fails.
//
// Lives on one loop and is used on its thread only. An `ask` has one socket open, or up to three where servers keep silent; its
// caller bounds how many run at once.

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
  /// Servers that did not answer in their time, or not before another one that was asked later.
  public var timeouts: UInt64 = 0
  /// Times that a server went behind the others for that.
  public var demotions: UInt64 = 0
}

/// Plain DNS over the sockets of this machine.
public final class LocalDNSClient: LocalDNSTransport, @unchecked Sendable {
  /// Sockets that are open for one question at once, at most.
  public static let mostSockets = ServerRace.mostRunners

  /// What has happened so far. Read it on the loop's thread.
  public var counters: LocalDNSCounters {
    var counters = counted
    counters.ignoredReplies = wire.ignoredReplies
    return counters
  }

  let wire: any Wire
  fileprivate var counted = LocalDNSCounters()
  var standing = ServerStanding()

  /// A client on a loop.
  public convenience init(loop: EventLoop) { self.init(over: SocketWire(loop: loop)) }

  init(over wire: any Wire) { self.wire = wire }

  /// Asks one server after the other, the next one as soon as the one before has failed or is silent for 300 ms. Servers
  /// that were silent lately come last.
  public func ask(
    _ question: Question, dnssecOK: Bool, checkingDisabled: Bool, servers: [SocketAddress], timeout: Duration
  ) async -> Result<Message, LocalDNSFailure> {
    guard !servers.isEmpty else { return .failure(.noServer) }
    let race = ServerRace(self, standing.order(servers, at: wire.clock.now), timeout: timeout) { [self] in
      await Turn(
        client: self, question: question, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled, server: $0,
        deadline: $1
      ).ask()
    }
    return await race.run()
  }

  /// Servers of another network have the addresses of those that were silent in this one.
  public func networkHasChanged() { standing = ServerStanding() }

  /// A server has let its time pass, or another one come before it.
  func noteSilence(of server: SocketAddress) {
    counted.timeouts += 1
    if standing.wasSilent(server, at: wire.clock.now) { counted.demotions += 1 }
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
    guard !message.isReferral else { return .failure(.referral) }
    return code == .noError || code == .nxDomain
      ? .success(message) : .failure(.responseCode(code, message.extendedError))
  }
}

extension Message {
  /// Whether it names servers that may know the name, and says neither that there is such data nor that there is none.
  fileprivate var isReferral: Bool {
    responseCode == .noError && !header.aa && answers.isEmpty && authorities.contains { $0.type == .ns }
      && !authorities.contains { $0.type == .soa }
  }
}
