// ProbePacing.swift -- limits probes: in any minute, in flight, to one address, and for one client or domain.
//
// Pure: the caller passes in the clock, in nanoseconds.

import DNSWire

/// Allows a probe if four limits allow it.
public struct ProbePacing {
  /// Why a probe may not begin now.
  public enum Refusal: Hashable, Sendable {
    /// `perMinute` probes began within the last minute.
    case budget
    /// `mostInFlight` probes are in flight.
    case busy
    /// The same address was probed within the last second.
    case address
    /// `perShare` probes for the client or the domain began within the last minute.
    case share
  }

  private struct Begun {
    var at: Int64
    var shares: [UInt64]
  }

  /// Maximum probes in flight.
  static let mostInFlight = 10
  private static let minute: Int64 = 60_000_000_000
  private static let second: Int64 = 1_000_000_000

  /// Maximum probes in any minute.
  public private(set) var perMinute: Int
  /// Maximum probes in any minute for one client or domain: three quarters of all, so that some are left for others.
  public var perShare: Int { max(1, perMinute * 3 / 4) }
  /// The number of probes in flight.
  public private(set) var inFlight = 0
  /// The probes of the last minute, oldest first. Elements before `first` have expired.
  private var begun: [Begun] = []
  private var first = 0
  private var counts: [UInt64: Int] = [:]
  private var lastProbe: [IPAddress: Int64] = [:]

  /// Creates the limits.
  public init(perMinute: Int) { self.perMinute = perMinute }

  /// Changes `perMinute`. Call it after all probes were cancelled; the probes of the last minute still count.
  public mutating func restart(perMinute: Int) {
    self.perMinute = perMinute
    inFlight = 0
  }

  /// Counts a probe that begins now.
  ///
  /// - Parameter shares: the numbers of the client and the domain it is charged to; empty for the daemon's own names.
  /// - Returns: nil if the probe may begin, otherwise the limit that does not allow it; it is then not counted.
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

  /// Counts the end of a probe that `begin` allowed.
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

  /// When the shares of this client and this domain allow a probe again; nil if they do now.
  ///
  /// - Complexity: O(`perMinute`) if they do not.
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
