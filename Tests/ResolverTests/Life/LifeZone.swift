// LifeZone.swift -- what is true at a simulated provider at any time, and how well it is: functions of the seed alone.

import DNSWire

/// A name of the zone.
struct LifeHost {
  let number: Int
  let name: DomainName
  let text: String
  /// Of all its records, in seconds.
  let ttl: UInt32
  let hasIPv6: Bool
  /// How many addresses it has of each family.
  let addresses: Int
  /// How long its records stay as they are, and when that began, in nanoseconds.
  let era: Int64
  let phase: Int64
}

/// What is true of a name and an address family.
enum LifeState: Equatable {
  /// The addresses of that era.
  case addresses(Int64)
  case noData
  case noName
}

struct LifeZone {
  let hosts: [LifeHost]
  private let seed: UInt64
  private let hasRemovals: Bool

  init(_ plan: LifePlan) {
    seed = plan.seed
    hasRemovals = plan.hasRemovals
    hosts = (0..<plan.names).map { number in
      func draw(_ purpose: UInt64, _ count: Int) -> Int {
        Int(lifeNumber(plan.seed, purpose, Int64(number)) % UInt64(count))
      }
      let text = "host\(number).example"
      let era = plan.eras[draw(1, plan.eras.count)] * second
      return LifeHost(
        number: number, name: DomainName(text: text)!, text: text, ttl: plan.ttls[draw(2, plan.ttls.count)],
        hasIPv6: plan.isDual || draw(3, 4) > 0, addresses: 1 + draw(4, 3), era: era,
        phase: Int64(lifeNumber(plan.seed, 5, Int64(number)) % UInt64(era)))
    }
  }

  /// What is true at a time.
  func state(_ host: LifeHost, isIPv6: Bool, at time: Int64) -> LifeState {
    state(host, isIPv6, inEra: eraNumber(host, time))
  }

  /// How long ago that was last true, in nanoseconds; nil where that is longer ago than `limit`.
  func age(of state: LifeState, _ host: LifeHost, isIPv6: Bool, at time: Int64, limit: Int64) -> Int64? {
    if case .addresses(let era) = state {
      guard self.state(host, isIPv6, inEra: era) == state, start(host, era) <= time else { return nil }
      let age = max(0, time - start(host, era + 1))
      return age <= limit ? age : nil
    }
    var era = eraNumber(host, time)
    while era >= 0, time - start(host, era + 1) <= limit {
      if self.state(host, isIPv6, inEra: era) == state { return max(0, time - start(host, era + 1)) }
      era -= 1
    }
    return nil
  }

  /// The addresses of an era: they tell which.
  func addresses(_ host: LifeHost, isIPv6: Bool, era: Int64) -> [[UInt8]] {
    (0..<host.addresses).map { index in
      let tail = [UInt8(host.number), UInt8(truncatingIfNeeded: era >> 8), UInt8(truncatingIfNeeded: era)]
      guard isIPv6 else { return [UInt8(11 + index)] + tail }
      return [0x20, 1, 0xD, 0xB8, UInt8(index)] + [UInt8](repeating: 0, count: 8) + tail
    }
  }

  /// The era whose addresses these are; nil where they are none of the host's, or not all of them.
  func era(of addresses: [ArraySlice<UInt8>], _ host: LifeHost, isIPv6: Bool) -> Int64? {
    guard let tail = addresses.first?.suffix(2), let high = tail.first, let low = tail.last else { return nil }
    let era = Int64(high) << 8 | Int64(low)
    return Set(addresses.map(Array.init)) == Set(self.addresses(host, isIPv6: isIPv6, era: era)) ? era : nil
  }

  private func eraNumber(_ host: LifeHost, _ time: Int64) -> Int64 { (time + host.phase) / host.era }

  private func start(_ host: LifeHost, _ era: Int64) -> Int64 { era * host.era - host.phase }

  private func state(_ host: LifeHost, _ isIPv6: Bool, inEra era: Int64) -> LifeState {
    switch hasRemovals ? lifeNumber(seed, 6, Int64(host.number), era) % 8 : 8 {
    case 0: return .noName
    case 1 where !isIPv6: return .noData
    default: return isIPv6 && !host.hasIPv6 ? .noData : .addresses(era)
    }
  }
}

/// When a provider does not answer, and how.
struct LifeWeather {
  /// How it fails.
  enum Outage: CaseIterable {
    /// Not a word.
    case silence
    /// The port is closed.
    case refusal
    /// It replies that it cannot.
    case failure
  }

  private let seed: UInt64
  private let isFair: Bool
  private let isSlow: Bool
  private static let hour = 3600 * second

  init(_ plan: LifePlan) {
    seed = plan.seed
    isFair = !plan.hasOutages
    isSlow = plan.isSlow
  }

  /// What is wrong at a time.
  func outage(at time: Int64) -> Outage? {
    guard let span = span(inHour: time / LifeWeather.hour), span.contains(time) else { return nil }
    return LifeWeather.Outage.allCases[Int(lifeNumber(seed, 12, time / LifeWeather.hour) % 3)]
  }

  /// When the outage at a time began; nil without an outage.
  func outageBegan(at time: Int64) -> Int64? {
    span(inHour: time / LifeWeather.hour).flatMap { $0.contains(time) ? $0.lowerBound : nil }
  }

  /// Whether something was wrong at any time between those, or that which `kind` says.
  func isTroubled(from begin: Int64, to end: Int64, by kind: Outage? = nil) -> Bool {
    for hour in (begin / LifeWeather.hour)...max(begin / LifeWeather.hour, end / LifeWeather.hour) {
      guard let span = span(inHour: hour), span.overlaps(begin..<max(end, begin + 1)) else { continue }
      if kind == nil || kind == outage(at: span.lowerBound) { return true }
    }
    return false
  }

  /// How long a transfer takes that begins then.
  func latency(at time: Int64, _ target: String) -> Int64 {
    let number = lifeNumber(seed, 13, time, Int64(target.utf8.reduce(0) { $0 &* 31 &+ Int($1) }))
    return (isSlow ? 100 + Int64(number % 1800) : 5 + Int64(number % 60)) * millisecond
  }

  /// An outage an hour, of one to eight minutes.
  private func span(inHour hour: Int64) -> Range<Int64>? {
    guard !isFair else { return nil }
    let start = hour * LifeWeather.hour + Int64(lifeNumber(seed, 10, hour) % 3000) * second
    return start..<(start + Int64(60 + lifeNumber(seed, 11, hour) % 420) * second)
  }
}
