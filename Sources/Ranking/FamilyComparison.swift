// FamilyComparison.swift -- whether a name's IPv6 addresses are measured to be worse than its IPv4 addresses.

/// Compares the families of a name by what is known of their addresses.
public struct FamilyComparison {
  /// This many failures in a row of every IPv6 address count against the family.
  public static let failures = 2

  /// By how much IPv6 must be slower, in microseconds.
  public var threshold: UInt32

  /// Creates a comparison.
  public init(threshold: UInt32) { self.threshold = threshold }

  /// Whether IPv6 is worse. What is not known counts for it.
  ///
  /// The families are compared by the most preferred kind by which an address works. A verdict stays until the difference is
  /// below half of the threshold, so that it does not change with every measurement.
  ///
  /// - Parameters:
  ///   - ipv4: what is known of each IPv4 address by each kind, the most preferred kind first.
  ///   - ipv6: the same of the IPv6 addresses.
  ///   - wasWorse: the verdict so far.
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
