// RefreshShares.swift -- who may spend how much of what refreshing may cost in a minute, when others want to spend, too.
//
// Pure: driven by a clock that is passed in, in nanoseconds.

/// Shares of a minute's units. Whoever wants more than all of them may have what the others do not want.
public struct RefreshShares<Holder: Hashable & Sendable>: Sendable {
  /// Units of the minute that goes on and of the one before it.
  private struct Sums: Sendable {
    var current = 0
    var last = 0

    mutating func turn(minutes: Int64) {
      last = minutes == 1 ? current : 0
      current = 0
    }

    /// Those of the last 60 seconds, as if what was spent in the last minute had been spent evenly.
    func latest(_ passed: Double) -> Int { current + Int((Double(last) * (1 - passed)).rounded(.up)) }
  }

  private struct Account: Sendable {
    var wanted = Sums()
    var spent = Sums()
  }

  private var accounts: [Holder?: Account] = [:]
  private var minute: Int64 = 0

  /// A bound on memory and on the work of `admits`: others share an account.
  static var mostAccounts: Int { 256 }
  private static var width: Int64 { 60_000_000_000 }

  /// Nobody has wanted anything.
  public init() {}

  /// Whether `holder` may spend units: its share, or what is left beyond what the others have wanted of theirs.
  ///
  /// - Parameters:
  ///   - limit: units of a minute for all of them.
  ///   - left: what is left of those now.
  /// - Complexity: O(n) in the number of holders of the last two minutes, at most 256.
  public mutating func admits(_ holder: Holder?, _ units: Int, limit: Int, left: Int, now: Int64) -> Bool {
    turn(now)
    let key = key(holder)
    let passed = Double(now % Self.width) / Double(Self.width)
    accounts[key, default: Account()].wanted.current += units
    guard accounts.count > 1 else { return true }
    let share = max(1, limit / accounts.count)
    var unmet = 0
    for (other, account) in accounts where other != key {
      let wanted = max(account.wanted.current, account.wanted.last)
      unmet += max(0, min(share, wanted) - account.spent.latest(passed))
    }
    let spent = accounts[key]?.spent.latest(passed) ?? 0
    return spent + units <= share || units + unmet <= left
  }

  /// Counts what was spent.
  public mutating func spend(_ holder: Holder?, _ units: Int, now: Int64) {
    turn(now)
    accounts[key(holder), default: Account()].spent.current += units
  }

  /// Nil is the account of all for whom there is no room.
  private func key(_ holder: Holder?) -> Holder? {
    accounts[holder] != nil || accounts.count < Self.mostAccounts ? holder : nil
  }

  private mutating func turn(_ now: Int64) {
    let minutes = now / Self.width - minute
    guard minutes > 0 else { return }
    minute += minutes
    for key in accounts.keys {
      accounts[key]?.wanted.turn(minutes: minutes)
      accounts[key]?.spent.turn(minutes: minutes)
    }
    accounts = accounts.filter { $0.value.wanted.last > 0 }
  }
}
