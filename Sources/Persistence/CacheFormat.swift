// CacheFormat.swift -- defines the cache file, octet by octet. Numbers are little-endian.
//
//   header    magic (16), version (4), wall time of writing (8)
//             number of routes (2), their fingerprints (16 each)
//             number of sources (2), for each its number (1) and fingerprint (16)
//   entries   fixed part (50, `RecordLayout`), key, body; without padding
//   trailer   number of entries (8), checksum (32)
//
// Times are wall times in nanoseconds since 1970. A key is the cache's own (CacheKey.swift). The checksum is SHA-256
// over the SHA-256s of the file's pieces of 64 KiB, excluding the checksum, so that a writer needs one piece at a time.

/// The constants of the format.
enum CacheFormat {
  /// The first octets. A transfer that converts line ends damages them.
  static let magic = Array("httpdnsd-cache\r\n".utf8)
  static let version: UInt32 = 1
  static let checksumLength = 32
  static let countLength = 8
  static let pieceLength = 64 << 10
  /// Magic, version, time and two empty tables.
  static let shortest = 16 + 4 + 8 + 2 + 2 + countLength + checksumLength
  /// The largest file that is read; a cache of a sane size never exceeds it.
  static let longest = 4 << 30
}

/// The offsets of the fields in an entry's fixed part, and its flags.
enum RecordLayout {
  static let storedAt = 0
  static let usedAt = 8
  static let lifetime = 16
  static let staleFor = 20
  static let hits = 24
  static let heat = 28
  static let keyLength = 32
  static let bodyLength = 34
  static let answers = 36
  static let authorities = 38
  static let extendedError = 40
  static let rotationStart = 42
  static let rotationCount = 44
  static let rotationSize = 46
  static let responseCode = 47
  static let flags = 48
  static let source = 49
  static let length = 50

  static let authenticated: UInt8 = 1
  static let authoritative: UInt8 = 2
  static let forEverySubnet: UInt8 = 4
  static let servedStale: UInt8 = 8
  static let immutable: UInt8 = 16
  static let inUse: UInt8 = 32
}

/// One instant on both clocks, in nanoseconds.
public struct CacheTime: Hashable, Sendable {
  /// Nanoseconds since the machine started, including suspended time (CLOCK_BOOTTIME).
  public var boot: Int64
  /// Nanoseconds since 1970.
  public var wall: Int64

  /// The caller reads both clocks.
  public init(boot: Int64, wall: Int64) {
    self.boot = boot
    self.wall = wall
  }
}
