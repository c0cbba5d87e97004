// ProviderFactory.swift -- creates a provider's dialect and servers from its configuration.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import Files
import HTTPClient
import HTTPDNS
import HTTPMessage
import LocalDNS
import Logging
import Persistence
import Telemetry

/// Creates providers that run on the resolver's loop.
package struct ProviderFactory {
  let loop: EventLoop
  let localClient: any LocalDNSTransport
  /// Returns the network's current plain resolvers, which resolve servers given by name if there is no `bootstrap`.
  let systemServers: () -> [PlainResolver]
  var localServers: [Configuration.LocalServer]
  /// How servers are reached from a network that has IPv6 only.
  let nat64: NAT64?
  let maxInFlight: Int
  /// Stores what providers preserve across restarts.
  package let state: StateFolder
  /// Shared: the time that one provider reports helps the others.
  package let certificateClock = CertificateClock()
  /// Stores the units spent; nil if no provider has a budget.
  package var ledger: UnitLedger?
  /// Logs one line for the operator.
  let note: ProviderNote

  package init(
    loop: EventLoop, localClient: any LocalDNSTransport, systemServers: @escaping () -> [PlainResolver],
    localServers: [Configuration.LocalServer], nat64: NAT64? = nil, maxInFlight: Int, state: StateFolder,
    ledger: UnitLedger? = nil,
    note: @escaping ProviderNote
  ) {
    self.loop = loop
    self.localClient = localClient
    self.systemServers = systemServers
    self.localServers = localServers
    self.nat64 = nat64
    self.maxInFlight = maxInFlight
    self.state = state
    self.ledger = ledger
    self.note = note
  }

  /// - Parameter counters: those of the provider that has had the name.
  /// - Throws: `HTTPSetupError` if a CA file, a pin, a key or a name is unusable.
  func make(
    _ provider: Configuration.Provider, _ counters: SharedProviderCounters = SharedProviderCounters()
  ) throws(HTTPSetupError) -> any ConfiguredUpstream {
    var servers: [ProviderServer] = []
    for server in provider.servers { servers.append(try make(server, of: provider)) }
    if case .table(let source) = provider.kind { return table(source, provider, counters, servers) }
    switch provider.kind {
    case .emas(let account) where account.isScheduled:
      return try scheduled(
        provider, counters, by: EMASSchedule(accountID: account.accountID, region: account.region.rawValue),
        identity: "\(account.accountID) \(provider.scheme) \(account.region)", bootServers: servers)
    case .alidns(_, _, isScheduled: true):
      return try scheduled(
        provider, counters, by: AliDNSServerList(path: provider.path, isEncrypted: provider.scheme == .https),
        identity: "\(provider.scheme)", bootServers: servers)
    case .ucloud(let account, let appID, isScheduled: true):
      return try scheduled(
        provider, counters, by: UCloudNodes(account: account, appID: appID),
        identity: "\(account.id) \(appID ?? "-") \(provider.scheme)", bootServers: servers)
    default:
      return HTTPDNSProvider(
        provider, dialect: try dialect(of: provider), servers: servers, loop: loop, counters: counters, ledger: ledger,
        certificateClock: certificateClock, note: note)
    }
  }

  /// Creates a provider that fetches the list of its servers from boot servers, which answer questions as well until it has
  /// come, and as the last ones also after that if the source keeps them.
  private func scheduled(
    _ provider: Configuration.Provider, _ counters: SharedProviderCounters, by source: any ServerListSource,
    identity: String,
    bootServers: [ProviderServer]
  ) throws(HTTPSetupError) -> HTTPDNSProvider {
    let (note, name) = (note, provider.name)
    var listServers = bootServers
    if source.isAlwaysEncrypted, provider.scheme == .http {
      listServers = []
      for server in provider.servers { listServers.append(try make(server.ofSchedule, of: provider)) }
    }
    let places = provider.servers.map { "\($0.host.urlText):\($0.port)" }.joined(separator: ",")
    let schedule = ServerSchedule(
      source, of: provider, identity: "\(identity) \(places)", bootServers: listServers,
      file: state.file("servers-\(name)") {
        note(.warning, "provider \(name): its list of servers is not saved for the next start: \($0)")
      },
      timeout: provider.timeout, loop: loop
    ) { note($0, "provider \(name): \($1)") }
    let scheduled = HTTPDNSProvider(
      provider, dialect: try dialect(of: provider), servers: bootServers, loop: loop, counters: counters,
      ledger: ledger,
      schedule: schedule, certificateClock: certificateClock, note: note)
    schedule.onList = { [weak scheduled] listed in
      scheduled?.health.use(listed.map { servers($0, by: source, of: provider, before: bootServers) } ?? bootServers)
    }
    return scheduled
  }

  /// The servers of a list. The configured servers that it does not name follow them if the source keeps those.
  func servers(
    _ listed: [ListedServer], by source: any ServerListSource, of provider: Configuration.Provider,
    before bootServers: [ProviderServer]
  ) -> [ProviderServer] {
    let settings = listed.map { server in
      Configuration.Server(
        host: server.host, port: server.port ?? provider.scheme.defaultPort, scheme: provider.scheme,
        tlsName: source.hasOwnHosts && provider.scheme == .http ? server.host.text : provider.tlsName,
        path: provider.path)
    }
    // A name must not lead to this machine either.
    let isLocal = bootServers.mayLeadHere
    // A proxy would resolve it where no address can be looked at.
    let isResolvedElsewhere = provider.proxy != nil && provider.bootstrap.isEmpty
    let servers = settings.compactMap { server in
      isResolvedElsewhere && server.host.isName && !isLocal
        ? nil : try? make(server, of: provider) { isLocal || $0.isRoutable }
    }
    guard source.keepsConfiguredServers else { return servers }
    let others = zip(provider.servers, bootServers).filter { configured, _ in
      !settings.contains { $0.host == configured.host && $0.port == configured.port }
    }
    return servers + others.map { $0.1 }
  }

  private func table(
    _ source: Configuration.TableSource, _ provider: Configuration.Provider, _ counters: SharedProviderCounters,
    _ servers: [ProviderServer]
  ) -> TableProvider {
    let origin: TableProvider.Source =
      switch source.location {
      case .file(let path): .file(path)
      case .url: .servers(servers, target: provider.path, host: source.host)
      }
    return TableProvider(
      provider, origin, interval: source.interval, ttl: source.ttl.ttl, loop: loop, counters: counters,
      watch: { [loop] path, changed in PathWatch([path], on: loop, changed: changed) }, note: note)
  }

  private func dialect(of provider: Configuration.Provider) throws(HTTPSetupError) -> any Dialect {
    let isEncrypted = provider.scheme == .https
    switch provider.kind {
    case .alidns(let account, let short, _):
      return AliDNSDialect(
        account: account, form: short ? .short : .full, isEncrypted: isEncrypted, path: provider.path)
    case .tencent(let account, let expiry):
      return TencentDialect(account: account, path: provider.path, lifetime: expiry?.components.seconds)
    case .emas(let account) where account.api == .v1:
      return EMASDialect(
        accountID: account.accountID, secretKey: account.secretKey, parameters: account.parameters,
        isEncrypted: isEncrypted)
    case .emas(let account):
      do throws(EMASKeyError) {
        return try EMASv2Dialect(
          accountID: account.accountID, secretKey: account.secretKey, aesSecretKey: account.aesSecretKey,
          aesMode: account.aesMode, parameters: account.parameters, isEncrypted: isEncrypted)
      } catch { throw HTTPSetupError(description: error.description) }
    case .baidu(let account):
      return BaiduDialect(account: account, isEncrypted: isEncrypted, path: provider.path)
    case .volcengine(let account):
      return VolcengineDialect(account: account, isEncrypted: isEncrypted, path: provider.path)
    case .jdcloud(let account): return JDCloudDialect(account: account)
    case .ucloud(let account, let appID, _): return UCloudDialect(account: account, appID: appID)
    case .json:
      return JSONDialect(flavour: JSONDialect.Flavour(host: provider.tlsName, path: provider.path), path: provider.path)
    case .doh(let method): return MessageDialect(method: method == .get ? .get : .post, path: provider.path)
    case .text(let form, _): return TextDialect(form: form, path: provider.path)
    case .table: preconditionFailure("a table speaks no dialect")
    }
  }

  /// - Parameter admits: whether a server given by name may have that address.
  private func make(
    _ server: Configuration.Server, of provider: Configuration.Provider,
    admits: @escaping (IPAddress) -> Bool = { _ in true }
  ) throws(HTTPSetupError) -> ProviderServer {
    let (loop, options) = (loop, options(of: provider))
    let scheme: HTTPServerAddress.Scheme = server.scheme == .https ? .https : .http
    let connect: ProviderServer.Connect = { addresses in
      HTTPServerAddress(
        scheme: scheme, name: server.tlsName, addresses: addresses.map(\.description), port: server.port
      ).flatMap { try? HTTPOrigin($0, options: options, on: loop) }
    }
    // A proxy has its own network, and the family may be given.
    let nat64 = provider.proxy == nil && provider.family != .ipv4 ? nat64 : nil
    let proxy = provider.proxy.map { ", by proxy \($0.host.urlText):\($0.port)" } ?? ""
    let text = "\(server.host.urlText):\(server.port)\(proxy)"
    // Created once for validation, so that a mistake stops the start even if the server's name is not resolved yet.
    guard
      let address = HTTPServerAddress(scheme: scheme, name: server.tlsName, addresses: ["127.0.0.1"], port: server.port)
    else { throw HTTPSetupError(description: "\(text): \"\(server.tlsName)\" cannot be the name of a server") }
    _ = try HTTPOrigin(address, options: options, on: loop)
    switch server.host {
    case .address(let address):
      return ProviderServer(text, addresses: [address], isVerified: scheme == .https, nat64: nat64, connect: connect)
    case .name(let name) where provider.proxy != nil && provider.bootstrap.isEmpty:
      guard
        let address = HTTPServerAddress(
          scheme: scheme, name: server.tlsName, proxiedHost: name.description, port: server.port)
      else { throw HTTPSetupError(description: "\(text): \"\(name)\" cannot be the name of a server") }
      return ProviderServer(text, addresses: [], isVerified: scheme == .https) { _ in
        try? HTTPOrigin(address, options: options, on: loop)
      }
    case .name(let name):
      let lookUp = HostLookUp(
        name, types: types(provider.family), client: localClient, loop: loop, admits: admits,
        servers: resolvers(of: provider))
      return ProviderServer(text, lookUp: lookUp, isVerified: scheme == .https, nat64: nat64, connect: connect)
    }
  }

  private func resolvers(of provider: Configuration.Provider) -> () -> [PlainResolver] {
    let fixed = provider.bootstrap.map { PlainResolver($0) }
    guard fixed.isEmpty else { return { fixed } }
    let (systemServers, localServers) = (systemServers, localServers)
    return { localServers.addresses(system: systemServers()) }
  }

  private func types(_ family: Configuration.Family) -> [RecordType] {
    switch family {
    case .auto: [.a, .aaaa]
    case .ipv4: [.a]
    case .ipv6: [.aaaa]
    }
  }

  private func options(of provider: Configuration.Provider) -> HTTPClientOptions {
    var options = HTTPClientOptions()
    options.caFile = provider.caFile ?? ""
    options.pins = provider.pins
    options.proxy = provider.proxy.map { String(decoding: $0.text.reveal, as: UTF8.self) } ?? ""
    // Questions that have lost their place keep their transfers for a while, which may double the number in flight.
    options.maxInFlight = 2 * maxInFlight
    options.maxConnections = provider.connections
    options.certificateClock = certificateClock
    if case .table = provider.kind {
      options.maxBody = AddressTable.mostOctets
      options.usesHTTP2 = false
    }
    if case .json = provider.kind { options.maxBody = min(JSONDialect.mostOctets, HTTPClientOptions.mostHTTP2Body) }
    switch provider.family {
    case .auto: options.family = .any
    case .ipv4: options.family = .ipv4
    case .ipv6: options.family = .ipv6
    }
    return options
  }
}

extension ProviderFactory {
  /// Applies another configuration to the providers created from now on.
  package mutating func follow(_ configuration: Configuration, _ logger: Logger, _ occasional: OccasionalLog) {
    localServers = configuration.localDNS.servers
    // If a provider has a budget, its units are preserved across restarts.
    guard ledger == nil, configuration.providers.contains(where: { $0.unitsPerDay > 0 }) else { return }
    if let problem = FileProblem.foreseeable(at: "\(state.path)/units") {
      logger.warning("units_per_day will start from zero with a restart: \(problem)")
    }
    let file = state.file("units") { problem in
      let text = "units_per_day is not saved, and a restart forgets what is counted until it is: \(problem)"
      occasional.log(.warning, reason: text, now: BootInstant.now.nanoseconds, text)
    }
    ledger = UnitLedger(file, on: loop)
  }
}

extension StateFolder {
  /// Creates a folder that logs its problems. The daemon uses it from its start, `query` never does.
  package convenience init(_ path: String, _ logger: Logger) {
    self.init(path: path) { note in
      switch note {
      case .notOurs: logger.warning("\(note)")
      case .ours: logger.info("\(note)")
      }
    }
  }
}
