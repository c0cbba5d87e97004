// Healthcheck.swift -- whether our nameserver serves: a query answered without an upstream, over UDP and over TCP.

import DNSWire
import EventLoop
import Glibc

/// What came of asking one address.
public struct HealthFinding: Sendable {
  /// Who was asked.
  public let server: SocketAddress
  /// How long the answer over UDP took; nil where there was none.
  public var overUDP: Duration?
  /// How long the reaction over TCP took; nil where there was none, or UDP had failed already.
  public var overTCP: Duration?
  /// The response code over UDP where it is not NOERROR, such as REFUSED: it serves, but not us.
  public var refusal: ResponseCode?
  /// Why it does not serve; nil where it does.
  public var failure: LocalDNSFailure?

  /// Whether this machine does not have such an address: the daemon then goes on without it, too.
  var isAbsent: Bool {
    guard server.family == AF_INET6, case .network(let code) = failure else { return false }
    return [EADDRNOTAVAIL, EAFNOSUPPORT, ENETUNREACH, EHOSTUNREACH].contains(code)
  }
}

/// Asks a running daemon for a sign of life.
public enum Healthcheck {
  /// Whom to ask about a listening address: itself, or loopback of its family where it is the wildcard.
  public static func target(of listening: SocketAddress) -> SocketAddress {
    guard listening.octets.allSatisfy({ $0 == 0 }) else { return listening }
    let loopback: [UInt8] =
      listening.family == AF_INET ? [127, 0, 0, 1] : [UInt8](repeating: 0, count: 15) + [1]
    return SocketAddress(octets: loopback, port: listening.port)!
  }

  /// Asks all of the addresses at once.
  ///
  /// - Parameter timeout: for everything together.
  /// - Returns: what came of each, without IPv6 addresses that this machine does not have; these, where there is no other.
  /// - Throws: `EventLoopError` where the kernel gives no loop.
  public static func run(_ servers: [SocketAddress], timeout: Duration) throws(EventLoopError) -> [HealthFinding] {
    let loop = try EventLoop()
    let client = LocalDNSClient(loop: loop)
    let deadline = loop.now + timeout
    let findings = Findings()
    for (index, server) in servers.enumerated() {
      Task(executorPreference: loop) {
        findings.all[index] = await client.health(of: server, until: deadline)
        if findings.all.count == servers.count { loop.stop() }
      }
    }
    if !servers.isEmpty { loop.run() }
    return present(servers.indices.compactMap { findings.all[$0] })
  }

  /// The findings without addresses that this machine does not have; these, where there is no other.
  static func present(_ findings: [HealthFinding]) -> [HealthFinding] {
    let present = findings.filter { !$0.isAbsent }
    return present.isEmpty ? findings : present
  }

  /// What the tasks on the loop have found; used on its thread only.
  private final class Findings: @unchecked Sendable {
    var all: [Int: HealthFinding] = [:]
  }
}

extension LocalDNSClient {
  /// Asks for the root's ANY, which the hot path answers by itself whatever the rules are (RFC 8482). UDP tells of the
  /// listener's thread, TCP of the resolver's. Any answer is a sign of life, also REFUSED from an access list.
  func health(of server: SocketAddress, until deadline: BootInstant) async -> HealthFinding {
    var finding = HealthFinding(server: server)
    let question = Question(name: .root, type: .any)
    let start = BootInstant.now
    let query = PreparedQuery(question, edns: nil, checkingDisabled: false)
    let datagram = await wire.exchange(query, with: server, over: .datagram, until: deadline)
    guard datagram.isReaction else {
      finding.failure = datagram.reason
      return finding
    }
    if case .response(let message) = datagram, message.responseCode != .noError {
      finding.refusal = message.responseCode
    }
    let middle = BootInstant.now
    finding.overUDP = middle - start
    let again = PreparedQuery(question, edns: nil, checkingDisabled: false)
    let stream = await wire.exchange(again, with: server, over: .stream, until: deadline)
    guard stream.isReaction || stream.isDismissal else {
      finding.failure = stream.reason
      return finding
    }
    finding.overTCP = .now - middle
    return finding
  }
}

extension ExchangeOutcome {
  /// Whether the server has answered, whatever it said.
  fileprivate var isReaction: Bool {
    switch self {
    case .response, .truncated, .failure(.responseCode): true
    case .failure: false
    }
  }

  /// Whether the server took the connection and closed it, as it does when it has as many as it may have: whoever can close
  /// is alive.
  fileprivate var isDismissal: Bool {
    switch self {
    case .failure(.closed), .failure(.network(ECONNRESET)), .failure(.network(EPIPE)): true
    default: false
    }
  }

  fileprivate var reason: LocalDNSFailure? {
    if case .failure(let reason) = self { reason } else { nil }
  }
}
