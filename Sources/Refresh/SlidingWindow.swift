// SlidingWindow.swift -- counts what happened in the time before now, in buckets.
//
// Pure: driven by a clock that is passed in, in nanoseconds.

/// At most so many events in any stretch of time of a length.
///
/// A bucket counts until it lies outside the window as a whole. An event therefore counts for up to the width of a
/// bucket longer than the window is, and never shorter.
struct SlidingWindow: Sendable {
  private let limit: Int
  private let width: Int64
  /// Events, at the bucket's number modulo the count.
  private var buckets: [UInt32]
  /// The number of the bucket of the latest time that was seen.
  private var newest: Int64 = 0
  private var sum = 0

  /// A window of `span` buckets of `width` nanoseconds, in which there may be `limit` events.
  init(limit: Int, width: Int64, span: Int) {
    precondition(limit >= 0)
    self.limit = min(limit, Int(UInt32.max))
    self.width = width
    // The current bucket comes on top: the window begins within the oldest one.
    buckets = Array(repeating: 0, count: span + 1)
  }

  /// The events of the window.
  mutating func total(now: Int64) -> Int {
    advance(now)
    return sum
  }

  /// Counts events.
  mutating func count(_ events: Int, now: Int64) {
    advance(now)
    add(events, at: newest)
  }

  private mutating func add(_ events: Int, at bucket: Int64) {
    let room = UInt32.max - buckets[slot(bucket)]
    let added = UInt32(clamping: min(events, Int(room)))
    buckets[slot(bucket)] += added
    sum += Int(added)
  }

  /// Counts events that happened at that time; those from before the window count for nothing.
  mutating func restore(_ events: Int, at time: Int64, now: Int64) {
    advance(now)
    let bucket = time / width
    guard time >= 0, events > 0, bucket <= newest, newest - bucket < Int64(buckets.count) else { return }
    add(events, at: bucket)
  }

  /// The events of the window, oldest first: when their buckets began, and how many there were.
  mutating func events(now: Int64) -> [(begin: Int64, count: Int)] {
    advance(now)
    return (max(newest - Int64(buckets.count - 1), 0)...newest).compactMap { bucket in
      let count = Int(buckets[slot(bucket)])
      return count > 0 ? (bucket * width, count) : nil
    }
  }

  /// When one more event is allowed if none is counted until then; `Int64.max` for never.
  mutating func nextOpening(now: Int64) -> Int64 {
    advance(now)
    guard limit > 0 else { return .max }
    guard sum >= limit else { return now }
    let oldest = max(newest - Int64(buckets.count - 1), 0)
    var left = sum
    for bucket in oldest...newest {
      left -= Int(buckets[slot(bucket)])
      if left < limit { return (bucket + Int64(buckets.count)) * width }
    }
    return .max
  }

  /// Empties the buckets that came round since the clock was last seen. A clock that goes back stands still.
  private mutating func advance(_ now: Int64) {
    let current = now / width
    guard current > newest else { return }
    let passed = min(current - newest, Int64(buckets.count))
    for bucket in (current - passed + 1)...current {
      sum -= Int(buckets[slot(bucket)])
      buckets[slot(bucket)] = 0
    }
    newest = current
  }

  private func slot(_ bucket: Int64) -> Int { Int(bucket % Int64(buckets.count)) }
}
