// FleetKeys.swift -- names of keys in the store, and encryption keys.
//
// "Sealed" is encrypted and authenticated with AES-256-GCM. With a secret, answers and flushes are sealed, and the
// names of the keys of answers and leases are derived from it. Without one, every client with write access to the store
// can forge them.

import Ciphers
import DNSWire
import Files
import Glibc

/// A question as the fleet identifies it. Daemons share an answer only if all members are equal.
public struct FleetQuestion: Hashable, Sendable {
  /// QNAME in lower case.
  public var name: DomainName
  /// QTYPE.
  public var type: RecordType
  /// The DO bit.
  public var dnssecOK: Bool
  /// The CD bit.
  public var checkingDisabled: Bool
  /// The client subnet that is sent to the provider; nil for none.
  public var subnet: IPPrefix?
  /// Hash of the settings that affect the answer: 32 octets.
  public var fingerprint: [UInt8]

  public init(
    name: DomainName, type: RecordType, dnssecOK: Bool, checkingDisabled: Bool, subnet: IPPrefix?,
    fingerprint: [UInt8]
  ) {
    self.name = name
    self.type = type
    self.dnssecOK = dnssecOK
    self.checkingDisabled = checkingDisabled
    self.subnet = subnet
    self.fingerprint = fingerprint
  }
}

/// Composes the names of keys in the store, and seals values, for one site.
public struct FleetKeys: Sendable {
  private let prefix: String
  private let site: [UInt8]
  private let names: HMACSHA256
  /// Derives the key of each value; nil without a secret.
  private let sealing: HMACSHA256?
  private let flushing: [UInt8]?

  /// Version of the names and formats; part of each name and value.
  static let version: UInt8 = 1

  /// - Parameters:
  ///   - namespace: the prefix of every key.
  ///   - site: only daemons of the same site share answers.
  ///   - secret: seals values and hides queried names; nil for none.
  public init(namespace: String, site: String, secret: [UInt8]?) {
    prefix = "\(namespace):\(FleetKeys.version):"
    self.site = Array(site.utf8)
    names = HMACSHA256(key: secret.map { HKDF.sha256($0, label: "name") } ?? Array(namespace.utf8))
    sealing = secret.map { HMACSHA256(key: HKDF.sha256($0, label: "seal")) }
    flushing = secret.map { HKDF.sha256($0, label: "flush") }
  }

  /// Whether values are sealed.
  public var hasSecret: Bool { sealing != nil }

  /// The key of the answer to a question: `PREFIX:1:c:…`.
  public func answer(_ question: FleetQuestion) -> [UInt8] { key("c", question) }

  /// The key of the lease for a question: `PREFIX:1:l:…`. The daemon that holds the lease asks the provider.
  public func lease(_ question: FleetQuestion) -> [UInt8] { key("l", question) }

  /// The stream of flushes.
  public var flushes: [UInt8] { Array("\(prefix)f".utf8) }
  /// The sorted set of daemons, by the time of their last heartbeat.
  public var members: [UInt8] { Array("\(prefix)d".utf8) }
  /// The value here identifies the store's data. A different value means another store, or lost data.
  public var epoch: [UInt8] { Array("\(prefix)epoch".utf8) }

  /// The counter of an account's billing units on one day (UTC).
  ///
  /// - Parameters:
  ///   - account: identifies the provider's account; contains no colon.
  ///   - day: days since 1970.
  public func units(_ account: String, day: Int64) -> [UInt8] {
    var (seconds, date) = (time_t(day.clamped(to: NumberRange.days)) * 86_400, tm())
    gmtime_r(&seconds, &date)
    let number = (Int(date.tm_year) + 1900) * 10_000 + (Int(date.tm_mon) + 1) * 100 + Int(date.tm_mday)
    return Array("\(prefix)u:\(account):\(number)".utf8)
  }

  /// Hashes of secret, site and default route, in this order, separated by `.`. `FleetMember.difference(from:)`
  /// compares them.
  ///
  /// - Parameter route: the fingerprint of the default route.
  public func fingerprint(of route: [UInt8]) -> String {
    [Array("secret".utf8), Array("site:".utf8) + site, Array("route:".utf8) + route]
      .map { Base64URL.encode(Array(names.code(of: $0).prefix(6))) }.joined(separator: ".")
  }

  private func key(_ kind: String, _ question: FleetQuestion) -> [UInt8] {
    var message: [UInt8] = []
    message.reserveCapacity(160 + site.count)
    func add(_ octets: [UInt8]) {
      message.append(UInt8(truncatingIfNeeded: octets.count >> 8))
      message.append(UInt8(truncatingIfNeeded: octets.count))
      message += octets
    }
    add(site)
    add(question.fingerprint)
    add(question.name.octets)
    let type = question.type.rawValue
    add([
      UInt8(type >> 8), UInt8(type & 0xFF), question.dnssecOK ? 1 : 0, question.checkingDisabled ? 1 : 0,
    ])
    if let subnet = question.subnet { add([UInt8(subnet.length)] + subnet.address.octets) }
    return Array("\(prefix)\(kind):".utf8) + Array(Base64URL.encode(Array(names.code(of: message).prefix(16))).utf8)
  }

  // MARK: Seals

  /// Seals a value for its key; nil without a secret.
  ///
  /// Each name has its own encryption key, so that random nonces of different names cannot collide under one key.
  func seal(_ value: [UInt8], for key: [UInt8]) -> [UInt8]? {
    sealing.map { Seal.seal(value, key: $0.code(of: key), associated: key) }
  }

  /// Decrypts a value; nil if it was not sealed with this secret for this key.
  func open(_ sealed: ArraySlice<UInt8>, for key: [UInt8]) -> [UInt8]? {
    sealing.flatMap { Seal.open(sealed, key: $0.code(of: key), associated: key) }
  }

  /// Seals an entry of the stream of flushes; nil without a secret.
  func sealFlush(_ entry: [UInt8]) -> [UInt8]? { flushing.map { Seal.seal(entry, key: $0, associated: flushes) } }

  /// Decrypts an entry of the stream of flushes; nil if it was not sealed with this secret.
  func openFlush(_ sealed: ArraySlice<UInt8>) -> [UInt8]? {
    flushing.flatMap { Seal.open(sealed, key: $0, associated: flushes) }
  }
}
