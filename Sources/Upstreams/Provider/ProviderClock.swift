// ProviderClock.swift -- the time by which a provider checks signatures.

/// The provider's clock, against which it checks signatures.
struct ProviderClock {
  /// Seconds by which the provider is ahead of the machine.
  private(set) var offset: Int64 = 0

  /// Differences up to this many seconds are not corrected: `Date` has whole seconds and some transit time.
  private static let tolerance: Int64 = 2

  /// Converts to the provider's time, in seconds since 1970.
  func unixTime(wallTime: Int64) -> Int64 { wallTime + offset }

  /// Learns from the `Date` of an authenticated response.
  mutating func learn(_ date: Int64, wallTime: Int64) {
    let difference = date - wallTime
    guard abs(difference - offset) > ProviderClock.tolerance else { return }
    offset = abs(difference) > ProviderClock.tolerance ? difference : 0
  }
}
