// SubnetShares.swift -- limits the client subnets per name that are resolved separately. One thread.

/// The subnets of each name that are in use, up to a limit. A limited number of names, the most recent ones, is remembered.
public struct SubnetShares {
  fileprivate struct Subnets {
    /// The last use of each subnet, in nanoseconds of the caller's clock.
    var lastUse: [UInt64: Int64] = [:]
    /// The earliest time of the next scan for expired subnets.
    var nextLook: Int64 = .min
  }

  // Two generations: when the younger one is full, it replaces the older one.
  private var young: [UInt64: Subnets] = [:]
  private var old: [UInt64: Subnets] = [:]
  private let names: Int

  /// Nanoseconds after which an unused subnet expires: by default, no answer is cached for longer.
  public static let lifetime: Int64 = 3_600_000_000_000
  /// Nanoseconds between two scans of one name.
  fileprivate static let calm: Int64 = 10_000_000_000

  /// - Parameter names: the number of names that are remembered at least; at most twice as many are.
  public init(names: Int = 1024) { self.names = names }

  /// The number of remembered names.
  public var count: Int { young.count + old.count }

  /// Whether a name may be resolved for a subnet. If so, the subnet counts from then on.
  ///
  /// - Parameters:
  ///   - name: a hash of the name.
  ///   - subnet: a hash of the subnet.
  ///   - most: the limit of subnets per name; 0 for none.
  /// - Complexity: O(1), and once in 10 s O(`most`).
  public mutating func admits(name: UInt64, subnet: UInt64, most: Int, now: Int64) -> Bool {
    guard most > 0 else { return true }
    if young[name] == nil {
      if young.count >= names { (old, young) = (young, [:]) }
      young[name] = old.removeValue(forKey: name) ?? Subnets()
    }
    return young[name]!.admits(subnet, most, now)
  }
}

extension SubnetShares.Subnets {
  fileprivate mutating func admits(_ subnet: UInt64, _ most: Int, _ now: Int64) -> Bool {
    if lastUse[subnet] == nil, lastUse.count >= most {
      guard now >= nextLook else { return false }
      nextLook = now + SubnetShares.calm
      lastUse = lastUse.filter { now - $0.value < SubnetShares.lifetime }
      guard lastUse.count < most else { return false }
    }
    lastUse[subnet] = now
    return true
  }
}
