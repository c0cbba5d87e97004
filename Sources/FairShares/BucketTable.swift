// BucketTable.swift -- token buckets for any number of keys in a fixed amount of memory.
//
// A bucket is one number: the time at which it is full again. A key without a row has a full bucket, so a row becomes free
// as soon as its bucket is full.

import CHotPath

/// Limits how often each key may do something: `rate` times a second, with bursts of `burst` seconds' worth. Any thread.
///
/// Rows form sets of eight, selected by a hash with a random seed. If all eight rows of a set are in use, the bucket that
/// will be full soonest is dropped: a new key always gets a row, and the emptiest buckets stay longest. To defeat the limit,
/// an attacker must keep eight times as many keys in use as there are sets, and could spend as much without the table.
public final class BucketTable: @unchecked Sendable {
  private struct Row {
    var key: UInt64
    /// The time at which the bucket is full, in nanoseconds of the caller's clock.
    var fullAt: Int64
  }

  /// Tokens per second; 0 for no limit.
  public let rate: Int
  /// The number of rows.
  public let capacity: Int
  private let rows: UnsafeMutablePointer<Row>
  private let locks: UnsafeMutablePointer<hot_mutex>
  /// What is reported about excesses: see `ExcessWord`.
  private let excesses: UnsafeMutablePointer<UInt64>
  private let setMask: UInt64
  private let seed: UInt64
  /// Nanoseconds per token.
  private let interval: Int64
  /// Nanoseconds from an empty to a full bucket.
  private let depth: Int64

  /// Creates a table in which all buckets are full.
  ///
  /// - Parameters:
  ///   - rate: tokens per second, up to a million; 0 for no limit.
  ///   - burst: the size of a bucket in seconds' worth of tokens.
  ///   - capacity: the number of rows of 16 octets, rounded up to a power of two. Ignored without a limit.
  ///   - seed: the seed of the hash, which must be secret.
  public init(rate: Int, burst: Int64, capacity: Int = 4096, seed: UInt64 = .random(in: 0 ... .max)) {
    precondition(
      rate >= 0 && rate <= BucketLimit.highestRate && burst > 0, "a bucket of \(rate) a second and \(burst) s")
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
    excesses = .allocate(capacity: ExcessWord.all)
    excesses.initialize(repeating: 0, count: ExcessWord.all)
  }

  deinit {
    for index in 0..<BucketLimit.lockCount { hot_mutex_destroy(locks + index) }
    rows.deallocate()
    locks.deallocate()
    excesses.deallocate()
  }

  /// Whether there is a limit.
  public var isOn: Bool { @_noAllocation get { rate > 0 } }

  /// The number of excesses: times that `take` refused a token or gave one of the future. Two at the same moment may count
  /// as one.
  public var excessCount: UInt64 { hot_counter_read(excesses + ExcessWord.count) }

  /// The key of the first excess since the last call; nil if there was none, or if it is 0. One thread
  /// calls it.
  public func takeFirstExcess() -> UInt64? {
    let key = hot_counter_read(excesses + ExcessWord.firstKey)
    hot_counter_set(excesses + ExcessWord.firstKey, 0)
    return key == 0 ? nil : key
  }

  /// Whether to report excesses: there are new ones, and the last report is at least a minute old.
  ///
  /// - Parameter seen: the number of excesses that the caller has reported; updated.
  @_noAllocation
  public func hasUnreported(_ seen: inout UInt64, now: Int64) -> Bool {
    let count = hot_counter_read(excesses + ExcessWord.count)
    guard count != seen, UInt64(bitPattern: now) >= hot_counter_read(excesses + ExcessWord.nextReport) else {
      return false
    }
    seen = count
    hot_counter_set(excesses + ExcessWord.nextReport, UInt64(bitPattern: now &+ BucketLimit.silence))
    return true
  }

  /// Takes a token.
  ///
  /// - Parameters:
  ///   - now: nanoseconds of a monotonic clock.
  ///   - patience: nanoseconds by which the caller can delay its action; a future token within this time may be taken.
  /// - Returns: nanoseconds to delay the action, 0 for none; `BucketLimit.refused` if it would exceed `patience`, and then
  ///   no token is taken.
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
    guard wait > 0 else { return 0 }
    if hot_counter_read(excesses + ExcessWord.firstKey) == 0 { hot_counter_set(excesses + ExcessWord.firstKey, key) }
    hot_counter_add(excesses + ExcessWord.count, 1)
    return isTaken ? wait : BucketLimit.refused
  }

  /// Whether a token is available.
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

  /// The row of the key, or the row of its set whose bucket is full, or will be full soonest.
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

/// The layout of what a table says about its excesses.
private enum ExcessWord {
  static var count: Int { @_noAllocation get { 0 } }
  /// The key of the first one since `takeFirstExcess`, or 0.
  static var firstKey: Int { @_noAllocation get { 1 } }
  /// Earliest time of the next report, in nanoseconds of the caller's clock.
  static var nextReport: Int { @_noAllocation get { 2 } }
  static var all: Int { 3 }
}

/// Constants of the tables. Not members of the class, because the compiler assumes that access to its metadata allocates.
public enum BucketLimit {
  /// The result of `take` if no token was taken.
  @inlinable public static var refused: Int64 { @_noAllocation get { -1 } }
  /// Nanoseconds between two reports of excesses.
  @inlinable static var silence: Int64 { @_noAllocation get { 60_000_000_000 } }
  /// The highest rate in tokens per second.
  public static let highestRate = 1_000_000
  /// Rows per set.
  @inlinable static var ways: Int { @_noAllocation get { 8 } }
  /// Sets share locks by the low bits of their index.
  @inlinable static var lockMask: UInt64 { @_noAllocation get { 63 } }
  @inlinable static var lockCount: Int { @_noAllocation get { 64 } }
}
