// LocalDNSTransport.swift -- the resolver's interface to plain DNS: a question to servers, a response or a failure.

import DNSWire
import Glibc

/// Why a server gave no answer.
public enum LocalDNSFailure: Error, Hashable, Sendable {
  /// There is no server to ask.
  case noServer
  /// Nothing came in time.
  case timedOut
  /// The system refused a socket, or the network or the server's host refused the query; the system's error number.
  case network(Int32)
  /// The server closed a TCP connection before the response was complete.
  case closed
  /// The response code of a server that does not answer, such as SERVFAIL or REFUSED, and its extended error.
  case responseCode(ResponseCode, ExtendedError? = nil)
  /// The response code of an error that does not repeat the question.
  case bareError(ResponseCode)
  /// A server sent a referral instead of an answer (RFC 2308 section 2.2): it does not resolve for us.
  case referral
  /// The answer is truncated, and TCP gave no better one.
  case truncated
  /// A reply that cannot be used.
  case unusable(ReplyFault)
  /// The calling task was cancelled.
  case cancelled

  /// Whether the server has replied.
  public var isReply: Bool {
    switch self {
    case .responseCode, .bareError, .referral, .truncated, .unusable: true
    case .noServer, .timedOut, .network, .closed, .cancelled: false
    }
  }

  /// Whether this machine has no way to the server, so that its word cannot be missed.
  public var isWayless: Bool {
    if case .network(let code) = self {
      [ENETUNREACH, EADDRNOTAVAIL, EAFNOSUPPORT, ENODEV].contains(code)
    } else {
      false
    }
  }

  /// Whether a limit of this process or machine is the cause, such as the number of open descriptors, and not a server.
  public var isOwnLimit: Bool {
    // A socket fails with EAGAIN if there is no free port or no room to send.
    if case .network(let code) = self { [EMFILE, ENFILE, ENOBUFS, ENOMEM, EAGAIN].contains(code) } else { false }
  }
}

/// Why a reply with the right ID cannot be used.
public enum ReplyFault: Hashable, Sendable {
  /// QR is not set, or OPCODE is not QUERY.
  case noResponse
  /// It answers another question, or none.
  case otherQuestion
  /// It breaks the rules of a message.
  case malformed
  /// Its records make no sense, for this human-readable reason.
  case content(String)
}

/// A question that no server answered.
public struct UnansweredQuestion: Error, Equatable, Sendable {
  /// A server that was asked, and why it gave no answer.
  public struct Step: Equatable, Sendable {
    public var server: PlainResolver
    public var reason: LocalDNSFailure
  }

  /// The failure of the last server.
  public var reason: LocalDNSFailure
  /// The servers that were asked, in order.
  public var steps: [Step] = []
}

/// A response and the server that sent it.
public struct LocalDNSAnswer: Sendable {
  /// The response: NOERROR or NXDOMAIN.
  public var message: Message
  public var server: PlainResolver
  /// Whether it is negative while a server with precedence has not answered, or has refused, and may have data.
  public var isOutOfOrder = false
  /// Whether it lacks records, because the response was truncated and TCP fails. Not to be cached.
  public var isTruncated = false
}

/// Queries plain resolvers. `LocalDNSClient` implements it, and so do scripts in the resolver's tests.
public protocol LocalDNSTransport: AnyObject {
  /// Queries the servers in order until one answers.
  ///
  /// Runs on the caller's executor.
  ///
  /// - Parameters:
  ///   - question: sent without a change of case.
  ///   - dnssecOK: the DO bit, for servers that support EDNS.
  ///   - checkingDisabled: the CD bit.
  ///   - servers: in order of preference.
  ///   - timeout: for all servers together.
  ///   - objection: why the caller cannot use a response, human-readable; nil if it can. Then the next server is asked.
  func ask(
    _ question: Question, dnssecOK: Bool, checkingDisabled: Bool, servers: [PlainResolver], timeout: Duration,
    objection: @escaping (Message) -> String?
  ) async -> Result<LocalDNSAnswer, UnansweredQuestion>
  /// Discards what was learned about servers, after a change of network.
  func networkHasChanged()
}

extension LocalDNSTransport {
  /// Queries the servers for a caller that can use every response.
  public func ask(
    _ question: Question, dnssecOK: Bool, checkingDisabled: Bool, servers: [PlainResolver], timeout: Duration
  ) async -> Result<LocalDNSAnswer, UnansweredQuestion> {
    await ask(
      question, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled, servers: servers, timeout: timeout
    ) { _ in nil }
  }

  /// Does nothing: a transport without memory of its servers.
  public func networkHasChanged() {}
}
