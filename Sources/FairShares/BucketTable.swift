// BucketTable.swift -- token buckets for any number of keys in memory of a fixed size, safe on every thread.
//
// A bucket is one number: the time at which it is full again. One that is full is worth as much as none, so a row is free
// as soon as its bucket has filled up, and a key that has no row has a full bucket.

import CHotPath

/// How often each key may do something: `rate` times a second, and `burst` seconds' worth at once.
///
/// Rows stand in sets of eight, found by a hash with a seed of the run. Where all eight of a set are in debt, the one with
/// the least debt makes room: a newcomer is never shut out, and who is deepest in debt stays the longest. To make a row
/// useless for its purpose somebody must keep eight times as many keys in debt as there are sets; they may spend as much as
/// all rows together then, table or not.
public final class BucketTable: @unchecked Sendable {
  private struct Row {
    var key: UInt64
    /// When the bucket is full, in nanoseconds of the caller's clock.
    var fullAt: Int64
  }

  /// Times a second; 0 for no limit.
  public let rate: Int
  /// Rows in memory.
  public let capacity: Int
  private let rows: UnsafeMutablePointer<Row>
  private let locks: UnsafeMutablePointer<hot_mutex>
  /// Refusals so far; when the next one is worth a word.
  private let refusals: UnsafeMutablePointer<UInt64>
  private let nextWord: UnsafeMutablePointer<UInt64>
  private let setMask: UInt64
  private let seed: UInt64
  /// Nanoseconds that one token takes to grow.
  private let interval: Int64
  /// Nanoseconds that an empty bucket takes to fill.
  private let depth: Int64

  /// Full buckets.
  ///
  /// - Parameters:
  ///   - rate: times a second, up to a million; 0 for no limit.
  ///   - burst: seconds' worth that a full bucket holds.
  ///   - capacity: rows, rounded up to a power of two; 16 octets each. None without a limit.
  ///   - seed: of the hash; nobody outside may know it.
  public init(rate: Int, burst: Int64, capacity: Int = 4096, seed: UInt64 = .random(in: 0 ... .max)) {
    precondition(rate >= 0 && rate <= 1_000_000 && burst > 0, "a bucket of \(rate) a second and \(burst) s")
    self.rate = rate
    self.seed = seed
    var sets = 1
    while sets * BucketLimit.ways < capacity { sets *= 2 }
    if rate == 0 { sets = 1 }
    self.capacity = sets * BucketLimit.ways
    setMask = UInt64(sets - 1)
    interval = rate == 0 ? 0 : (1_000_000_000 + Int64(rate) - 1) / Int64(rate)
    depth = burst * 1_000_000_000
    rows = .allocate(capacity: self.capacity)
    rows.initialize(repeating: Row(key: 0, fullAt: .min), count: self.capacity)
    locks = .allocate(capacity: BucketLimit.lockCount)
    for index in 0..<BucketLimit.lockCount { hot_mutex_init(locks + index) }
    refusals = .allocate(capacity: 1)
    refusals.initialize(to: 0)
    nextWord = .allocate(capacity: 1)
    nextWord.initialize(to: 0)
  }

  deinit {
    for index in 0..<BucketLimit.lockCount { hot_mutex_destroy(locks + index) }
    rows.deallocate()
    locks.deallocate()
    refusals.deallocate()
    nextWord.deallocate()
  }

  /// Whether there is a limit.
  public var isOn: Bool { @_noAllocation get { rate > 0 } }

  /// How often `take` has refused so far. Each is counted, though two at the same moment may count as one.
  public var refusalCount: UInt64 { hot_counter_read(refusals) }

  /// Whether refusals are due to be reported: there have been some, and the last report is a minute old, or older.
  ///
  /// - Parameter seen: refusals that the caller knows of; brought up to date.
  @_noAllocation
  public func hasNews(_ seen: inout UInt64, now: Int64) -> Bool {
    let count = hot_counter_read(refusals)
    guard count != seen, UInt64(bitPattern: now) >= hot_counter_read(nextWord) else { return false }
    seen = count
    hot_counter_set(nextWord, UInt64(bitPattern: now &+ BucketLimit.silence))
    return true
  }

  /// Takes a token.
  ///
  /// - Parameters:
  ///   - now: nanoseconds of a clock that never goes back.
  ///   - patience: nanoseconds for which the caller can put off what it does; then a token that is still to grow may be taken.
  /// - Returns: nanoseconds to put it off for, 0 for none; `BucketLimit.refused`, and nothing is taken, where that is more than `patience`.
  @_noAllocation
  public func take(_ key: UInt64, now: Int64, patience: Int64 = 0) -> Int64 {
    guard rate > 0 else { return 0 }
    let set = mix(key) & setMask
    let lock = locks + Int(truncatingIfNeeded: set & BucketLimit.lockMask)
    hot_mutex_lock(lock)
    let row = find(key, rows + Int(truncatingIfNeeded: set) &* BucketLimit.ways)
    let fullAt = row.pointee.key == key && row.pointee.fullAt > now ? row.pointee.fullAt : now
    let next = fullAt &+ interval
    let wait = next &- now &- depth
    let isTaken = wait <= patience
    if isTaken {
      row.pointee.key = key
      row.pointee.fullAt = next
    }
    hot_mutex_unlock(lock)
    guard isTaken else {
      hot_counter_add(refusals, 1)
      return BucketLimit.refused
    }
    return wait > 0 ? wait : 0
  }

  /// Whether there is a token to take.
  @_noAllocation
  public func has(_ key: UInt64, now: Int64) -> Bool {
    guard rate > 0 else { return true }
    let set = mix(key) & setMask
    let lock = locks + Int(truncatingIfNeeded: set & BucketLimit.lockMask)
    hot_mutex_lock(lock)
    let row = find(key, rows + Int(truncatingIfNeeded: set) &* BucketLimit.ways)
    let isInDebt = row.pointee.key == key && row.pointee.fullAt > now
    let next = (isInDebt ? row.pointee.fullAt : now) &+ interval
    hot_mutex_unlock(lock)
    return next &- now <= depth
  }

  /// The key's row, or the one of its set that is missed least: the one that is full, or will be first.
  @_noAllocation
  private func find(_ key: UInt64, _ set: UnsafeMutablePointer<Row>) -> UnsafeMutablePointer<Row> {
    var best = set
    var index = 0
    while index < BucketLimit.ways {
      let row = set + index
      if row.pointee.key == key, row.pointee.fullAt != .min { return row }
      if row.pointee.fullAt < best.pointee.fullAt { best = row }
      index &+= 1
    }
    return best
  }

  @_noAllocation @inline(__always)
  private func mix(_ key: UInt64) -> UInt64 {
    let first = (key ^ seed).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
    let second = (first.high ^ first.low ^ seed).multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
    return second.high ^ second.low
  }
}

/// Numbers of the tables. Not the tables' own: to use a class as such may allocate, as far as the compiler knows.
public enum BucketLimit {
  /// What `take` returns where nothing was taken.
  @inlinable public static var refused: Int64 { @_noAllocation get { -1 } }
  /// Nanoseconds between two words about refusals.
  @inlinable static var silence: Int64 { @_noAllocation get { 60_000_000_000 } }
  /// Rows of a set.
  @inlinable static var ways: Int { @_noAllocation get { 8 } }
  /// Sets share locks by the low bits of their numbers.
  @inlinable static var lockMask: UInt64 { @_noAllocation get { 63 } }
  @inlinable static var lockCount: Int { @_noAllocation get { 64 } }
}
