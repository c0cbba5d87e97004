// CacheWriter.swift -- writes a cache file piece by piece, so that it is never in memory as a whole.

import Ciphers
import Files
import MessageCache

/// Composes the file from records and passes pieces of 64 KiB to an output.
struct CacheWriter {
  /// The number of records so far.
  private(set) var entries = 0
  /// The number of octets so far.
  private(set) var octets = 0
  private let time: CacheTime
  private let output: ([UInt8]) throws(FileProblem) -> Void
  private var piece: [UInt8] = []
  private var digests: [UInt8] = []

  /// Writes the header.
  ///
  /// - Parameter time: the time of writing.
  init(
    _ meanings: CacheMeanings, at time: CacheTime,
    to output: @escaping ([UInt8]) throws(FileProblem) -> Void
  ) throws(FileProblem) {
    self.time = time
    self.output = output
    piece.reserveCapacity(CacheFormat.pieceLength)
    for octet in CacheFormat.magic { try append(number: octet) }
    try append(number: CacheFormat.version)
    try append(number: time.wall)
    try append(number: UInt16(meanings.routes.count))
    for route in meanings.routes { try append(Fingerprint(route)) }
    try append(number: UInt16(meanings.sources.count))
    for (number, source) in meanings.sources.sorted(by: { $0.key < $1.key }) {
      try append(number: number)
      try append(Fingerprint(source))
    }
  }

  mutating func add(_ record: CacheRecord) throws(FileProblem) {
    typealias Layout = RecordLayout
    var flags: UInt8 = record.isAuthenticated ? Layout.authenticated : 0
    if record.isAuthoritative { flags |= Layout.authoritative }
    if record.isForEverySubnet { flags |= Layout.forEverySubnet }
    if record.life.isServedStale { flags |= Layout.servedStale }
    if record.life.isImmutable { flags |= Layout.immutable }
    if record.life.isInUse { flags |= Layout.inUse }
    let (storedAt, usedAt) = (wall(record.storedAt), wall(record.usedAt))
    // On the stack: this runs once per entry.
    try withUnsafeTemporaryAllocation(byteCount: Layout.length, alignment: 8) { (fixed) throws(FileProblem) in
      func set(_ offset: Int, _ number: some FixedWidthInteger) {
        fixed.storeBytes(of: number.littleEndian, toByteOffset: offset, as: type(of: number))
      }
      set(Layout.storedAt, storedAt)
      set(Layout.usedAt, usedAt)
      set(Layout.lifetime, record.life.lifetime)
      set(Layout.staleFor, record.life.staleFor)
      set(Layout.hits, record.hits)
      set(Layout.keyLength, UInt16(record.key.count))
      set(Layout.bodyLength, UInt16(record.body.count))
      set(Layout.answers, record.answers)
      set(Layout.authorities, record.authorities)
      set(Layout.extendedError, record.extendedError)
      set(Layout.rotationStart, record.rotationStart)
      set(Layout.rotationCount, record.rotationCount)
      set(Layout.rotationSize, record.rotationSize)
      set(Layout.responseCode, record.responseCode)
      set(Layout.flags, flags)
      set(Layout.source, record.life.source)
      set(Layout.heat, record.life.heat)
      try append(UnsafeRawBufferPointer(fixed))
    }
    try append(UnsafeRawBufferPointer(record.key))
    try append(UnsafeRawBufferPointer(record.body))
    entries += 1
  }

  /// Writes the trailer.
  mutating func finish() throws(FileProblem) {
    try append(number: UInt64(entries))
    if !piece.isEmpty { try flush() }
    let checksum = Digest.sha256(digests)
    octets += checksum.count
    try output(checksum)
  }

  private func wall(_ boot: Int64) -> Int64 { time.wall &+ (boot &- time.boot) }

  private mutating func append(number: some FixedWidthInteger) throws(FileProblem) {
    var number = number.littleEndian
    try withUnsafeBytes(of: &number) { (octets) throws(FileProblem) in try append(octets) }
  }

  private mutating func append(_ fingerprint: Fingerprint) throws(FileProblem) {
    try append(number: fingerprint.high)
    try append(number: fingerprint.low)
  }

  private mutating func append(_ added: UnsafeRawBufferPointer) throws(FileProblem) {
    octets += added.count
    var rest = added[...]
    while !rest.isEmpty {
      let part = rest.prefix(CacheFormat.pieceLength - piece.count)
      piece.append(contentsOf: part)
      rest = rest.dropFirst(part.count)
      if piece.count == CacheFormat.pieceLength { try flush() }
    }
  }

  private mutating func flush() throws(FileProblem) {
    digests += Digest.sha256(piece)
    try output(piece)
    piece.removeAll(keepingCapacity: true)
  }
}
