// LocalDNSTransport.swift -- what the resolver needs of plain DNS: a question to servers, a response or a reason.

import DNSWire
import EventLoop
import Glibc

/// Why no server answered. What the last server did is what is said.
public enum LocalDNSFailure: Error, Hashable, Sendable {
  /// There was no server to ask.
  case noServer
  /// No acceptable response came in time.
  case timedOut
  /// The system refused a socket, or the network or the server's machine refused the query; the system's error number.
  case network(Int32)
  /// The server closed a TCP connection before the whole response had come.
  case closed
  /// The response code of a server that would not answer, such as SERVFAIL or REFUSED, and the extended error that it gave.
  case responseCode(ResponseCode, ExtendedError? = nil)
  /// A server named others that may know the name instead of answering (RFC 2308 section 2.2): it resolves nothing for us.
  case referral
  /// The asking task was cancelled.
  case cancelled

  /// Whether it was a limit of this process or machine, such as that of open descriptors, and no server's failure.
  public var isOwnLimit: Bool {
    // EAGAIN is what a socket says that finds no free port, or no room to send.
    if case .network(let code) = self { [EMFILE, ENFILE, ENOBUFS, ENOMEM, EAGAIN].contains(code) } else { false }
  }
}

/// Asks plain resolvers. `LocalDNSClient` conforms, and so do the scripts of the resolver's tests.
public protocol LocalDNSTransport: Sendable {
  /// Asks servers, in order at first, until one answers with NOERROR, and no referral, or NXDOMAIN.
  ///
  /// Runs on the caller's executor.
  ///
  /// - Parameters:
  ///   - question: sent in the case that it has.
  ///   - dnssecOK: the DO bit.
  ///   - checkingDisabled: the CD bit.
  ///   - servers: in the order in which they are asked.
  ///   - timeout: for all servers together.
  func ask(
    _ question: Question, dnssecOK: Bool, checkingDisabled: Bool, servers: [SocketAddress], timeout: Duration
  ) async -> Result<Message, LocalDNSFailure>
  /// What is known of servers belongs to another network.
  func networkHasChanged()
}

extension LocalDNSTransport {
  /// Nothing is known of servers, where nothing else is said.
  public func networkHasChanged() {}
}
