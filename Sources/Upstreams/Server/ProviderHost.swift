// ProviderHost.swift -- resolves the name of a provider's server, or of a fleet's store, by plain DNS.
//
// Resolver's loop only. Never calls `getaddrinfo`: on a machine that uses this daemon it would query the daemon itself.

import DNSWire
import EventLoop
import HTTPDNS
import LocalDNS

/// Resolves a host name and caches its addresses for their TTL, but at most for an hour, in case the response was
/// forged. Concurrent callers share one lookup. Callers do not wait while old addresses are known.
package final class HostLookUp {
  private let name: DomainName
  private let types: [RecordType]
  private let client: any LocalDNSTransport
  private let loop: any Loop
  private let servers: () -> [PlainResolver]
  private let admits: (IPAddress) -> Bool
  private var found: [RecordType: [IPAddress]] = [:]
  private var expires = BootInstant(nanoseconds: .min)
  /// The types whose lookup is in flight.
  private var inFlight: Set<RecordType> = []
  /// The types that the host does not have, according to the current lookup.
  private var absent: [RecordType] = []
  private var lowestTTL = UInt32.max
  /// The time before which a failed connection triggers no further lookup.
  private var nextExpiry = BootInstant(nanoseconds: .min)
  private let waiters: Waiters
  private let resolutionTimer = OwnedTimer()

  /// The minimum time that addresses are cached, in seconds, even if their TTL is shorter.
  private static let shortestLifetime: UInt32 = 60
  /// The maximum time that addresses are cached, in seconds, even if their TTL is longer.
  private static let longestLifetime: UInt32 = 3600
  /// The minimum interval between two lookups that failed connections trigger.
  private static let expiryInterval = Duration.seconds(5)
  /// The pause after a failed lookup.
  private static let pauseAfterFailure = Duration.seconds(1)
  /// The timeout of a lookup; a caller may have less time.
  private static let longest = Duration.seconds(2)
  /// How long the addresses of one family wait for those of the other (RFC 8305 section 3).
  private static let resolutionDelay = Duration.milliseconds(50)

  /// - Parameters:
  ///   - types: A, AAAA or both, in order of preference.
  ///   - admits: whether an address counts.
  ///   - servers: returns the current plain resolvers.
  package init(
    _ name: DomainName, types: [RecordType], client: any LocalDNSTransport, loop: any Loop,
    admits: @escaping (IPAddress) -> Bool = { _ in true }, servers: @escaping () -> [PlainResolver]
  ) {
    self.name = name
    self.types = types
    self.client = client
    self.loop = loop
    waiters = Waiters(on: loop)
    self.admits = admits
    self.servers = servers
  }

  /// Returns the addresses, which may be expired if no newer ones are known; nil if none is known within `timeout`.
  package func addresses(timeout: Duration) async -> [IPAddress]? {
    loop.assertCurrent()
    if inFlight.isEmpty, loop.now >= expires { start() }
    if known.isEmpty { await waiters.wait(atMost: timeout) { known.isEmpty && !inFlight.isEmpty } }
    return known.isEmpty ? nil : known
  }

  /// Makes the next use trigger a lookup. The old addresses remain valid until it ends.
  func expire() {
    loop.assertCurrent()
    expires = BootInstant(nanoseconds: .min)
  }

  /// Does the same after a failed connection, but at most once per `expiryInterval`.
  func expire(after failure: BootInstant) {
    loop.assertCurrent()
    guard failure >= nextExpiry else { return }
    nextExpiry = failure + HostLookUp.expiryInterval
    expire()
  }

  private var known: [IPAddress] { types.flatMap { found[$0] ?? [] } }

  private func start() {
    inFlight = Set(types)
    absent = []
    lowestTTL = .max
    for type in types {
      loop.startTask { [self] in await look(for: type) }
    }
  }

  private func look(for type: RecordType) async {
    let reply = await client.ask(
      Question(name: name, type: type), dnssecOK: false, checkingDisabled: false, servers: servers(),
      timeout: HostLookUp.longest)
    if case .success(let answer) = reply { note(answer.message, of: type) }
    inFlight.remove(type)
    if inFlight.isEmpty {
      end()
    } else if !known.isEmpty {
      resolutionTimer.set(after: HostLookUp.resolutionDelay, on: loop) { [self] in waiters.resumeAll() }
    }
  }

  private func note(_ message: Message, of type: RecordType) {
    // Accept only records of the host itself or of its alias chain.
    let chain = (try? HTTPDNSAnswer(message, to: HTTPDNSQuestion(name: name, type: type)))?.answers ?? []
    let addresses = chain.filter { $0.type == type }.compactMap { IPAddress(octets: $0.rdata) }.filter(admits)
    if addresses.isEmpty {
      absent.append(type)
    } else {
      found[type] = addresses
      lowestTTL = min(lowestTTL, chain.map(\.ttl).min() ?? 0)
    }
  }

  /// Ends a lookup after all types have been queried. If it found no address, the old ones remain.
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
