// ProviderReserve.swift -- reserves the last units of a day for names that are in use.

import Configuration
import DNSWire
import EventLoop

extension HTTPDNSProvider {
  /// The number of reserved units.
  private var reserve: Int { Int(Double(settings.unitsPerDay) * settings.unitsReserve) }

  var subnetsPerName: Int { settings.subnetsPerName }

  func refusalOfNewNames() -> UpstreamFailure? {
    guard settings.unitsPerDay > 0, reserve > 0 else { return nil }
    let (unixTime, now) = (loop.wallTime, loop.now.nanoseconds)
    // If no units are left at all, the provider itself refuses.
    let others = othersUnits
    guard budget.isOpen(unixTime: unixTime, now: now, reserve: others),
      !budget.isOpen(unixTime: unixTime, now: now, reserve: others + reserve)
    else { return nil }
    counters.values.refusals += 1
    return .reserved(settings.unitsPerDay, reserve)
  }
}

extension UpstreamFailure {
  fileprivate static func reserved(_ unitsPerDay: Int, _ reserve: Int) -> UpstreamFailure {
    let text = "units_per_day (\(unitsPerDay)) used up except units_reserve (\(reserve)), which is for names in use"
    return UpstreamFailure(.other, text, .limit)
  }
}
