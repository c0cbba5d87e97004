// CacheFileProperty.swift -- whatever a cache file says, what is taken from it can be served and taken out again.

import DNSWire
import MessageCache
import Persistence

/// The cache file. The input is all of it but the checksum, which is made to fit.
public struct CacheFileProperty: Property {
  /// The fuzz target.
  public static let name = "CacheFile"

  private static let meanings = CacheMeanings(routes: ["default", "corp"], sources: [0: "", 1: "LocalDNS", 2: "a"])
  private static let bounds = CacheBounds(maxOctets: 1 << 20, maxEntries: 1_000)
  private static let time = CacheTime(boot: 1_000_000_000_000, wall: 1_800_000_000_000_000_000)

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    guard let image = try? CacheImage(input + CacheImage.checksum(of: input[...])) else { return }
    let cache = MessageCache(CacheFileProperty.bounds)
    let counts = image.restore(into: cache, CacheFileProperty.meanings, at: CacheFileProperty.time)
    try require(counts.loaded == cache.usage.entries, "\(counts.loaded) entries kept, \(cache.usage.entries) there")
    try require(
      counts.loaded + counts.dropped + counts.withoutRoom + counts.unsound == image.entries, "entries that are lost")
    let other = MessageCache(CacheFileProperty.bounds)
    var mistake: String?
    cache.forEachRecord(now: CacheFileProperty.time.boot) { record in
      mistake = serve(record, from: cache) ?? copy(record, to: other)
      return mistake == nil
    }
    if let mistake { throw Violation(mistake) }
    try require(other.usage.entries == counts.loaded, "\(other.usage.entries) of \(counts.loaded) taken out")
  }

  /// Looks a record up as a listener does; what is wrong with the answer.
  private func serve(_ record: CacheRecord, from cache: MessageCache) -> String? {
    // A key with a client subnet is not looked up like this, nor one with bits that no query sets.
    guard let (name, scope) = CacheScope.parts(of: Array(record.key)), record.key[name.octets.count + 2] < 4 else {
      return nil
    }
    var buffer = name.octets + Array(repeating: 0, count: CacheKey.longest)
    let length = record.body.count
    var output = [UInt8](repeating: 0xAA, count: length + 8)
    var head = ResponseHead()
    let lookup = buffer.withUnsafeMutableBufferPointer { buffer in
      output.withUnsafeMutableBufferPointer {
        let key = cache.key(in: buffer.baseAddress!, nameLength: name.octets.count, scope)
        return cache.find(
          key, now: CacheFileProperty.time.boot, servesStale: true, into: $0.baseAddress!, capacity: length, &head)
      }
    }
    guard output.suffix(8).allSatisfy({ $0 == 0xAA }) else { return "octets behind the body were written" }
    return lookup.isAnswer && head.bodyLength != length ? "a body of another length" : nil
  }

  private func copy(_ record: CacheRecord, to other: MessageCache) -> String? {
    let outcome = other.restore(record, route: record.route ?? 0, now: CacheFileProperty.time.boot)
    return outcome == .stored ? nil : "what was taken out is \(outcome)"
  }
}
