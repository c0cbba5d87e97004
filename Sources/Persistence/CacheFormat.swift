// CacheFormat.swift -- the cache file, octet by octet. Numbers are little-endian.
//
//   header    16 octets that say what it is, version (4), wall time of writing (8)
//             number of routes (2), their fingerprints (16 each)
//             number of sources (2), of each: its number (1), its fingerprint (16)
//   entries   fixed part (50, `RecordLayout`), key, body; one behind the other
//   trailer   number of entries (8), checksum (32)
//
// Times are wall times in nanoseconds since 1970. A key is the cache's own (CacheKey.swift). The checksum is SHA-256
// over the SHA-256s of the file's pieces of 64 KiB without the checksum itself, so nobody needs all of it at once.

/// The constants of the format.
enum CacheFormat {
  /// The first octets. A transfer that changes line ends changes them.
  static let magic = Array("httpdnsd-cache\r\n".utf8)
  static let version: UInt32 = 1
  static let checksumLength = 32
  static let countLength = 8
  static let pieceLength = 64 << 10
  /// Magic, version, time and two empty tables.
  static let shortest = 16 + 4 + 8 + 2 + 2 + countLength + checksumLength
  /// Nothing that a cache of a sane size was saved to is longer.
  static let longest = 4 << 30
}

/// Where the fields of an entry's fixed part stand.
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

/// One moment on both clocks, in nanoseconds.
public struct CacheTime: Hashable, Sendable {
  /// Since the machine started, time asleep included.
  public var boot: Int64
  /// Since 1970.
  public var wall: Int64

  /// Both.
  public init(boot: Int64, wall: Int64) {
    self.boot = boot
    self.wall = wall
  }
}
