// LocalDNSTransport.swift -- the resolver's interface to plain DNS: a question to servers, a response or a failure.

import DNSWire
import EventLoop
import Glibc

/// The reason why no server answered. With several servers it is the failure of the last one.
public enum LocalDNSFailure: Error, Hashable, Sendable {
  /// There is no server to ask.
  case noServer
  /// No acceptable response arrived in time.
  case timedOut
  /// The system refused a socket, or the network or the server's host refused the query; the system's error number.
  case network(Int32)
  /// The server closed a TCP connection before the response was complete.
  case closed
  /// The response code of a server that does not answer, such as SERVFAIL or REFUSED, and its extended error.
  case responseCode(ResponseCode, ExtendedError? = nil)
  /// A server sent a referral instead of an answer (RFC 2308 section 2.2): it does not resolve for us.
  case referral
  /// The calling task was cancelled.
  case cancelled

  /// Whether a limit of this process or machine is the cause, such as the number of open descriptors, and not a server.
  public var isOwnLimit: Bool {
    // A socket fails with EAGAIN if there is no free port or no room to send.
    if case .network(let code) = self { [EMFILE, ENFILE, ENOBUFS, ENOMEM, EAGAIN].contains(code) } else { false }
  }
}

/// A response and the server that sent it.
public struct LocalDNSAnswer: Sendable {
  /// The response: NOERROR or NXDOMAIN.
  public var message: Message
  /// The server.
  public var server: SocketAddress

  /// Creates an answer.
  public init(message: Message, server: SocketAddress) {
    self.message = message
    self.server = server
  }
}

/// Queries plain resolvers. `LocalDNSClient` implements it, and so do scripts in the resolver's tests.
public protocol LocalDNSTransport: Sendable {
  /// Queries the servers, initially in order, until one answers with NOERROR, which must not be a referral, or
  /// NXDOMAIN.
  ///
  /// Runs on the caller's executor.
  ///
  /// - Parameters:
  ///   - question: sent without a change of case.
  ///   - dnssecOK: the DO bit.
  ///   - checkingDisabled: the CD bit.
  ///   - servers: in order of preference.
  ///   - timeout: for all servers together.
  func ask(
    _ question: Question, dnssecOK: Bool, checkingDisabled: Bool, servers: [SocketAddress], timeout: Duration
  ) async -> Result<LocalDNSAnswer, LocalDNSFailure>
  /// Discards what was learned about servers, after a change of network.
  func networkHasChanged()
}

extension LocalDNSTransport {
  /// Does nothing: a transport without memory of its servers.
  public func networkHasChanged() {}
}
