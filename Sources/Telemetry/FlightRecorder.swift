// FlightRecorder.swift -- the last events in memory, for the moment when somebody wants to know what came before.

import Glibc
import Logging
import Synchronization

/// An event as it was recorded.
public struct RecordedEvent: Sendable, Equatable {
  /// When it happened.
  public var time: LogTime
  /// How important it was.
  public var level: Logger.Level
  /// What happened, cut to `FlightRecorder.longestText`.
  public var text: String

  /// An event.
  public init(time: LogTime, level: Logger.Level, text: String) {
    self.time = time
    self.level = level
    self.text = text
  }
}

/// A ring of the last events, in one block of a fixed size of which only what is used takes memory. Any thread.
public final class FlightRecorder: Sendable {
  /// Events that it holds.
  public static let usualCapacity = 4096
  /// Octets of UTF-8 that are kept of an event.
  public static let longestText = slotSize - headSize

  /// Octets of an event: time, level and length, and then its text. 4,096 of them are 1 MiB.
  private static let slotSize = 256
  private static let headSize = 10

  private let capacity: Int
  nonisolated(unsafe) private let slots: UnsafeMutableRawPointer
  /// How many events there have been; the lock of `slots`.
  private let count = Mutex<Int>(0)

  /// A recorder of so many events.
  public init(capacity: Int = usualCapacity) {
    self.capacity = capacity
    slots = .allocate(byteCount: capacity * FlightRecorder.slotSize, alignment: 16)
  }

  deinit { slots.deallocate() }

  /// Records an event; the oldest makes room where there are too many.
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

  /// The events that are there, the oldest first.
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

  /// As many of the octets as are whole characters.
  private static func whole(_ octets: UnsafeBufferPointer<UInt8>, atMost limit: Int) -> Int {
    guard octets.count > limit else { return octets.count }
    var end = limit
    while end > 0, octets[end] & 0xC0 == 0x80 { end -= 1 }
    return end
  }
}
