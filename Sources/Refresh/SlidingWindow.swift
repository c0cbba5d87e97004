// SlidingWindow.swift -- counts recent events in buckets.
//
// Pure: the caller passes in the clock, in nanoseconds.

/// Limits the number of events in any period of a given length.
///
/// A bucket counts until it lies entirely outside the window. An event therefore counts for up to the width of a bucket
/// longer than the window, and never shorter.
struct SlidingWindow: Sendable {
  private let limit: Int
  private let width: Int64
  /// Events per bucket, at the bucket's number modulo the number of buckets.
  private var buckets: [UInt32]
  /// The bucket number of the latest time seen.
  private var newest: Int64 = 0
  private var sum = 0

  /// Creates a window of `span` buckets of `width` nanoseconds that admits `limit` events.
  init(limit: Int, width: Int64, span: Int) {
    precondition(limit >= 0)
    self.limit = min(limit, Int(UInt32.max))
    self.width = width
    // One more for the current bucket: the window begins within the oldest one.
    buckets = Array(repeating: 0, count: span + 1)
  }

  /// Returns the number of events in the window.
  mutating func total(now: Int64) -> Int {
    advance(now)
    return sum
  }

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

  /// Counts past events; ignores those from before the window.
  mutating func restore(_ events: Int, at time: Int64, now: Int64) {
    advance(now)
    let bucket = time / width
    guard time >= 0, events > 0, bucket <= newest, newest - bucket < Int64(buckets.count) else { return }
    add(events, at: bucket)
  }

  /// Returns the beginning and the count of each bucket with events, oldest first.
  mutating func events(now: Int64) -> [(begin: Int64, count: Int)] {
    advance(now)
    return (max(newest - Int64(buckets.count - 1), 0)...newest).compactMap { bucket in
      let count = Int(buckets[slot(bucket)])
      return count > 0 ? (bucket * width, count) : nil
    }
  }

  /// Empties the buckets that have left the window since the last call. A clock that goes back stands still.
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
