// FleetValue.swift -- wire format of an answer in the store, and its validation.
//
//   version (1 octet), form (1: 0 plain, 1 sealed), then plain or sealed:
//   flags (1: 1 AD, 2 scope, 4 extended error), scope (1), extended error (2), stored (8), expires (8), length of the
//   provider's name (1), its name, DNS message with its question

import DNSWire

/// Why a value from the store is not used. The raw values are labels of metrics.
public enum FleetRejection: String, Error, CaseIterable, Sendable {
  /// Larger than `FleetValue.mostOctets`.
  case size
  /// Another version, or too short.
  case version
  /// Not sealed with this secret, or sealed although this daemon has no secret.
  case seal
  /// Not a DNS response, or malformed.
  case message
  /// A response to another question.
  case question
  /// Impossible times: in the future, or a lifetime longer than the records allow.
  case lifetime
  /// Expires within 1 s.
  case expired
  /// Fetched before a flush of its name.
  case flushed
  /// Records that would be refused in a provider's own response, too.
  case records
}

/// A shared answer.
public struct FleetValue: Equatable, Sendable {
  /// The largest value, in octets.
  public static let mostOctets = 64 << 10
  /// By how much a time may be ahead of the local estimate of the store's clock, in milliseconds.
  public static let tolerance: Int64 = 1_000

  /// The response with its question. TTLs are those at the time of the fetch.
  public var message: Message
  /// SCOPE PREFIX-LENGTH; nil for none.
  public var scope: Int?
  /// The provider's extended DNS error (RFC 8914); nil for none.
  public var extendedError: ExtendedError?
  /// When the provider was asked, in milliseconds of the store's clock.
  public var stored: Int64
  /// When the answer expires, in milliseconds of the store's clock.
  public var expires: Int64
  /// The provider's name in the configuration of the daemon that asked it.
  public var provider: String
}

extension FleetValue {
  /// Composes the value, sealed if there is a secret; nil if it exceeds `mostOctets`.
  public func octets(for key: [UInt8], _ keys: FleetKeys) -> [UInt8]? {
    guard let wire = try? message.compose() else { return nil }
    var body: [UInt8] = []
    body.reserveCapacity(64 + wire.count)
    body.append((message.header.ad ? 1 : 0) | (scope == nil ? 0 : 2) | (extendedError == nil ? 0 : 4))
    body.append(UInt8(clamping: scope ?? 0))
    let error = extendedError?.rawValue ?? 0
    body += [UInt8(error >> 8), UInt8(error & 0xFF)]
    for time in [stored, expires] { body += (0..<8).map { UInt8(truncatingIfNeeded: time >> (56 - 8 * $0)) } }
    let name = provider.utf8.prefix(255)
    body.append(UInt8(name.count))
    body += name
    body += wire
    let sealed = keys.seal(body, for: key)
    let octets = [FleetKeys.version, sealed == nil ? 0 : 1] + (sealed ?? body)
    return octets.count <= FleetValue.mostOctets ? octets : nil
  }

  /// Parses and validates a value; the caller still has to check the records.
  ///
  /// - Parameters:
  ///   - key: the key under which the value was found.
  ///   - question: the question that the value must answer.
  ///   - now: milliseconds of the store's clock.
  public init(
    _ octets: [UInt8], for key: [UInt8], _ keys: FleetKeys, question: FleetQuestion, now: Int64
  ) throws(FleetRejection) {
    guard octets.count <= FleetValue.mostOctets else { throw .size }
    guard octets.count >= 2, octets[0] == FleetKeys.version, octets[1] <= 1 else { throw .version }
    guard (octets[1] == 1) == keys.hasSecret else { throw .seal }
    var body = octets[2...]
    if octets[1] == 1 {
      guard let opened = keys.open(body, for: key) else { throw .seal }
      body = opened[...]
    }
    func number(_ length: Int) -> UInt64 {
      defer { body = body.dropFirst(length) }
      return body.prefix(length).reduce(0) { $0 << 8 | UInt64($1) }
    }
    guard body.count >= 21 else { throw .version }
    let flags = number(1)
    let scope = Int(number(1))
    let error = UInt16(number(2))
    self.scope = flags & 2 == 0 ? nil : scope
    extendedError = flags & 4 == 0 ? nil : ExtendedError(rawValue: error)
    (stored, expires) = (Int64(bitPattern: number(8)), Int64(bitPattern: number(8)))
    let length = Int(number(1))
    guard body.count >= length, let provider = String(validating: body.prefix(length), as: UTF8.self) else {
      throw .version
    }
    self.provider = provider
    // Daemons write only records that they have parsed: one that is malformed is forged or corrupt.
    guard let message = try? Message.parse(Array(body.dropFirst(length))), message.header.qr, !message.header.tc,
      message.unreadableRecordCount == 0
    else { throw .message }
    self.message = message
    self.message.header.ad = flags & 1 != 0
    guard message.questions.count == 1, let asked = message.questions.first?.question,
      asked.name.lowercased == question.name, asked.type == question.type
    else { throw .question }
    guard stored <= now + FleetValue.tolerance, stored >= 0, expires > stored,
      expires - stored <= FleetValue.longestLife
    else { throw .lifetime }
    guard expires - now >= 1_000 else { throw .expired }
  }

  /// The longest lifetime of any answer, in milliseconds: TTLs have 31 bits.
  private static let longestLife = Int64(Int32.max) * 1_000
}

/// A value that has passed every check but that of its records. All times are those of the store's clock.
public struct FoundValue: Sendable {
  public let value: FleetValue
  /// When it was read, in milliseconds.
  private let now: Int64

  /// The most time from asking the provider to the response, in milliseconds: a value's lifetime includes it, that of
  /// its answer does not.
  private static let longestTransfer: Int64 = 5_000

  /// - Parameter now: when it was read, in milliseconds.
  public init(_ value: FleetValue, readAt now: Int64) { (self.value, self.now) = (value, now) }

  /// The remaining lifetime in seconds, rounded down so that no record outlives the value.
  ///
  /// - Parameter longest: for how long this daemon would cache the answer if it came from the provider, in seconds.
  public func rest(longest: UInt32) throws(FleetRejection) -> UInt32 {
    let (longest, left) = (Int64(longest) * 1_000, value.expires - now)
    guard value.expires - value.stored <= longest + FoundValue.longestTransfer, left <= longest + FleetValue.tolerance
    else { throw .lifetime }
    return UInt32(clamping: min(left, longest) / 1_000)
  }

  /// The records with their remaining TTLs in seconds: reduced by the value's age (rounded up), but not below `rest`.
  public func aged(_ records: [ResourceRecord], rest: UInt32) -> [ResourceRecord] {
    let age = UInt32(clamping: (now - value.stored + 999) / 1_000)
    return records.map { record in
      var record = record
      record.ttl = max(rest, record.ttl > age ? record.ttl - age : 0)
      return record
    }
  }
}
