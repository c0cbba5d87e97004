// NamesBelow.swift -- names that have others below them, so that NXDOMAIN for them covers nothing.
//
// Resolver's loop only. A table of fixed size without keys: a collision forgets, and costs an answer too careless by what
// the resolver of anybody else would have said, never more.

import DNSWire
import EventLoop
import MessageCache

/// Remembers the names above those that were kept with data.
struct NamesBelow {
  private struct Place {
    var hash = 0
    var until = BootInstant(nanoseconds: .min)
  }

  private var places = [Place](repeating: Place(), count: NamesBelow.size)

  private static let size = 4096
  /// How long a name counts after its data has expired: providers that deny what has names below do so again.
  private static let memory = Duration.seconds(3600)

  /// Nothing is known.
  init() {}

  /// A name has data for so many seconds.
  ///
  /// - Complexity: O(labels)
  mutating func note(_ name: DomainName, _ scope: CacheScope, _ lifetime: UInt32, now: BootInstant) {
    let until = now + .seconds(Int64(lifetime)) + NamesBelow.memory
    var above = name.parent
    while let name = above, name.labelCount > 1 {
      let hash = NamesBelow.hash(name, scope)
      places[NamesBelow.place(hash)] = Place(hash: hash, until: until)
      above = name.parent
    }
  }

  /// Whether something below the name had data lately.
  func hasNames(below name: DomainName, _ scope: CacheScope, now: BootInstant) -> Bool {
    let hash = NamesBelow.hash(name, scope)
    let place = places[NamesBelow.place(hash)]
    return place.hash == hash && now < place.until
  }

  private static func place(_ hash: Int) -> Int { hash & (size - 1) }

  private static func hash(_ name: DomainName, _ scope: CacheScope) -> Int {
    var hasher = Hasher()
    hasher.combine(name)
    hasher.combine(scope.route)
    hasher.combine(scope.network)
    return hasher.finalize()
  }
}
