// FlightRecorder.swift -- keeps the last events in memory, so that a dump shows what led to a problem.

import Glibc
import Logging
import Synchronization

public struct RecordedEvent: Sendable, Equatable {
  /// The wall-clock time.
  public var time: LogTime
  /// The log level.
  public var level: Logger.Level
  /// Message and values, truncated to `FlightRecorder.longestText` octets.
  public var text: String
}

/// A ring of the last events, in one block of fixed size whose pages are allocated on first use. Any thread.
public final class FlightRecorder: Sendable {
  /// The default capacity, in events.
  public static let usualCapacity = 4096
  /// The longest text of an event, in octets of UTF-8.
  public static let longestText = slotSize - headSize

  /// Octets per event: time, level, length and text. 4,096 events take 1 MiB.
  private static let slotSize = 256
  private static let headSize = 10

  private let capacity: Int
  nonisolated(unsafe) private let slots: UnsafeMutableRawPointer
  /// The number of events so far. The mutex also protects `slots`.
  private let count = Mutex<Int>(0)

  /// Creates a recorder for the last `capacity` events.
  public init(capacity: Int = usualCapacity) {
    self.capacity = capacity
    slots = .allocate(byteCount: capacity * FlightRecorder.slotSize, alignment: 16)
  }

  deinit { slots.deallocate() }

  /// Records an event. When the ring is full, it overwrites the oldest one.
  public func record(_ time: LogTime, _ level: Logger.Level, _ text: String) {
    var text = text
    let place = UInt8(Logger.Level.allCases.firstIndex(of: level) ?? 0)
    text.withUTF8 { octets in
      let length = FlightRecorder.whole(octets, atMost: FlightRecorder.longestText)
      count.withLock { count in
        let slot = slots + (count % capacity) * FlightRecorder.slotSize
        slot.storeBytes(of: time.nanoseconds, as: Int64.self)
        slot.storeBytes(of: place, toByteOffset: 8, as: UInt8.self)
        slot.storeBytes(of: UInt8(length), toByteOffset: 9, as: UInt8.self)
        if let base = octets.baseAddress { memcpy(slot + FlightRecorder.headSize, base, length) }
        count += 1
      }
    }
  }

  /// The recorded events, oldest first.
  public var events: [RecordedEvent] {
    count.withLock { count in
      (max(0, count - capacity)..<count).map { number in
        let slot = slots + (number % capacity) * FlightRecorder.slotSize
        let text = UnsafeRawBufferPointer(
          start: slot + FlightRecorder.headSize, count: Int(slot.load(fromByteOffset: 9, as: UInt8.self)))
        return RecordedEvent(
          time: LogTime(nanoseconds: slot.load(as: Int64.self)),
          level: Logger.Level.allCases[Int(slot.load(fromByteOffset: 8, as: UInt8.self))],
          text: String(decoding: text, as: UTF8.self))
      }
    }
  }

  /// The length of the longest prefix of whole characters.
  private static func whole(_ octets: UnsafeBufferPointer<UInt8>, atMost limit: Int) -> Int {
    guard octets.count > limit else { return octets.count }
    var end = limit
    while end > 0, octets[end] & 0xC0 == 0x80 { end -= 1 }
    return end
  }
}
