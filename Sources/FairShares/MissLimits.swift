// MissLimits.swift -- how many questions a second may go upstream for one client and about one domain. One thread.

/// Buckets for clients and for domains.
///
/// A domain's buckets always count: names that nobody knows yet are what a flood of random names costs, whoever else asks.
/// One client does not take a domain away from the others: a part of the domain's rate is set aside, and of that each client
/// gets a part only. Names that are in use have a bucket of their own.
///
/// A client's bucket counts while others ask for something, too; one that is alone may go on.
public struct MissLimits {
  /// What has been used up.
  public enum Limit: Hashable, Sendable {
    /// The client's share.
    case client
    /// The domain's share.
    case domain
  }

  /// What a question is paid from.
  private enum Purse {
    /// What the domain has for names in use.
    case namesInUse
    /// What everybody shares.
    case common
    /// What is set aside for clients with modest wishes.
    case reserve
  }

  /// The rates that were asked for.
  public let rates: (client: Int, domain: Int)
  private let clients: BucketTable
  private let common: BucketTable
  private let reserve: BucketTable
  /// Each client's part of each domain's reserve.
  private let parts: BucketTable
  private let namesInUse: BucketTable
  /// Whether the domains' rate is high enough for a reserve.
  private let hasReserve: Bool
  private var last: (client: ClientKey, at: Int64) = (.ourselves, .min)
  private var lastOther: (client: ClientKey, at: Int64) = (.ourselves, .min)

  /// Seconds' worth of questions that a page, or a program that starts, may ask at once.
  public static let burst: Int64 = 4
  /// Nanoseconds for which a client is in company after another one has asked for something.
  public static let company: Int64 = 10_000_000_000
  /// Which part of a domain's rate is set aside.
  private static let reservedPart = 5
  /// Which part of that one client gets.
  private static let clientsPart = 2

  /// Full buckets.
  ///
  /// - Parameters:
  ///   - perClient: questions a second; 0 for no limit.
  ///   - perDomain: the same for one domain; names in use may have as many again.
  public init(perClient: Int, perDomain: Int) {
    func buckets(_ rate: Int) -> BucketTable { BucketTable(rate: rate, burst: MissLimits.burst) }
    let reserved = perDomain / MissLimits.reservedPart
    rates = (perClient, perDomain)
    hasReserve = reserved > 0
    clients = buckets(perClient)
    common = buckets(perDomain - reserved)
    reserve = buckets(reserved)
    parts = buckets(hasReserve ? max(1, reserved / MissLimits.clientsPart) : 0)
    namesInUse = buckets(perDomain)
  }

  /// A question that would go upstream.
  ///
  /// - Parameter isInUse: whether its name is in use already, and not one of any number that somebody can make up.
  /// - Returns: what stands in its way; nil where it may go, and is paid for.
  public mutating func take(_ client: ClientKey, _ domain: DomainKey, isInUse: Bool = false, now: Int64) -> Limit? {
    let isAlone = isAlone(client, now: now)
    note(client, now: now)
    let part = domain.value ^ (client.value &* 0x9E37_79B9_7F4A_7C15)
    // One that the domain's share forbids does not count for the client, whose other questions are as good as any.
    guard let purse = purse(domain, part, isInUse: isInUse, now: now) else { return .domain }
    // While it is alone the bucket runs dry all the same: when somebody comes, the client has had its burst.
    if clients.take(client.value, now: now) == BucketLimit.refused, !isAlone { return .client }
    switch purse {
    case .namesInUse: _ = namesInUse.take(domain.value, now: now)
    case .common: _ = common.take(domain.value, now: now)
    case .reserve:
      _ = reserve.take(domain.value, now: now)
      _ = parts.take(part, now: now)
    }
    return nil
  }

  /// Where there is something left for the question.
  ///
  /// - Parameter part: the key of the client's part of the reserve.
  private func purse(_ domain: DomainKey, _ part: UInt64, isInUse: Bool, now: Int64) -> Purse? {
    if isInUse, namesInUse.has(domain.value, now: now) { return .namesInUse }
    if common.has(domain.value, now: now) { return .common }
    return hasReserve && reserve.has(domain.value, now: now) && parts.has(part, now: now) ? .reserve : nil
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
