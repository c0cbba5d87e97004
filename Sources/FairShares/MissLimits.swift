// MissLimits.swift -- limits the questions per second that go upstream for one client and about one domain. One thread.

/// Token buckets for clients and for domains.
///
/// A domain's buckets always apply: they bound the cost of a flood of random names, and keep providers from throttling
/// all clients. Questions that no provider bills cost less, so that their rate is ten times as high. A part of the
/// domain's rate is reserved, and each client gets only a part of that, so that one client cannot use up a domain for
/// the others. Names in use have a bucket of their own.
///
/// A client's bucket applies only while other clients are active; a single client is not limited.
public struct MissLimits {
  /// The limit that was reached.
  public enum Limit: Hashable, Sendable {
    /// The client's share.
    case client
    /// The domain's share.
    case domain
  }

  /// The configured rates.
  public let rates: (client: Int, domain: Int)
  private let clients: BucketTable
  private let billed: DomainBuckets
  private let free: DomainBuckets
  private var last: (client: ClientKey, at: Int64) = (.ourselves, .min)
  private var lastOther: (client: ClientKey, at: Int64) = (.ourselves, .min)

  /// The size of a burst in seconds' worth of questions: enough for a web page, or for the start of a program.
  public static let burst: Int64 = 4
  /// Nanoseconds for which another client counts as active after its last question.
  public static let company: Int64 = 10_000_000_000
  /// The rate about a domain is multiplied by this for questions that no provider bills.
  static let freeFactor = 10

  /// Creates limits in which all buckets are full.
  ///
  /// - Parameters:
  ///   - perClient: questions per second of one client; 0 for no limit.
  ///   - perDomain: questions per second about one domain that are billed; 0 for no limit. Names in use get the same rate
  ///     again.
  public init(perClient: Int, perDomain: Int) {
    rates = (perClient, perDomain)
    clients = BucketTable(rate: perClient, burst: MissLimits.burst)
    billed = DomainBuckets(rate: perDomain)
    free = DomainBuckets(rate: min(perDomain * MissLimits.freeFactor, BucketLimit.highestRate))
  }

  /// Takes a token for a question that is to go upstream.
  ///
  /// - Parameters:
  ///   - isBilled: whether a provider of its route bills it.
  ///   - isInUse: whether its name is known to be in use, and so not a random one.
  /// - Returns: the limit that forbids it; nil if it may go, and then the token is taken.
  public mutating func take(
    _ client: ClientKey, _ domain: DomainKey, isBilled: Bool = true, isInUse: Bool = false, now: Int64
  ) -> Limit? {
    let isAlone = isAlone(client, now: now)
    note(client, now: now)
    let domains = isBilled ? billed : free
    let part = domain.value ^ (client.value &* 0x9E37_79B9_7F4A_7C15)
    // A question that the domain's limit forbids must not count against the client.
    guard let purse = domains.purse(domain, part, isInUse: isInUse, now: now) else { return .domain }
    // The bucket of a single client drains too, so that its burst is used up when another client becomes active.
    if clients.take(client.value, now: now) == BucketLimit.refused, !isAlone { return .client }
    domains.pay(purse, domain, part, now: now)
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

private struct DomainBuckets {
  /// The bucket that pays for a question.
  enum Purse {
    /// The domain's bucket for names in use.
    case namesInUse
    /// The domain's bucket for all clients.
    case common
    /// The domain's reserve for clients with few questions.
    case reserve
  }

  private let common: BucketTable
  private let reserve: BucketTable
  /// Buckets for each client's part of each domain's reserve.
  private let parts: BucketTable
  private let namesInUse: BucketTable
  /// Whether the rate is high enough for a reserve.
  private let hasReserve: Bool

  /// The reserve is the domain's rate divided by this.
  private static let reservedPart = 5
  /// A client's part is the reserve divided by this.
  private static let clientsPart = 2

  init(rate: Int) {
    func buckets(_ rate: Int) -> BucketTable { BucketTable(rate: rate, burst: MissLimits.burst) }
    let reserved = rate / DomainBuckets.reservedPart
    hasReserve = reserved > 0
    common = buckets(rate - reserved)
    reserve = buckets(reserved)
    parts = buckets(hasReserve ? max(1, reserved / DomainBuckets.clientsPart) : 0)
    namesInUse = buckets(rate)
  }

  /// The bucket that can pay for the question; nil if none can.
  ///
  /// - Parameter part: the key of the client's part of the reserve.
  func purse(_ domain: DomainKey, _ part: UInt64, isInUse: Bool, now: Int64) -> Purse? {
    if isInUse, namesInUse.has(domain.value, now: now) { return .namesInUse }
    if common.has(domain.value, now: now) { return .common }
    return hasReserve && reserve.has(domain.value, now: now) && parts.has(part, now: now) ? .reserve : nil
  }

  func pay(_ purse: Purse, _ domain: DomainKey, _ part: UInt64, now: Int64) {
    switch purse {
    case .namesInUse: _ = namesInUse.take(domain.value, now: now)
    case .common: _ = common.take(domain.value, now: now)
    case .reserve:
      _ = reserve.take(domain.value, now: now)
      _ = parts.take(part, now: now)
    }
  }
}
