// LocalDNSClient.swift -- queries the network's resolvers over UDP and TCP, in their order.
//
// Belongs to one loop and is used on its thread only. `ask` has one socket open, or more if servers are silent. Its
// caller limits how many calls run at once.

import DNSWire
import EventLoop

/// Counters of a client since its creation.
public struct LocalDNSCounters: Equatable, Sendable {
  /// Queries over UDP, without retransmissions.
  public var datagramQueries: UInt64 = 0
  /// Queries over TCP.
  public var streamQueries: UInt64 = 0
  /// Replies with a wrong ID: spoofed or late (RFC 5452).
  public var ignoredReplies: UInt64 = 0
  /// Questions that a server did not answer in time.
  public var timeouts: UInt64 = 0
  /// How often a silent server was moved behind the others.
  public var demotions: UInt64 = 0

  public init() {}
}

/// Plain DNS over the sockets of this machine.
public final class LocalDNSClient: LocalDNSTransport {
  /// Maximum open sockets for one question: one over UDP and one over TCP to each server in flight.
  public static let mostSockets = 2 * (OrderedQuestion.mostTurns + 1)

  /// The counters so far. Read them on the loop's thread.
  public var counters: LocalDNSCounters {
    var counters = counted
    counters.demotions = known.demotions
    return counters
  }

  /// Maximum turns that go on after their question was decided, for a sign of life of a silent resolver.
  static let mostSigns = 64

  let sockets: any ServerSockets
  private var signs: [Turn] = []
  var counted = LocalDNSCounters()
  var known = KnownResolvers()

  public convenience init(loop: EventLoop) { self.init(over: KernelSockets(loop: loop)) }

  /// Creates a client over other sockets than the kernel's.
  package init(over sockets: any ServerSockets) { self.sockets = sockets }

  /// Asks one server after the other: the next one when the previous one has failed or has been silent for 300 ms.
  public func ask(
    _ question: Question, dnssecOK: Bool, checkingDisabled: Bool, servers: [PlainResolver], timeout: Duration,
    objection: @escaping (Message) -> String?
  ) async -> Result<LocalDNSAnswer, UnansweredQuestion> {
    guard !servers.isEmpty else { return .failure(UnansweredQuestion(reason: .noServer)) }
    let asked = PlainQuestion(question: question, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled)
    return await OrderedQuestion(self, asked, servers, timeout: timeout, objection).run()
  }

  /// Lets a turn go on; the oldest one makes room, since a resolver that is alive answers soon.
  func keep(_ turn: Turn) {
    if signs.count == Self.mostSigns { signs[0].close() }
    signs.append(turn)
  }

  func ended(_ turn: Turn) { signs.removeAll { $0 === turn } }

  /// Forgets what is known of the servers: on another network, other servers may have the same addresses.
  public func networkHasChanged() { known.forget() }
}
