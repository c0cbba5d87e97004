// MissLimits.swift -- how many questions a second may go upstream for one client and about one domain. One thread.

/// Buckets for clients and for domains.
///
/// A domain's bucket always counts: names that nobody knows yet are what a flood of random names costs, whoever else asks.
/// A client's counts while others ask for something, too; one that is alone may go on.
public struct MissLimits {
  /// What has been used up.
  public enum Limit: Hashable, Sendable {
    /// The client's share.
    case client
    /// The domain's share.
    case domain
  }

  private let clients: BucketTable
  private let domains: BucketTable
  private var last: (client: ClientKey, at: Int64) = (.ourselves, .min)
  private var lastOther: (client: ClientKey, at: Int64) = (.ourselves, .min)

  /// Seconds' worth of questions that a page, or a program that starts, may ask at once.
  public static let burst: Int64 = 4
  /// Nanoseconds for which a client is in company after another one has asked for something.
  public static let company: Int64 = 10_000_000_000

  /// Full buckets.
  ///
  /// - Parameters:
  ///   - perClient: questions a second; 0 for no limit.
  ///   - perDomain: the same for one domain.
  public init(perClient: Int, perDomain: Int) {
    clients = BucketTable(rate: perClient, burst: MissLimits.burst)
    domains = BucketTable(rate: perDomain, burst: MissLimits.burst)
  }

  /// Questions a second: of a client, about a domain.
  public var rates: (client: Int, domain: Int) { (clients.rate, domains.rate) }

  /// A question that would go upstream.
  ///
  /// - Returns: what stands in its way; nil where it may go, and is paid for.
  public mutating func take(_ client: ClientKey, _ domain: DomainKey, now: Int64) -> Limit? {
    let isAlone = isAlone(client, now: now)
    note(client, now: now)
    // One that the domain's share forbids does not count for the client, whose other questions are as good as any.
    guard domains.has(domain.value, now: now) else { return .domain }
    // While it is alone the bucket runs dry all the same: when somebody comes, the client has had its burst.
    if clients.take(client.value, now: now) == BucketLimit.refused, !isAlone { return .client }
    _ = domains.take(domain.value, now: now)
    return nil
  }

  private func isAlone(_ client: ClientKey, now: Int64) -> Bool {
    let other = last.client == client ? lastOther : last
    return other.at == .min || now - other.at > MissLimits.company
  }

  private mutating func note(_ client: ClientKey, now: Int64) {
    if last.client != client { lastOther = last }
    last = (client, now)
  }
}
