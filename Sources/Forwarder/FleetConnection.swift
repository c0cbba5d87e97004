// FleetConnection.swift -- connects the resolver with the store that a fleet shares.
//
// Resolver's loop only.

import Ciphers
import Configuration
import DNSWire
import EventLoop
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

  /// All that needs other connections if it changes.
  struct Settings: Hashable {
    var url: Configuration.StoreURL
    var fleet: Configuration.Fleet
    /// The fingerprint of the default route, as other daemons see it.
    var fingerprint: [UInt8]
  }

  /// What it works with.
  struct Parts {
    var resolver: Resolver
    var local: LocalDNSUpstream
    var localClient: LocalDNSClient
    var logger: Logger
    /// The version of the program.
    var version: String
  }

  /// The settings of a configuration; nil if it has no store.
  static func settings(_ configuration: Configuration, _ routes: [Route]) -> Settings? {
    guard configuration.cache.isEnabled, let url = configuration.cache.redis else { return nil }
    let fingerprint = routes[Int(Route.Number.standard)].fleetFingerprint
    return Settings(url: url, fleet: configuration.fleet, fingerprint: fingerprint)
  }

  /// Connects, while the daemon serves.
  init(_ settings: Settings, _ parts: Parts, on loop: EventLoop) {
    self.settings = settings
    resolver = parts.resolver
    let logger = parts.logger
    let finder = StoreFinder(
      client: parts.localClient, bootstrap: settings.fleet.bootstrap.map { SocketAddress($0) }, local: parts.local)
    let store = StoreSettings(settings)
    let log: (StoreEvent) -> Void = { event in
      logger.log(level: event.level == .info ? .info : event.level == .warning ? .warning : .error, "\(event.text)")
    }
    client = StoreClient(store, on: loop, resolve: finder.resolve, note: log)
    flushes = StoreStream(store, on: loop, resolve: finder.resolve, note: log)
    let identity = RandomOctets.generate(count: 16)
    let keys = FleetKeys(
      namespace: settings.fleet.namespace, site: settings.fleet.site, secret: settings.fleet.secret?.reveal)
    var part = FleetLevel.Settings(keys: keys)
    (part.timeout, part.wait) = (settings.fleet.timeout, settings.fleet.wait)
    part.sharesUnits = settings.fleet.units
    let member = FleetMember(
      id: Hexadecimal.encode(identity), version: parts.version,
      fingerprint: keys.fingerprint(of: settings.fingerprint), host: FleetConnection.hostName)
    let client = client
    nonisolated(unsafe) let fleet = FleetLevel(
      part, over: client, on: loop, identity: identity, member: member
    ) { note in logger.log(level: note.isProblem ? .error : .info, "\(note.text)") }
    let place = settings.url.description
    fleet.describe = { [unowned client] in (client.report, place) }
    level = fleet
    client.onUp = { [weak fleet] in fleet?.connected() }
    resolver.assumeIsolated { $0.use(fleet) }
    client.start()
    flushes.read { [weak fleet] in
      fleet?.nextFlush ?? [Array("PING".utf8)]
    } _: { [resolver] reply in
      resolver.assumeIsolated { $0.took(flushes: reply) }
    }
  }

  /// Adds up the units of providers over the site.
  func share(_ configuration: Configuration) {
    nonisolated(unsafe) let level = settings.fleet.units ? level : nil
    resolver.assumeIsolated { resolver in
      var uses: [String: Int] = [:]
      for (provider, upstream) in zip(configuration.providers, resolver.upstreams) {
        // Two providers with one account have a limit each, so they are counted apart.
        let use = uses[provider.fleetAccount, default: 0]
        uses[provider.fleetAccount] = use + 1
        let account = provider.fleetAccount + (use == 0 ? "" : "-\(use + 1)")
        upstream.share(
          units: level.map { AccountUnits($0, account: account, isLimited: provider.unitsPerDay > 0) })
      }
    }
  }

  /// The state of the store and of this daemon's part.
  var report: FleetReport { level.report }

  /// The same with the daemons that are there.
  func fullReport() async -> FleetReport {
    let members = await level.present()
    var report = report
    report.members = members
    return report
  }

  /// Ends the connections.
  func close() {
    resolver.assumeIsolated { resolver in
      resolver.use(Optional<FleetLevel>.none)
      for upstream in resolver.upstreams { upstream.share(units: nil) }
    }
    client.close()
    flushes.close()
  }

  private static var hostName: String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}

extension StoreSettings {
  fileprivate init(_ settings: FleetConnection.Settings) {
    let (url, fleet) = (settings.url, settings.fleet)
    switch url.endpoint {
    case .socket(let path): self.init(address: .unix(path))
    case .host(let host, let port):
      let tls = StoreTLS(name: fleet.tlsName ?? host.text, authorityFile: fleet.caFile ?? "")
      self.init(address: .tcp(host: host.text, port: port), tls: url.scheme == .rediss ? tls : nil)
    }
    user = fleet.user ?? ""
    password = StorePassword(fleet.password?.reveal ?? [])
    database = url.database
    (timeout, connectTimeout) = (fleet.timeout, fleet.connectTimeout)
  }
}

/// Finds the store's addresses by plain resolvers, never by this daemon itself.
private struct StoreFinder: Sendable {
  let client: LocalDNSClient
  let bootstrap: [SocketAddress]
  let local: LocalDNSUpstream

  private static let timeout = Duration.seconds(2)

  func resolve(_ host: String) async -> [SocketAddress] {
    guard let name = DomainName(text: host) else { return [] }
    let servers = bootstrap.isEmpty ? local.addresses : bootstrap
    var addresses: [SocketAddress] = []
    for type in [RecordType.a, .aaaa] {
      let reply = await client.ask(
        Question(name: name, type: type), dnssecOK: false, checkingDisabled: false, servers: servers,
        timeout: StoreFinder.timeout)
      guard case .success(let answer) = reply else { continue }
      for record in answer.message.answers where record.type == type {
        if let address = SocketAddress(octets: record.rdata, port: 0) { addresses.append(address) }
      }
    }
    return addresses
  }
}
