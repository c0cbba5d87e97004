// ProbePacing.swift -- how many probes may begin: in any minute, at a time, to one address, and for one client or domain.
//
// Pure: the caller passes in the clock, in nanoseconds.

import DNSWire

/// Allows probes within four limits.
public struct ProbePacing {
  /// Why a probe may not begin now.
  public enum Refusal: Hashable, Sendable {
    /// As many as are allowed in a minute have begun.
    case budget
    /// As many as are allowed at a time have not ended.
    case busy
    /// The same address was probed within the last second.
    case address
    /// The client or the domain has had its part of the minute's probes.
    case share
  }

  private struct Begun {
    var at: Int64
    var shares: [UInt64]
  }

  /// Maximum probes at a time.
  static let mostInFlight = 10
  private static let minute: Int64 = 60_000_000_000
  private static let second: Int64 = 1_000_000_000

  /// Maximum probes in any minute.
  public private(set) var perMinute: Int
  /// Maximum probes in any minute for one client or domain, so that some are left for others: three quarters of all.
  public var perShare: Int { max(1, perMinute * 3 / 4) }
  /// The probes that have begun and not ended.
  public private(set) var inFlight = 0
  /// The probes of the last minute, oldest first, from `first` on.
  private var begun: [Begun] = []
  private var first = 0
  private var counts: [UInt64: Int] = [:]
  private var lastProbe: [IPAddress: Int64] = [:]

  /// Creates the limits.
  public init(perMinute: Int) { self.perMinute = perMinute }

  /// Changes the limit of a minute when all probes have been cancelled. Those of the last minute still count.
  public mutating func restart(perMinute: Int) {
    self.perMinute = perMinute
    inFlight = 0
  }

  /// Counts a probe that begins now; or says why it may not.
  ///
  /// - Parameter shares: the numbers of the client and the domain that it is for; none for the daemon's own.
  public mutating func begin(_ address: IPAddress, for shares: [UInt64] = [], now: Int64) -> Refusal? {
    guard nextTime(now: now) == nil else { return .budget }
    guard inFlight < Self.mostInFlight else { return .busy }
    guard nextTime(for: address, now: now) == nil else { return .address }
    forget(before: now - Self.minute)
    guard shares.allSatisfy({ counts[$0, default: 0] < perShare }) else { return .share }
    begun.append(Begun(at: now, shares: shares))
    for share in shares { counts[share, default: 0] += 1 }
    if lastProbe.count >= 64 { lastProbe = lastProbe.filter { now - $0.value < Self.second } }
    lastProbe[address] = now
    inFlight += 1
    return nil
  }

  /// A probe has ended.
  public mutating func end() { inFlight -= 1 }

  /// When the budget allows a probe again; nil if it does now.
  public func nextTime(now: Int64) -> Int64? {
    guard begun.count - first >= perMinute else { return nil }
    let time = begun[begun.count - perMinute].at + Self.minute
    return time > now ? time : nil
  }

  /// When this address may be probed again; nil if it may now.
  public func nextTime(for address: IPAddress, now: Int64) -> Int64? {
    guard let last = lastProbe[address], now - last < Self.second else { return nil }
    return last + Self.second
  }

  /// When this client and this domain may have a probe again; nil if they may now.
  ///
  /// - Complexity: O(`perMinute`) if they may not.
  public func nextTime(for shares: [UInt64], now: Int64) -> Int64? {
    let full = shares.filter { counts[$0, default: 0] >= perShare }
    let times = full.compactMap { share in
      begun[first...].first { $0.shares.contains(share) }.map { $0.at + Self.minute }
    }
    return times.max().flatMap { $0 > now ? $0 : nil }
  }

  private mutating func forget(before end: Int64) {
    while first < begun.count, begun[first].at <= end {
      for share in begun[first].shares {
        let count = counts[share, default: 1] - 1
        counts[share] = count > 0 ? count : nil
      }
      first += 1
    }
    guard first > perMinute else { return }
    begun.removeFirst(first)
    first = 0
  }
}
