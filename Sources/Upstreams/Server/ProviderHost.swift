// ProviderHost.swift -- finds the addresses of a provider's server that is given by name, by plain DNS.
//
// Resolver's loop only. `getaddrinfo` is never called: on the machine whose nameserver this is, it would ask itself.

import DNSWire
import EventLoop
import HTTPDNS
import LocalDNS

/// Finds a host's addresses and keeps them for as long as their TTL says, an hour at most: whoever answered may have lied.
/// All callers share one look-up; where there are old addresses nobody waits for new ones.
final class HostLookUp: @unchecked Sendable {
  private let name: DomainName
  private let types: [RecordType]
  private let client: any LocalDNSTransport
  private let loop: any Loop
  private let servers: () -> [SocketAddress]
  private var found: [RecordType: [IPAddress]] = [:]
  private var expires = BootInstant(nanoseconds: .min)
  /// The types that are being asked for.
  private var underWay: Set<RecordType> = []
  /// The types that the host was said not to have.
  private var absent: [RecordType] = []
  private var lowestTTL = UInt32.max
  /// Before that nobody asks again because a connection failed.
  private var nextExpiry = BootInstant(nanoseconds: .min)
  private let waiters: Waiters

  /// Seconds that addresses are kept, whatever their TTL.
  private static let shortestLifetime: UInt32 = 60
  /// Seconds after which the name is looked up again, whatever the TTL is.
  private static let longestLifetime: UInt32 = 3600
  /// How often a connection that failed may lead to another look-up.
  private static let expiryInterval = Duration.seconds(5)
  /// How long after a failure the next attempt may begin.
  private static let pauseAfterFailure = Duration.seconds(1)
  /// How long a look-up may take; who asks may have less time.
  private static let longest = Duration.seconds(2)
  /// How long the addresses of one family wait for the other's (RFC 8305 section 3).
  private static let resolutionDelay = Duration.milliseconds(50)

  /// - Parameters:
  ///   - types: A, AAAA or both, in the order of preference.
  ///   - servers: the plain resolvers to ask, as they are at the time.
  init(
    _ name: DomainName, types: [RecordType], client: any LocalDNSTransport, loop: any Loop,
    servers: @escaping () -> [SocketAddress]
  ) {
    self.name = name
    self.types = types
    self.client = client
    self.loop = loop
    waiters = Waiters(on: loop)
    self.servers = servers
  }

  /// The addresses; the old ones where there are no new ones, nil where there are none within `timeout`.
  func addresses(timeout: Duration) async -> [IPAddress]? {
    if underWay.isEmpty, loop.now >= expires { start() }
    if known.isEmpty, !underWay.isEmpty { await waiters.wait(atMost: timeout) }
    return known.isEmpty ? nil : known
  }

  /// The addresses are looked up again the next time that they are needed; until new ones come the old ones count.
  func expire() { expires = BootInstant(nanoseconds: .min) }

  /// The same because a connection failed, but not each time.
  func expire(after failure: BootInstant) {
    guard failure >= nextExpiry else { return }
    nextExpiry = failure + HostLookUp.expiryInterval
    expire()
  }

  private var known: [IPAddress] { types.flatMap { found[$0] ?? [] } }

  private func start() {
    underWay = Set(types)
    absent = []
    lowestTTL = .max
    for type in types {
      Task(executorPreference: loop) { [self] in await look(for: type) }
    }
  }

  private func look(for type: RecordType) async {
    let reply = await client.ask(
      Question(name: name, type: type), dnssecOK: false, checkingDisabled: false, servers: servers(),
      timeout: HostLookUp.longest)
    if case .success(let message) = reply { note(message, of: type) }
    underWay.remove(type)
    if underWay.isEmpty {
      end()
    } else if !known.isEmpty {
      loop.schedule(after: HostLookUp.resolutionDelay) { [self] in waiters.resumeAll() }
    }
  }

  private func note(_ message: Message, of type: RecordType) {
    // Only what belongs to the host, directly or by aliases.
    let chain = (try? HTTPDNSAnswer(message, to: HTTPDNSQuestion(name: name, type: type)))?.answers ?? []
    let addresses = chain.filter { $0.type == type }.compactMap { IPAddress(octets: $0.rdata) }
    if addresses.isEmpty {
      absent.append(type)
    } else {
      found[type] = addresses
      lowestTTL = min(lowestTTL, chain.map(\.ttl).min() ?? 0)
    }
  }

  /// All types have been asked for. Where nothing new was found, what was known stays.
  private func end() {
    if lowestTTL == .max {
      expires = loop.now + HostLookUp.pauseAfterFailure
    } else {
      for type in absent { found[type] = nil }
      let lifetime = min(max(lowestTTL, HostLookUp.shortestLifetime), HostLookUp.longestLifetime)
      expires = loop.now + .seconds(Int64(lifetime))
    }
    waiters.resumeAll()
  }
}
