// MeasurementTable.swift -- round trips and failures of addresses, by network, address and kind of probe.
//
// Pure: the caller passes in the clock, in nanoseconds. A full table reuses the least recently measured row.

import DNSWire

/// The measurement of one address by one kind of probe on one network.
public struct Measurement: Hashable, Sendable {
  /// The smoothed round trip in microseconds; nil if none is valid.
  public var microseconds: UInt32?
  /// Failures in a row. Failures less than 5 s apart count once.
  public var failures: Int
  /// When it was last probed, in nanoseconds.
  public var measuredAt: Int64

  /// Whether the address counts as failing: after one failure if it has no round trip, otherwise after two in a row.
  public var isFailing: Bool { failures >= (microseconds == nil ? 1 : 2) }
}

/// Measurements of at most 8,192 addresses.
public struct MeasurementTable {
  /// The maximum number of rows.
  public static let capacity = 8_192
  /// How long a round trip is valid after the last answer, in nanoseconds.
  static let lifetime: Int64 = 86_400_000_000_000
  /// Failures less than this apart, in nanoseconds, count once.
  static let failureSpacing: Int64 = 5_000_000_000

  private struct Key: Hashable {
    var high: UInt64 = 0
    var low: UInt64 = 0
    var network: UInt32
    /// The number of the kind; bit 31 is set for IPv6.
    var kind: UInt32

    init(_ address: IPAddress, _ kind: ProbeKind, network: UInt32) {
      self.network = network
      self.kind = kind.number | (address.isIPv6 ? 1 << 31 : 0)
      for (index, octet) in address.octets.enumerated() {
        if index < 8 { high = high << 8 | UInt64(octet) } else { low = low << 8 | UInt64(octet) }
      }
    }
  }

  /// 64 octets.
  private struct Row {
    var key: Key
    var measuredAt: Int64
    var answeredAt: Int64
    var failedAt: Int64
    /// 0 if the address has never answered.
    var microseconds: UInt32
    var failures: UInt16
    /// Indices of the neighbours in the order of use; `none` at an end.
    var older: UInt16
    var newer: UInt16
  }

  private static let none = UInt16.max

  private var rows: [Row] = []
  /// The index of each key's row.
  private var places: [Key: UInt16] = [:]
  private var oldest = MeasurementTable.none
  private var newest = MeasurementTable.none

  /// The number of rows.
  public var count: Int { rows.count }

  /// The memory that the table has allocated, in octets.
  var octets: Int {
    rows.capacity * MemoryLayout<Row>.stride
      // A dictionary takes a third more than it has room for.
      + places.capacity * 4 / 3 * (MemoryLayout<Key>.stride + MemoryLayout<UInt16>.stride)
  }

  /// The measurement of an address; nil if it was never measured, or if the measurement has expired.
  ///
  /// - Parameter interval: the time between two measurements in nanoseconds. Failures expire after two intervals, but
  ///   not before 15 s.
  public func measurement(
    of address: IPAddress, by kind: ProbeKind, network: UInt32, now: Int64, interval: Int64
  ) -> Measurement? {
    guard let index = places[Key(address, kind, network: network)] else { return nil }
    let row = rows[Int(index)]
    let isTimed = row.microseconds > 0 && now - row.answeredAt < Self.lifetime
    let hasFailed = row.failures > 0 && !Self.hasExpired(row, now: now, interval: interval)
    guard isTimed || hasFailed else { return nil }
    return Measurement(
      microseconds: isTimed ? row.microseconds : nil, failures: hasFailed ? Int(row.failures) : 0,
      measuredAt: row.measuredAt)
  }

  /// Whether the failures of a row are too old to count.
  private static func hasExpired(_ row: Row, now: Int64, interval: Int64) -> Bool {
    now - row.failedAt >= max(2 * interval, 3 * failureSpacing)
  }

  /// Records the result of a measurement; ignores `.unknown`.
  ///
  /// - Parameter interval: the time between two measurements in nanoseconds, as in `measurement`.
  public mutating func record(
    _ result: ProbeResult, of address: IPAddress, by kind: ProbeKind, network: UInt32, now: Int64, interval: Int64
  ) {
    guard result != .unknown else { return }
    let index = findOrAdd(Key(address, kind, network: network))
    touch(index)
    switch result {
    case .answered(let microseconds):
      let (old, new) = (Int64(rows[index].microseconds), Int64(max(1, microseconds)))
      let isOld = now - rows[index].answeredAt >= Self.lifetime
      // Weight 1/4, while TCP uses 1/8 (RFC 6298): there are far fewer samples here.
      rows[index].microseconds = UInt32(clamping: old == 0 || isOld ? new : max(1, old + (new - old) / 4))
      rows[index].failures = 0
      (rows[index].measuredAt, rows[index].answeredAt) = (now, now)
    case .failed:
      if Self.hasExpired(rows[index], now: now, interval: interval) { rows[index].failures = 0 }
      let isNew = rows[index].failures == 0 || now - rows[index].failedAt >= Self.failureSpacing
      rows[index].measuredAt = now
      guard isNew else { return }
      rows[index].failures = min(rows[index].failures + 1, 1_000)
      rows[index].failedAt = now
    case .unknown: break
    }
  }

  /// Removes all failures, for use after a change or an outage of the network.
  public mutating func forgetFailures() {
    for index in rows.indices { rows[index].failures = 0 }
  }

  // MARK: Rows

  private mutating func findOrAdd(_ key: Key) -> Int {
    if let index = places[key] { return Int(index) }
    let row = Row(
      key: key, measuredAt: .min / 2, answeredAt: .min / 2, failedAt: .min / 2, microseconds: 0, failures: 0,
      older: Self.none, newer: Self.none)
    let index = rows.count < Self.capacity ? rows.count : Int(oldest)
    if index == rows.count {
      rows.append(row)
    } else {
      unlink(index)
      places[rows[index].key] = nil
      rows[index] = row
    }
    places[key] = UInt16(index)
    link(index)
    return index
  }

  private mutating func touch(_ index: Int) {
    guard newest != UInt16(index) else { return }
    unlink(index)
    link(index)
  }

  private mutating func unlink(_ index: Int) {
    let (older, newer) = (rows[index].older, rows[index].newer)
    if older == Self.none { oldest = newer } else { rows[Int(older)].newer = newer }
    if newer == Self.none { newest = older } else { rows[Int(newer)].older = older }
  }

  private mutating func link(_ index: Int) {
    rows[index].older = newest
    rows[index].newer = Self.none
    if newest == Self.none { oldest = UInt16(index) } else { rows[Int(newest)].newer = UInt16(index) }
    newest = UInt16(index)
  }
}
