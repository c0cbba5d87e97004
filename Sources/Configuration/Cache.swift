// Cache.swift -- the `[cache]` section.

extension Configuration {
  /// The cache of responses.
  public struct Cache: Hashable, Sendable {
    /// Whether there is a cache at all.
    public var isEnabled = true
    /// Octets that the entries may take, keys included.
    public var maxBytes = 32 << 20
    /// How many entries there may be.
    public var maxEntries = 100_000
    /// Shorter TTLs are raised to this one, except those of failures; whole seconds, as all TTLs here.
    public var minTTL: Duration = .zero
    /// Longer TTLs are lowered to this one.
    public var maxTTL: Duration = .seconds(3600)
    /// The longest TTL of NODATA and NXDOMAIN (RFC 2308 section 5).
    public var maxNegativeTTL: Duration = .seconds(30)
    /// The longest that a failure is remembered, at most five minutes (RFC 9520 section 3.2).
    public var maxFailureTTL: Duration = .seconds(300)
    /// When expired data may be served (RFC 8767).
    public var stale = Stale.onFailure
    /// The longest that a client waits before it gets stale data.
    public var staleWait: Duration = .milliseconds(1800)
    /// The TTL of stale data in a response.
    public var staleTTL: Duration = .seconds(30)
    /// How long after its expiry data may be served.
    public var staleMaxAge: Duration = .seconds(86_400)
    /// Whether an entry never expires while the program runs.
    public var isImmutable = false
    /// The file that the cache is saved to and loaded from; nil means none.
    public var persist: String?
    /// Whether NXDOMAIN covers the names below (RFC 8020), within one route.
    public var nxdomainCut = true
    /// Whether each network that the machine is on has entries of its own.
    public var perNetwork = false
    /// URL of the second level that a fleet shares; nil means none. May hold a password.
    public var redis: CredentialURL?
  }

  /// When expired data may be served.
  public enum Stale: String, CaseIterable, Hashable, Sendable {
    /// Never.
    case off
    /// When there is no fresh answer in time.
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
    reader.read("redis", &redis, .optional(.credentialURL(schemes: ["redis"])))
    reader.refuseInverted("min_ttl", minTTL, "max_ttl", maxTTL)
  }
}
