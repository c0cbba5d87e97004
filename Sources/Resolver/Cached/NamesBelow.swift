// NamesBelow.swift -- names that have others below them, so that NXDOMAIN for them covers no other name.
//
// Resolver's loop only. A table of fixed size without keys: if two names collide, both count as having names below them,
// which costs a question upstream. A collision never makes an existing name NXDOMAIN.

import DNSWire
import EventLoop
import MessageCache

/// The names above the names of cached answers, except of NXDOMAIN.
struct NamesBelow {
  /// The expiry of each place, in whole seconds of the boot-time clock.
  private var ends = [UInt32](repeating: 0, count: NamesBelow.size)
  /// Whether all entries have been noted; otherwise every name may have others below it.
  var isWhole = true

  private static let size = 16_384
  /// How long a name counts after its answer has expired: a provider that once answered NXDOMAIN for a name with others
  /// below it does so again.
  private static let memory = Duration.seconds(3600)

  /// Notes that a name exists, by an answer that expires at `end`.
  ///
  /// - Complexity: O(labels)
  mutating func note(_ name: DomainName, _ scope: CacheScope, until end: BootInstant) {
    let end = UInt32(clamping: (end + NamesBelow.memory).nanoseconds / 1_000_000_000 + 1)
    name.lowercased.octets.withUnsafeBytes { octets in
      guard octets.count > 1 else { return }
      var start = Int(octets[0]) + 1
      // NXDOMAIN for a single label covers no names below anyway.
      while octets[start] != 0, octets[start + Int(octets[start]) + 1] != 0 {
        let place = NamesBelow.place(UnsafeRawBufferPointer(rebasing: octets[start...]), scope)
        ends[place] = max(ends[place], end)
        start += Int(octets[start]) + 1
      }
    }
  }

  /// Whether a name below this one existed lately, or may have.
  func hasNames(below name: DomainName, _ scope: CacheScope, now: BootInstant) -> Bool {
    let place = name.lowercased.octets.withUnsafeBytes { NamesBelow.place($0, scope) }
    return !isWhole || now.nanoseconds < Int64(ends[place]) * 1_000_000_000
  }

  private static func place(_ octets: UnsafeRawBufferPointer, _ scope: CacheScope) -> Int {
    var hasher = Hasher()
    hasher.combine(bytes: octets)
    hasher.combine(scope.route)
    hasher.combine(scope.network)
    return hasher.finalize() & (size - 1)
  }
}
