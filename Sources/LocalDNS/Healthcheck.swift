// Healthcheck.swift -- checks a running daemon with a query that needs no upstream, over UDP and TCP.

import DNSWire
import EventLoop
import Glibc

/// The result for one address.
public struct HealthFinding: Sendable {
  /// The address that was checked.
  public let server: SocketAddress
  /// The response time over UDP; nil without a response.
  public var overUDP: Duration?
  /// The response time over TCP; nil without a reaction, or if UDP failed.
  public var overTCP: Duration?
  /// The address by which an httpdnsd is known; nil without a response of httpdnsd.
  public var instance: IPAddress?
  /// The response code over UDP if it is not NOERROR, such as REFUSED: the daemon is alive, but does not serve this
  /// client.
  public var refusal: ResponseCode?
  /// The reason why the check failed; nil if it succeeded.
  public var failure: LocalDNSFailure?

  /// Whether the answer was empty, as beyond `listen.rate_limit` over UDP and with a full table over TCP.
  var isCutOff = false

  /// Whether an httpdnsd answers; nil if what answers refuses this client, as httpdnsd does by `listen.allow`, or says
  /// nothing.
  public var isOurs: Bool? {
    if instance != nil { return true }
    return refusal == .refused || isCutOff ? nil : false
  }

  /// Whether this machine lacks such an address. The daemon does not listen on it either.
  var isAbsent: Bool {
    guard server.family == AF_INET6, case .network(let code) = failure else { return false }
    // EINVAL: a link-local address on an interface that does not exist.
    return [EADDRNOTAVAIL, EAFNOSUPPORT, ENETUNREACH, EHOSTUNREACH, EINVAL].contains(code)
  }
}

/// Checks whether a running daemon responds.
public enum Healthcheck {
  /// Returns the address to check for a listening address: the same one, or for a wildcard the loopback address of its
  /// family.
  public static func target(of listening: SocketAddress) -> SocketAddress {
    guard listening.octets.allSatisfy({ $0 == 0 }) else { return listening }
    let loopback: [UInt8] = listening.family == AF_INET ? [127, 0, 0, 1] : [UInt8](repeating: 0, count: 15) + [1]
    return SocketAddress(octets: loopback, port: listening.port)!
  }

  /// Checks all addresses in parallel. Blocks the calling thread.
  ///
  /// - Parameter timeout: for all checks together.
  /// - Returns: one result per address. Results for IPv6 addresses that this machine lacks are omitted, unless there
  ///   are no others.
  /// - Throws: `EventLoopError` if the kernel cannot create a loop.
  public static func run(_ servers: [SocketAddress], timeout: Duration) throws(EventLoopError) -> [HealthFinding] {
    let loop = try EventLoop()
    let client = LocalDNSClient(loop: loop)
    let deadline = loop.now + timeout
    var findings: [Int: HealthFinding] = [:]
    for (index, server) in servers.enumerated() {
      loop.startTask {
        findings[index] = await client.health(of: server, until: deadline)
        if findings.count == servers.count { loop.stop() }
      }
    }
    if !servers.isEmpty { loop.run() }
    return present(servers.indices.compactMap { findings[$0] })
  }

  /// Omits addresses that this machine lacks, unless there are no others.
  static func present(_ findings: [HealthFinding]) -> [HealthFinding] {
    let present = findings.filter { !$0.isAbsent }
    return present.isEmpty ? findings : present
  }
}

extension LocalDNSClient {
  /// Queries an `InstanceName`, which the hot path answers regardless of the rules. UDP checks the listener's thread, TCP
  /// that of the resolver. Any response is a sign of life, even REFUSED from an access list; an address shows whose.
  func health(of server: SocketAddress, until deadline: BootInstant) async -> HealthFinding {
    var finding = HealthFinding(server: server)
    let start = BootInstant.now
    let name = InstanceName.fresh()
    switch await reaction(of: PlainResolver(server), to: name, until: deadline) {
    case .answer(let message): finding.instance = InstanceName.address(in: message)
    case .truncated(let message):
      finding.instance = InstanceName.address(in: message)
      finding.isCutOff = true
    case .failure(.responseCode(let code, _)): finding.refusal = code
    case .failure(let reason):
      guard reason.isReply else {
        finding.failure = reason
        return finding
      }
    }
    let middle = BootInstant.now
    finding.overUDP = middle - start
    switch await reaction(of: PlainResolver(server, isOverTCP: true), to: name, until: deadline) {
    // Beyond `listen.rate_limit` the answer over UDP is empty.
    case .answer(let message), .truncated(let message):
      finding.instance = finding.instance ?? InstanceName.address(in: message)
      finding.isCutOff = false
    case .failure(let reason):
      guard reason.isReply || reason.isDismissal else {
        finding.failure = reason
        return finding
      }
    }
    finding.overTCP = .now - middle
    return finding
  }

  private func reaction(
    of server: PlainResolver, to name: DomainName, until deadline: BootInstant
  ) async -> Turn.Report {
    await withCheckedContinuation { continuation in
      let question = PlainQuestion(question: Question(name: name, type: .a))
      let manner = Manner(isOverTCP: server.isOverTCP, hasEDNS: false, doubtsEDNS: false, mayConnect: false)
      Turn(self, question, server, manner, until: deadline) { continuation.resume(returning: $0) }.start()
    }
  }
}

extension LocalDNSFailure {
  /// Whether the server accepted the connection and closed it, as it does at its connection limit. This too is a sign
  /// of life.
  fileprivate var isDismissal: Bool {
    switch self {
    case .closed, .network(ECONNRESET), .network(EPIPE): true
    default: false
    }
  }
}
