// SubnetShares.swift -- for how many client subnets one name is asked for. One thread.

/// The subnets of each name that are asked for, up to a bound. A bounded number of names is remembered, those that were asked
/// for last.
public struct SubnetShares {
  fileprivate struct Subnets {
    /// When each was asked for last, in nanoseconds of the caller's clock.
    var lastUse: [UInt64: Int64] = [:]
    /// No look at all of them before that.
    var nextLook: Int64 = .min
  }

  // Two halves: when the younger one is full it takes the place of the older one.
  private var young: [UInt64: Subnets] = [:]
  private var old: [UInt64: Subnets] = [:]
  private let names: Int

  /// Nanoseconds after which a subnet that nobody has asked for makes room: no answer is kept for longer by default.
  public static let lifetime: Int64 = 3_600_000_000_000
  /// Nanoseconds between two looks for such subnets of one name.
  fileprivate static let calm: Int64 = 10_000_000_000

  /// - Parameter names: that are remembered at least; twice as many at most.
  public init(names: Int = 1024) { self.names = names }

  /// How many names are remembered.
  public var count: Int { young.count + old.count }

  /// Whether a name may be asked for on behalf of that subnet; it is one of the name's from then on.
  ///
  /// - Parameters:
  ///   - name: a hash of it.
  ///   - subnet: a hash of it.
  ///   - most: how many a name may have; 0 for no bound.
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
