// AddressReports.swift -- the reports of programs about the addresses of a name.
//
// Pure: the caller passes in the clock, in nanoseconds.

import DNSWire

/// What a program reports after it has used an address.
public struct AddressReport: Hashable, Sendable {
  /// The result of using an address.
  public enum Result: Hashable, Sendable {
    /// The address worked, with this round trip; nil if the program did not measure it.
    case works(milliseconds: Int?)
    /// It did not work. Three such reports within a minute put the address last.
    case failed
    /// It did not work. This report alone puts the address last.
    case bad
  }

  /// The name whose answer contains the address.
  public var name: DomainName
  /// The address that was used.
  public var address: IPAddress
  /// Whether it worked.
  public var result: Result

  public init(name: DomainName, address: IPAddress, result: Result) {
    self.name = name
    self.address = address
    self.result = result
  }
}

/// The reports about one address of one name.
public struct ReportedAddress: Hashable, Sendable {
  /// Failures within the last minute.
  public var failures = 0
  /// The time until which the address is ordered last, in nanoseconds; nil if it is not.
  public var badUntil: Int64?
  /// The last reported round trip, in milliseconds.
  public var milliseconds: Int?
}

/// Reports about at most 1,024 addresses; the least recently reported one makes room.
public struct AddressReports {
  private struct Key: Hashable {
    var name: DomainName
    var address: IPAddress
  }

  private struct Entry {
    var failures: [Int64] = []
    var badUntil: Int64?
    /// How often reports put the address last; reset by a success.
    var strikes = 0
    var milliseconds: Int?
    var reportedAt: Int64
  }

  /// The maximum number of addresses.
  public static let capacity = 1_024
  /// This many failures within a minute put an address last.
  static let failuresToBelieve = 3
  private static let minute: Int64 = 60_000_000_000
  private static let hour: Int64 = 3_600_000_000_000

  /// How long an address stays last the first time, in nanoseconds; each further time is twice as long, up to an hour.
  public var badFor: Int64
  private var entries: [Key: Entry] = [:]

  /// Creates an empty table.
  public init(badFor: Int64) { self.badFor = badFor }

  /// The number of addresses with reports.
  public var count: Int { entries.count }

  /// - Returns: whether the address has become last, or no longer is.
  public mutating func record(_ report: AddressReport, now: Int64) -> Bool {
    let key = Key(name: report.name, address: report.address)
    if entries[key] == nil, entries.count >= Self.capacity { removeOldest() }
    var entry = entries[key] ?? Entry(reportedAt: now)
    let wasBad = entry.badUntil.map { now < $0 } ?? false
    entry.reportedAt = now
    switch report.result {
    case .works(let milliseconds):
      (entry.failures, entry.badUntil, entry.strikes) = ([], nil, 0)
      entry.milliseconds = milliseconds ?? entry.milliseconds
    case .failed:
      entry.failures = entry.failures.filter { now - $0 < Self.minute }
      entry.failures.append(now)
      if entry.failures.count >= Self.failuresToBelieve, !wasBad { putLast(&entry, now: now) }
    case .bad:
      if !wasBad { putLast(&entry, now: now) }
    }
    entries[key] = entry
    return wasBad != (entry.badUntil.map { now < $0 } ?? false)
  }

  /// Whether reports put an address of a name last.
  public func isBad(_ address: IPAddress, of name: DomainName, now: Int64) -> Bool {
    guard !entries.isEmpty else { return false }
    return entries[Key(name: name, address: address)]?.badUntil.map { now < $0 } ?? false
  }

  /// The reports about an address of a name; nil if no report was recorded.
  public func reports(about address: IPAddress, of name: DomainName, now: Int64) -> ReportedAddress? {
    guard let entry = entries[Key(name: name, address: address)] else { return nil }
    return ReportedAddress(
      failures: entry.failures.count { now - $0 < Self.minute },
      badUntil: entry.badUntil.flatMap { now < $0 ? $0 : nil }, milliseconds: entry.milliseconds)
  }

  /// The names with an address that is last, or that `takeEnded` has yet to return.
  public var namesWithBad: Set<DomainName> { Set(entries.lazy.filter { $0.value.badUntil != nil }.map(\.key.name)) }

  /// When the next address stops being last, in nanoseconds; nil if no address is last.
  public func nextEnd(now: Int64) -> Int64? { entries.values.compactMap { $0.badUntil }.filter { $0 > now }.min() }

  /// Returns, once, the names with an address that has stopped being last.
  public mutating func takeEnded(now: Int64) -> Set<DomainName> {
    var names: Set<DomainName> = []
    for (key, entry) in entries {
      guard let end = entry.badUntil, end <= now else { continue }
      names.insert(key.name)
      entries[key]?.badUntil = nil
    }
    return names
  }

  private func putLast(_ entry: inout Entry, now: Int64) {
    let longest = max(badFor, Self.hour)
    var time = badFor
    for _ in 0..<entry.strikes where time < longest { time = min(longest, 2 * time) }
    entry.badUntil = now + time
    entry.strikes += 1
    entry.failures = []
  }

  private mutating func removeOldest() {
    guard let oldest = entries.min(by: { $0.value.reportedAt < $1.value.reportedAt }) else { return }
    entries[oldest.key] = nil
  }
}
