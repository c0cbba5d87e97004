// Asker.swift -- looks names up on a thread of its own, one after the other, and takes the time of each look.

import DNSWire
import Glibc
import MessageCache
import Synchronization

/// Times of looks into the cache.
struct Delays {
  /// Looks.
  private(set) var count = 0
  /// Looks that the kernel interrupted.
  fileprivate(set) var preempted = 0
  /// The longest, in nanoseconds.
  private(set) var longest: Int64 = 0
  /// By their length in units of 100 ns, up to 10 ms.
  private var histogram = [Int](repeating: 0, count: 100_000)

  mutating func add(_ nanoseconds: Int64) {
    count += 1
    if nanoseconds > longest { longest = nanoseconds }
    histogram[min(Int(nanoseconds / 100), histogram.count - 1)] += 1
  }

  /// The time in nanoseconds that a part of the looks does not exceed.
  func quantile(_ part: Double) -> Int64 {
    var rest = Int(Double(count) * part)
    for (index, number) in histogram.enumerated() {
      rest -= number
      if rest <= 0 { return Int64(index + 1) * 100 }
    }
    return longest
  }
}

/// A thread that asks until it is told to end.
final class Asker: @unchecked Sendable {
  private let cache: MessageCache
  private let workload: Workload
  private let now: Int64
  private let isAsking = Atomic<Bool>(true)
  private var delays = Delays()
  private var thread = pthread_t()

  /// Looks that take longer are looked at: was it the kernel?
  private static let suspicious: Int64 = 20_000

  init(_ cache: MessageCache, _ workload: Workload, now: Int64) {
    self.cache = cache
    self.workload = workload
    self.now = now
    pthread_create(
      &thread, nil,
      { context in
        Unmanaged<Asker>.fromOpaque(context!).takeRetainedValue().ask()
        return nil
      }, Unmanaged.passRetained(self).toOpaque())
  }

  func end() -> Delays {
    isAsking.store(false, ordering: .relaxed)
    pthread_join(thread, nil)
    return delays
  }

  private func ask() {
    let output = UnsafeMutablePointer<UInt8>.allocate(capacity: 65_535)
    defer { output.deallocate() }
    var state: UInt64 = 88_172_645_463_325_252
    var switches = involuntarySwitches()
    while isAsking.load(ordering: .relaxed) {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      let key = workload.key(Int(state % UInt64(workload.count)), in: cache)
      var head = ResponseHead()
      let begin = monotonicNow()
      _ = cache.find(key, now: now, into: output, capacity: 65_535, &head)
      let time = monotonicNow() - begin
      if time > Asker.suspicious {
        let present = involuntarySwitches()
        let isInterrupted = present != switches
        switches = present
        if isInterrupted {
          delays.preempted += 1
          continue
        }
      }
      delays.add(time)
    }
  }

  private func monotonicNow() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  private func involuntarySwitches() -> Int {
    var usage = rusage()
    getrusage(RUSAGE_THREAD, &usage)
    return usage.ru_nivcsw
  }
}
