// FleetKeys.swift -- the names under which daemons of one site meet in the store, and the keys that seal what lies there.

import Ciphers
import DNSWire
import Files
import Glibc

/// What a question for the fleet consists of: daemons meet only where all of it is the same.
public struct FleetQuestion: Hashable, Sendable {
  /// QNAME in lower case.
  public var name: DomainName
  /// QTYPE.
  public var type: RecordType
  /// The DO bit.
  public var dnssecOK: Bool
  /// The CD bit.
  public var checkingDisabled: Bool
  /// The client subnet that goes to a provider; nil for none.
  public var subnet: IPPrefix?
  /// All that makes the answers of two configurations differ: 32 octets.
  public var fingerprint: [UInt8]

  /// Creates a question.
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

/// The keys of one site in the store.
public struct FleetKeys: Sendable {
  private let prefix: String
  private let site: [UInt8]
  private let names: HMACSHA256
  /// Derives the key of each value; nil without a secret.
  private let sealing: HMACSHA256?
  private let flushing: [UInt8]?

  /// The version of all names and formats.
  static let version: UInt8 = 1

  /// - Parameters:
  ///   - namespace: the prefix of every key.
  ///   - site: daemons of other sites do not share answers.
  ///   - secret: seals values and hides names; nil for none.
  public init(namespace: String, site: String, secret: [UInt8]?) {
    prefix = "\(namespace):\(FleetKeys.version):"
    self.site = Array(site.utf8)
    names = HMACSHA256(key: secret.map { HKDF.sha256($0, label: "name") } ?? Array(namespace.utf8))
    sealing = secret.map { HMACSHA256(key: HKDF.sha256($0, label: "seal")) }
    flushing = secret.map { HKDF.sha256($0, label: "flush") }
  }

  /// Whether values are sealed.
  public var hasSecret: Bool { sealing != nil }

  /// The key of the answer to a question.
  public func answer(_ question: FleetQuestion) -> [UInt8] { key("c", question) }

  /// The key of the lease for a question: who holds it asks the provider.
  public func lease(_ question: FleetQuestion) -> [UInt8] { key("l", question) }

  /// The stream of flushes.
  public var flushes: [UInt8] { Array("\(prefix)f".utf8) }
  /// The sorted set of daemons.
  public var members: [UInt8] { Array("\(prefix)d".utf8) }
  /// A value that changes when the store has lost everything.
  public var epoch: [UInt8] { Array("\(prefix)epoch".utf8) }

  /// The counter of a provider's billing units on one day.
  ///
  /// - Parameters:
  ///   - account: stands for the provider's account; without a colon.
  ///   - day: days since 1970.
  public func units(_ account: String, day: Int64) -> [UInt8] {
    var (seconds, date) = (time_t(day.clamped(to: NumberRange.days)) * 86_400, tm())
    gmtime_r(&seconds, &date)
    let number = (Int(date.tm_year) + 1900) * 10_000 + (Int(date.tm_mon) + 1) * 100 + Int(date.tm_mday)
    return Array("\(prefix)u:\(account):\(number)".utf8)
  }

  /// Stands for what two daemons must have in common to share answers: secret, site and configuration, in this order.
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

  /// Seals a value for its key. Each key has a sealing key of its own, so random nonces never meet under one.
  func seal(_ value: [UInt8], for key: [UInt8]) -> [UInt8]? {
    sealing.map { Seal.seal(value, key: $0.code(of: key), associated: key) }
  }

  /// Opens a value that was sealed for its key; nil if it was not.
  func open(_ sealed: ArraySlice<UInt8>, for key: [UInt8]) -> [UInt8]? {
    sealing.flatMap { Seal.open(sealed, key: $0.code(of: key), associated: key) }
  }

  /// Seals an entry of the stream of flushes.
  func sealFlush(_ entry: [UInt8]) -> [UInt8]? { flushing.map { Seal.seal(entry, key: $0, associated: flushes) } }

  /// Opens an entry of the stream of flushes; nil if it is not sealed with this secret.
  func openFlush(_ sealed: ArraySlice<UInt8>) -> [UInt8]? {
    flushing.flatMap { Seal.open(sealed, key: $0, associated: flushes) }
  }
}
