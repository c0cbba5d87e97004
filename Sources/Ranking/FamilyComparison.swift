// FamilyComparison.swift -- decides whether a name's IPv6 addresses are worse than its IPv4 addresses.

/// Compares the address families of a name by their measurements.
public struct FamilyComparison {
  /// The family counts as failing once every IPv6 address has this many failures in a row.
  public static let failures = 2

  /// By how much IPv6 must be slower to be worse, in microseconds.
  public var threshold: UInt32

  public init(threshold: UInt32) { self.threshold = threshold }

  /// Whether IPv6 is worse. A missing measurement counts in favour of IPv6.
  ///
  /// The families are compared by the most preferred kind of probe that any address answers. Once IPv6 is worse, it
  /// stays worse until the difference is below half of the threshold, so that the result does not change with each
  /// measurement.
  ///
  /// - Parameters:
  ///   - ipv4: the measurements of each IPv4 address by each kind, the most preferred kind first.
  ///   - ipv6: the same for the IPv6 addresses.
  ///   - wasWorse: the previous result.
  public func isIPv6Worse(ipv4: [[Measurement?]], ipv6: [[Measurement?]], wasWorse: Bool) -> Bool {
    guard !ipv6.isEmpty, let kinds = ipv4.first?.count else { return false }
    for kind in 0..<kinds {
      let (best4, best6) = (Self.best(ipv4, by: kind), Self.best(ipv6, by: kind))
      switch (best4, best6) {
      case (nil, nil): continue
      case (nil, .some): return false
      case (.some, nil): return ipv6.allSatisfy { ($0[kind]?.failures ?? 0) >= Self.failures }
      case (let best4?, let best6?):
        return UInt64(best6) >= UInt64(best4) + UInt64(wasWorse ? threshold / 2 : threshold)
      }
    }
    return false
  }

  private static func best(_ addresses: [[Measurement?]], by kind: Int) -> UInt32? {
    addresses.compactMap { $0[kind] }.filter { !$0.isFailing }.compactMap(\.microseconds).min()
  }
}
