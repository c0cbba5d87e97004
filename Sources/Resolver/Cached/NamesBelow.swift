// NamesBelow.swift -- names that have others below them, so that NXDOMAIN for them covers nothing.
//
// Resolver's loop only. A table of fixed size without keys: names that share a place are both taken to have others below
// them, which costs a question upstream. A name that is there is never denied for a collision.

import DNSWire
import EventLoop
import MessageCache

/// Remembers the names above those that were kept, with data or without, but not as denied.
package struct NamesBelow {
  /// Until when names of each place count, in whole seconds of the boot-time clock.
  private var ends = [UInt32](repeating: 0, count: NamesBelow.size)
  /// Whether everything that is kept has been noted; otherwise each name may have others below it.
  package var isWhole = true

  private static let size = 16_384
  /// How long a name counts after the answer has expired: providers that deny what has names below do so again.
  private static let memory = Duration.seconds(3600)

  /// Nothing is known.
  init() {}

  /// A name exists by an answer that holds until then.
  ///
  /// - Complexity: O(labels)
  mutating func note(_ name: DomainName, _ scope: CacheScope, until end: BootInstant) {
    let end = UInt32(clamping: (end + NamesBelow.memory).nanoseconds / 1_000_000_000 + 1)
    var above = name.parent
    while let name = above, name.labelCount > 1 {
      let place = NamesBelow.place(name, scope)
      ends[place] = max(ends[place], end)
      above = name.parent
    }
  }

  /// Whether something below the name was there lately, or may have been.
  func hasNames(below name: DomainName, _ scope: CacheScope, now: BootInstant) -> Bool {
    !isWhole || now.nanoseconds < Int64(ends[NamesBelow.place(name, scope)]) * 1_000_000_000
  }

  private static func place(_ name: DomainName, _ scope: CacheScope) -> Int {
    var hasher = Hasher()
    hasher.combine(name)
    hasher.combine(scope.route)
    hasher.combine(scope.network)
    return hasher.finalize() & (size - 1)
  }
}

extension Resolver {
  /// Steps of a look at the cache in one turn of the loop, after which queries come first.
  private static let learningSteps = 16

  /// Notes the names of everything that is kept, as after it has come out of a file; until that is done no denial covers the
  /// names below. To be called from a task that prefers the loop.
  package func learnNames() async {
    namesBelow.isWhole = false
    var survey = CacheSurvey(of: cache)
    while !survey.isDone {
      var found: [(key: [UInt8], end: Int64)] = []
      survey.advance(steps: Resolver.learningSteps) { record, _ in
        guard !record.isDenial else { return }
        found.append((Array(record.key), record.storedAt + Int64(record.life.lifetime) * 1_000_000_000))
      }
      for (key, end) in found {
        guard let parts = KeyParts(key) else { continue }
        namesBelow.note(parts.name, parts.scope, until: BootInstant(nanoseconds: end))
      }
      await loop.sleep(for: .zero)
    }
    namesBelow.isWhole = true
  }
}
