// ImageReader.swift -- reads the octets of a cache file up to a given end, never beyond it.

/// A cursor over the octets of a cache file.
struct ImageReader {
  private(set) var offset: Int
  private let octets: [UInt8]
  private let end: Int

  init(_ octets: [UInt8], from offset: Int, to end: Int) {
    self.octets = octets
    self.offset = offset
    self.end = end
  }

  mutating func skip(_ count: Int) throws(CacheDamage) {
    guard count <= end - offset else { throw .lengths }
    offset += count
  }

  mutating func take<Number: FixedWidthInteger>(_ type: Number.Type) throws(CacheDamage) -> Number {
    let place = offset
    try skip(MemoryLayout<Number>.size)
    return ImageReader.number(octets, place, type)
  }

  mutating func takeFingerprints(_ count: Int) throws(CacheDamage) -> [Fingerprint] {
    guard count * Fingerprint.octets <= end - offset else { throw .lengths }
    var fingerprints: [Fingerprint] = []
    for _ in 0..<count {
      fingerprints.append(Fingerprint(high: try take(UInt64.self), low: try take(UInt64.self)))
    }
    return fingerprints
  }

  mutating func takeSources() throws(CacheDamage) -> [UInt8: Fingerprint] {
    var sources: [UInt8: Fingerprint] = [:]
    for _ in 0..<(try take(UInt16.self)) {
      let number = try take(UInt8.self)
      sources[number] = Fingerprint(high: try take(UInt64.self), low: try take(UInt64.self))
    }
    return sources
  }

  /// Returns the number at an offset; traps if it does not lie within the octets.
  static func number<Number: FixedWidthInteger>(_ octets: [UInt8], _ offset: Int, _: Number.Type) -> Number {
    precondition(offset >= 0 && offset + MemoryLayout<Number>.size <= octets.count)
    return octets.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Number.self)) }
  }
}
