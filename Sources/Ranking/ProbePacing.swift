// ProbePacing.swift -- how many probes may begin: in any minute, at a time, and to one address.
//
// Pure: the caller passes in the clock, in nanoseconds.

import DNSWire

/// Allows probes within three limits.
public struct ProbePacing {
  /// Why a probe may not begin now.
  public enum Refusal: Hashable, Sendable {
    /// As many as are allowed in a minute have begun.
    case budget
    /// As many as are allowed at a time have not ended.
    case busy
    /// The same address was probed within the last second.
    case address
  }

  /// Maximum probes at a time.
  static let mostInFlight = 10
  private static let minute: Int64 = 60_000_000_000
  private static let second: Int64 = 1_000_000_000

  /// Maximum probes in any minute.
  public let perMinute: Int
  /// The probes that have begun and not ended.
  public private(set) var inFlight = 0
  /// When the last `perMinute` probes began, a ring.
  private var begun: [Int64] = []
  private var oldest = 0
  private var lastProbe: [IPAddress: Int64] = [:]

  /// Creates the limits.
  public init(perMinute: Int) { self.perMinute = perMinute }

  /// Counts a probe that begins now; or says why it may not.
  public mutating func begin(_ address: IPAddress, now: Int64) -> Refusal? {
    guard nextTime(now: now) == nil else { return .budget }
    guard inFlight < Self.mostInFlight else { return .busy }
    guard nextTime(for: address, now: now) == nil else { return .address }
    if begun.count < perMinute {
      begun.append(now)
    } else {
      begun[oldest] = now
      oldest = (oldest + 1) % perMinute
    }
    if lastProbe.count >= 64 { lastProbe = lastProbe.filter { now - $0.value < Self.second } }
    lastProbe[address] = now
    inFlight += 1
    return nil
  }

  /// A probe has ended.
  public mutating func end() { inFlight -= 1 }

  /// When the budget allows a probe again; nil if it does now.
  public func nextTime(now: Int64) -> Int64? {
    guard begun.count == perMinute else { return nil }
    let time = begun[oldest] + Self.minute
    return time > now ? time : nil
  }

  /// When this address may be probed again; nil if it may now.
  public func nextTime(for address: IPAddress, now: Int64) -> Int64? {
    guard let last = lastProbe[address], now - last < Self.second else { return nil }
    return last + Self.second
  }
}
