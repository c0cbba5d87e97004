// Cache.swift -- the `[cache]` section.

extension Configuration {
  /// The cache of responses.
  public struct Cache: Hashable, Sendable {
    /// Whether answers are cached; `false` sends every question upstream.
    public var isEnabled = true
    /// Memory for answers; the least recently used ones go first. With their keys.
    public var maxBytes = 32 << 20
    /// Highest number of answers.
    public var maxEntries = 100_000
    /// Lower TTLs are raised to this one, except those of failures.
    public var minTTL: Duration = .zero
    /// Higher TTLs are lowered to this one.
    public var maxTTL: Duration = .seconds(3600)
    /// Highest TTL of NXDOMAIN and NODATA. RFC 2308 section 5.
    public var maxNegativeTTL: Duration = .seconds(30)
    /// Longest time that a failure is remembered: 1 s at first, twice as long after each further one. RFC 9520 section 3.2.
    public var maxFailureTTL: Duration = .seconds(300)
    /// When clients get expired data. RFC 8767.
    public var stale = Stale.onFailure
    /// With `on-failure`, the longest wait before a client gets expired data.
    public var staleWait: Duration = .milliseconds(1800)
    /// Highest TTL of expired data in a response.
    public var staleTTL: Duration = .seconds(30)
    /// How long after its expiry data may be used.
    public var staleMaxAge: Duration = .seconds(86_400)
    /// Whether answers with data never expire while the daemon runs.
    public var isImmutable = false
    /// File that saves the cache across restarts, one for each daemon; empty means none.
    public var persist: String?
    /// Whether NXDOMAIN covers the names below (RFC 8020), within one route.
    public var nxdomainCut = true
    /// Whether each network has entries of its own.
    public var perNetwork = false
    /// URL of a store that daemons share: `redis://`, `rediss://` (TLS) or `unix://`. `fleet` says how.
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
