// AddressReports.swift -- what programs say about the addresses of a name.
//
// Pure: the caller passes in the clock, in nanoseconds.

import DNSWire

/// What a program saw when it used an address.
public struct AddressReport: Hashable, Sendable {
  /// The result of using an address.
  public enum Result: Hashable, Sendable {
    /// It worked, and took so many milliseconds if the program knows.
    case works(milliseconds: Int?)
    /// It did not work.
    case failed
    /// It did not work, and one report is enough.
    case bad
  }

  /// The name that led to the address.
  public var name: DomainName
  /// The address that was used.
  public var address: IPAddress
  /// What came of it.
  public var result: Result

  /// Creates a report.
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
  /// Until when the address is last, in nanoseconds; nil if it is not.
  public var badUntil: Int64?
  /// The round trip of the last success that had one, in milliseconds.
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
    /// How often it was put last since the last success.
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

  /// Notes a report.
  ///
  /// - Returns: whether the address has become last, or is no longer.
  public mutating func note(_ report: AddressReport, now: Int64) -> Bool {
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

  /// Whether an address of a name is last by reports.
  public func isBad(_ address: IPAddress, of name: DomainName, now: Int64) -> Bool {
    guard !entries.isEmpty else { return false }
    return entries[Key(name: name, address: address)]?.badUntil.map { now < $0 } ?? false
  }

  /// The reports about an address of a name; nil without any.
  public func reports(about address: IPAddress, of name: DomainName, now: Int64) -> ReportedAddress? {
    guard let entry = entries[Key(name: name, address: address)] else { return nil }
    return ReportedAddress(
      failures: entry.failures.count { now - $0 < Self.minute },
      badUntil: entry.badUntil.flatMap { now < $0 ? $0 : nil }, milliseconds: entry.milliseconds)
  }

  /// The names with an address that is last now, or was until `takeEnded`.
  public var namesWithBad: Set<DomainName> {
    Set(entries.lazy.filter { $0.value.badUntil != nil }.map(\.key.name))
  }

  /// When the next address stops being last, in nanoseconds; nil if none is.
  public func nextEnd(now: Int64) -> Int64? {
    entries.values.compactMap { $0.badUntil }.filter { $0 > now }.min()
  }

  /// Takes the names for which an address has stopped being last.
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
