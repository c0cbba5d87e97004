// Configuration.swift -- the whole configuration as one immutable value; every property starts at its default.

/// What the configuration file says, read and checked once. Names follow the file's keys (docs: configuration page).
public struct Configuration: Hashable, Sendable {
  /// Where the file is looked for when neither the command line nor the environment names one.
  public static let defaultPath = "/etc/httpdnsd/httpdnsd.toml"

  /// Absolute path of the folder for what survives a restart; `$STATE_DIRECTORY` wins over the file.
  public var stateDirectory = "/var/lib/httpdnsd"
  /// Who is served, where and how much.
  public var listen = Listen()
  /// The providers in the order in which they are tried; never empty.
  public var providers = [Provider()]
  /// The plain resolvers of the network.
  public var localDNS = LocalDNS()
  /// The cache of responses.
  public var cache = Cache()
  /// What is fetched again before it expires.
  public var refresh = Refresh()
  /// The order of addresses in a response.
  public var ranking = Ranking()
  /// Exceptions for names; the first match wins.
  public var rules: [Rule] = []
  /// Names that are answered here.
  public var names = Names()
  /// The control socket.
  public var control = Control()
  /// Metrics and health over HTTP.
  public var web = Web()
  /// What is logged.
  public var log = Log()

  /// The defaults: what an empty file means.
  public init() {}
}

extension Configuration {
  mutating func read(from root: TableReader) {
    root.read("state_directory", &stateDirectory, .absolutePath)
    root.section("listen") { listen.read(from: $0) }
    root.section("localdns") { localDNS.read(from: $0, ownAddresses: listen.addresses) }
    let hasLocalDNS = !localDNS.servers.isEmpty
    providers = Provider.readAll(
      from: root, Provider.Context(hasLocalDNS: hasLocalDNS, ownAddresses: listen.addresses))
    rules = Rule.readAll(
      from: root,
      Rule.Context(
        providers: providers.map(\.name), hasLocalDNS: hasLocalDNS, ownAddresses: listen.addresses))
    root.section("cache") { cache.read(from: $0) }
    root.section("refresh") { refresh.read(from: $0) }
    root.section("ranking") { ranking.read(from: $0) }
    root.section("names") { names.read(from: $0) }
    root.section("control") { control.read(from: $0) }
    root.section("web") { web.read(from: $0) }
    root.section("log") { log.read(from: $0) }
    root.refuseUnknownKeys(Configuration.misplaced)
    if let directory = root.report.environment("STATE_DIRECTORY")?.split(separator: ":").first {
      // systemd separates several directories by colons; the unit has one, and the first is ours.
      stateDirectory = String(directory)
    }
    control.move(to: root.report.environment("RUNTIME_DIRECTORY"))
  }
}
