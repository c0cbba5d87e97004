// Configuration.swift -- the whole configuration as one immutable value; every property starts at its default.

/// The settings of the daemon, parsed and validated once. Properties are named after the keys of the file.
public struct Configuration: Hashable, Sendable {
  /// The file that is used if neither the command line nor the environment names one.
  public static let defaultPath = "/etc/httpdnsd/httpdnsd.toml"

  /// State that survives a restart, a folder for each daemon. `$STATE_DIRECTORY` wins.
  public var stateDirectory = "/var/lib/httpdnsd"
  /// Addresses, permitted clients and limits.
  public var listen = Listen()
  /// DNS over TLS and over HTTPS.
  public var encrypted = Encrypted()
  /// The providers in the order in which they are tried; never empty.
  public var providers = [Provider()]
  /// The network's own resolvers.
  public var localDNS = LocalDNS()
  /// The cache of responses.
  public var cache = Cache()
  /// How daemons share answers through the store of `cache.redis`.
  public var fleet = Fleet()
  /// Refreshing of entries before they expire.
  public var refresh = Refresh()
  /// The order of addresses in a response.
  public var ranking = Ranking()
  /// Exceptions for names; the first match wins.
  public var rules: [Rule] = []
  /// Lists that need more than a path or a URL in `lists` of a rule.
  public var lists: [List] = []
  /// Names that the daemon answers itself.
  public var names = Names()
  /// The control socket.
  public var control = Control()
  /// Metrics and health over HTTP.
  public var web = Web()
  /// Log level and format.
  public var log = Log()

  /// The defaults, which are also those of an empty file.
  public init() {}
}

extension Configuration {
  /// Whether any of the network's resolvers may be asked.
  var hasLocalDNS: Bool { !localDNS.servers.isEmpty }

  mutating func read(from root: TableReader) {
    root.read("state_directory", &stateDirectory, .absolutePath)
    root.section("listen") { listen.read(from: $0) }
    root.section("localdns") { localDNS.read(from: $0, ownAddresses: listen.addresses) }
    providers = Provider.readAll(from: root, beside: self)
    lists = List.readAll(from: root)
    rules = Rule.readAll(from: root, beside: self)
    root.warnOfUnused(lists, rules)
    var isStoreSound = true
    root.section("cache") { reader in
      cache.read(from: reader)
      isStoreSound = reader.isSound("redis")
    }
    let others = self
    root.section("fleet") { fleet.read(from: $0, beside: others, isStoreSound: isStoreSound) }
    root.section("refresh") { refresh.read(from: $0) }
    root.section("ranking") { ranking.read(from: $0) }
    root.section("names") { names.read(from: $0) }
    root.section("control") { control.read(from: $0) }
    root.section("web") { web.read(from: $0) }
    let rest = self
    root.section("encrypted") { encrypted.read(from: $0, beside: rest) }
    root.section("log") { log.read(from: $0) }
    root.refuseUnknownKeys()
    if let directory = root.report.environment("STATE_DIRECTORY")?.split(separator: ":").first {
      // systemd separates several directories by colons. The shipped unit has one; otherwise the first counts.
      stateDirectory = String(directory)
    }
    control.move(to: root.report.environment("RUNTIME_DIRECTORY"))
  }
}
