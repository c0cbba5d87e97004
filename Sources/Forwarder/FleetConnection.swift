// FleetConnection.swift -- connects the resolver with the store that a fleet shares.
//
// Resolver's loop only.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import Files
import Fleet
import Glibc
import LocalDNS
import Logging
import Resolver
import Store
import Upstreams

/// The connections to the store of one configuration.
final class FleetConnection {
  private let settings: Settings
  private let resolver: Resolver
  private let level: FleetLevel
  private let client: StoreClient
  private let flushes: StoreStream
  /// The providers of the latest configuration.
  private var upstreams: [any ConfiguredUpstream] = []

  /// A change of any of these needs new connections.
  struct Settings: Hashable {
    var url: Configuration.StoreURL
    var fleet: Configuration.Fleet
    /// The fingerprint of the default route, as other daemons see it.
    var fingerprint: [UInt8]
  }

  /// The dependencies.
  struct Parts {
    var resolver: Resolver
    var local: LocalDNSUpstream
    var localClient: LocalDNSClient
    var nat64: NAT64
    var logger: Logger
    var ledger: FleetLedger
    /// The version of the program.
    var version: String
  }

  /// The settings of a configuration; nil if it has no store.
  static func settings(_ configuration: Configuration, _ routes: [Route]) -> Settings? {
    guard configuration.cache.isEnabled, let url = configuration.cache.redis else { return nil }
    let fingerprint = routes[Int(Route.Number.standard)].fleetFingerprint
    return Settings(url: url, fleet: configuration.fleet, fingerprint: fingerprint)
  }

  /// Prepares the connections; `start` opens them. Until then the store counts as down.
  init(_ settings: Settings, _ parts: Parts, on loop: EventLoop) {
    self.settings = settings
    resolver = parts.resolver
    let logger = parts.logger
    let finder = StoreFinder(
      client: parts.localClient, bootstrap: settings.fleet.bootstrap.map { PlainResolver($0) }, local: parts.local,
      nat64: parts.nat64, loop: loop)
    let store = StoreSettings(settings.url, settings.fleet)
    let log: (StoreEvent) -> Void = { logger.log(level: $0.level, "\($0.text)") }
    client = StoreClient(store, on: loop, resolve: finder.resolve, note: log)
    flushes = StoreStream(store, on: loop, resolve: finder.resolve, note: log)
    let keys = FleetKeys(
      namespace: settings.fleet.namespace, site: settings.fleet.site, secret: settings.fleet.secret?.reveal)
    let member = FleetMember(
      id: parts.ledger.member, version: parts.version, fingerprint: keys.fingerprint(of: settings.fingerprint),
      host: hostName)
    nonisolated(unsafe) let fleet = FleetLevel(
      keys, settings.fleet, over: client, on: loop, identity: RandomOctets.generate(count: 16), member: member,
      ledger: parts.ledger
    ) { note in logger.log(level: note.isProblem ? .error : .info, "\(note.text)") }
    let place = settings.url.description
    fleet.describe = { [weak client, weak flushes] in
      guard let client else { return nil }
      var report = FleetReport(store: client.report, own: member)
      (report.place, report.flushFailure) = (place, flushes?.lastFailure)
      return report
    }
    level = fleet
    fleet.onLoss = { [weak flushes] in flushes?.connect() }
    flushes.onConnected = { [weak fleet] in fleet?.follower.connected(true) }
    flushes.onEnded = { [weak fleet] in fleet?.follower.connected(false) }
    flushes.read { [weak fleet] in
      fleet?.follower.nextRead ?? []
    } _: { [weak fleet] reply in
      fleet?.follower.received(reply) ?? false
    }
    client.onUp = { [weak fleet, weak flushes] in
      fleet?.connected()
      flushes?.connect()
    }
    client.onDown = { [weak flushes] in flushes?.disconnect() }
    resolver.assumeIsolated { $0.use(fleet) }
  }

  /// Connects in the background. Call it after the cache was loaded: flushes apply to its entries.
  func start() { client.start() }

  /// Ends the pauses between attempts and retries immediately. Call it after a configuration was read, or the network
  /// has changed.
  func retry() {
    client.retry()
    flushes.retry()
    // Tests at once whether writes are accepted again.
    level.presence.sendHeartbeat()
  }

  /// Shares the units of a configuration's providers with the fleet.
  func share(_ configuration: Configuration, _ upstreams: [any ConfiguredUpstream]) {
    level.units.limitedAccounts = []
    self.upstreams = upstreams
    var uses: [String: Int] = [:]
    for (provider, upstream) in zip(configuration.providers, upstreams) {
      // Two providers with one account have a limit each, so they are counted apart.
      let use = uses[provider.fleetAccount, default: 0]
      uses[provider.fleetAccount] = use + 1
      let account = provider.fleetAccount + (use == 0 ? "" : "-\(use + 1)")
      let units =
        settings.fleet.units
        ? AccountUnits(level.units, account: account, isLimited: provider.unitsPerDay > 0) : nil
      upstream.share(units: units)
    }
  }

  /// The state of the store and of this daemon's part.
  var report: FleetReport { level.report }

  /// The report with the list of daemons.
  func fullReport() async -> FleetReport {
    let members = await level.presence.present()
    var report = report
    report.members = members
    return report
  }

  /// Ends the connections.
  func close() {
    flushes.close()
    resolver.assumeIsolated { $0.use(Optional<FleetLevel>.none) }
    for upstream in upstreams { upstream.share(units: nil) }
    client.close()
  }
}

/// Finds the store's addresses by plain resolvers, never by this daemon itself.
private struct StoreFinder {
  let client: LocalDNSClient
  let bootstrap: [PlainResolver]
  let local: LocalDNSUpstream
  let nat64: NAT64
  let loop: EventLoop

  private static let timeout = Duration.seconds(2)

  func resolve(_ host: Host) async -> [SocketAddress] {
    guard !Configuration.StoreURL.isLocal(host.text) else {
      return [[127, 0, 0, 1], [UInt8](repeating: 0, count: 15) + [1]].compactMap { SocketAddress(octets: $0, port: 0) }
    }
    switch host {
    case .address(let address): return reached([address])
    case .name(let name):
      // One for each connection, so that addresses are never from an earlier look-up.
      let lookUp = HostLookUp(name, types: [.a, .aaaa], client: client, loop: loop) { [bootstrap, local] in
        bootstrap.isEmpty ? local.addresses : bootstrap
      }
      return reached(await lookUp.addresses(timeout: StoreFinder.timeout) ?? [])
    }
  }

  /// The addresses as this network reaches them.
  private func reached(_ addresses: [IPAddress]) -> [SocketAddress] {
    nat64.reach(addresses).compactMap { SocketAddress(octets: $0.octets, port: 0) }
  }
}
