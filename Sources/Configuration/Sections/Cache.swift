// Cache.swift -- the `[cache]` section.

extension Configuration {
  /// The cache of responses.
  public struct Cache: Hashable, Sendable {
    /// Whether responses are cached.
    public var isEnabled = true
    /// The memory limit of all entries with their keys, in octets.
    public var maxBytes = 32 << 20
    /// The largest number of entries.
    public var maxEntries = 100_000
    /// Shorter TTLs are raised to this one, except those of failures; whole seconds, like all TTLs here.
    public var minTTL: Duration = .zero
    /// Longer TTLs are lowered to this one.
    public var maxTTL: Duration = .seconds(3600)
    /// The longest TTL of NODATA and NXDOMAIN (RFC 2308 section 5).
    public var maxNegativeTTL: Duration = .seconds(30)
    /// The longest time that a failure is cached, at most five minutes (RFC 9520 section 3.2).
    public var maxFailureTTL: Duration = .seconds(300)
    /// When expired data may be served (RFC 8767).
    public var stale = Stale.onFailure
    /// The longest time that a client waits before it gets stale data.
    public var staleWait: Duration = .milliseconds(1800)
    /// The TTL of stale data in a response.
    public var staleTTL: Duration = .seconds(30)
    /// How long after its expiry data may be served.
    public var staleMaxAge: Duration = .seconds(86_400)
    /// Whether entries never expire while the daemon runs.
    public var isImmutable = false
    /// The absolute path of the file that holds the cache across restarts; nil means none.
    public var persist: String?
    /// Whether NXDOMAIN also covers the names below (RFC 8020), within one route.
    public var nxdomainCut = true
    /// Whether each network has its own entries.
    public var perNetwork = false
    /// The store of a second-level cache that several daemons share; nil means none. `fleet` says how.
    public var redis: StoreURL?
  }

  /// When expired data may be served.
  public enum Stale: String, CaseIterable, Hashable, Sendable {
    /// Never.
    case off
    /// When no fresh answer arrives in time.
    case onFailure = "on-failure"
    /// At once, while a fresh answer is fetched.
    case immediate
  }
}

extension Configuration.Cache {
  mutating func read(from reader: TableReader) {
    reader.read("enabled", &isEnabled, .boolean)
    reader.read("max_bytes", &maxBytes, .size((64 << 10)...(1 << 40)))
    reader.read("max_entries", &maxEntries, .integer(1...100_000_000))
    reader.read("min_ttl", &minTTL, .ttl())
    reader.read("max_ttl", &maxTTL, .ttl())
    reader.read("max_negative_ttl", &maxNegativeTTL, .ttl(.zero ... .seconds(86_400)))
    reader.read("max_failure_ttl", &maxFailureTTL, .ttl(.seconds(1) ... .seconds(300)))
    reader.read("stale", &stale, .choice)
    reader.read("stale_wait", &staleWait, .duration(.zero ... .seconds(10)))
    reader.read("stale_ttl", &staleTTL, .ttl())
    reader.read("stale_max_age", &staleMaxAge, .ttl())
    reader.read("immutable", &isImmutable, .boolean)
    reader.read("persist", &persist, .optional(.absolutePath))
    reader.read("nxdomain_cut", &nxdomainCut, .boolean)
    reader.read("per_network", &perNetwork, .boolean)
    reader.read("redis", &redis, .optional(.storeURL))
    if redis != nil, !isEnabled { reader.warn("redis", "has no effect with enabled = false") }
    reader.refuseInverted("min_ttl", minTTL, "max_ttl", maxTTL)
  }
}
