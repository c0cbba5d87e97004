// FleetMember.swift -- a daemon as the others of its fleet see it.

/// A daemon in the store's sorted set, whose score is the time when it was last there.
public struct FleetMember: Hashable, Sendable {
  /// How long a member counts as there, in milliseconds: two of the longest pauses between its signs of life, and more.
  public static let lifetime: Int64 = 1_260_000

  /// Random for each daemon: 16 octets in hexadecimal.
  public var id: String
  /// The version of the program.
  public var version: String
  /// The fingerprint of its secret, site and default route; answers are shared where it is the same.
  public var fingerprint: String
  /// The name of the machine.
  public var host: String

  /// Creates a member.
  public init(id: String, version: String, fingerprint: String, host: String) {
    self.id = id
    self.version = version
    self.fingerprint = fingerprint
    self.host = host
  }

  /// What keeps two daemons from sharing.
  public enum Difference: Hashable, Sendable {
    /// Another secret: neither answers nor flushes are shared.
    case secret
    /// Another site: answers are not shared.
    case site
    /// Other providers, rules or limits: answers are not shared.
    case configuration
  }

  /// The first difference between it and another daemon; nil if there is none.
  public func difference(from other: FleetMember) -> Difference? {
    guard fingerprint != other.fingerprint else { return nil }
    let (own, others) = (fingerprint.split(separator: "."), other.fingerprint.split(separator: "."))
    guard own.count == 3, others.count == 3 else { return .configuration }
    return own[0] != others[0] ? .secret : own[1] != others[1] ? .site : .configuration
  }

  /// The member of the set.
  public var text: String { "\(id)|\(version)|\(fingerprint)|\(host)" }

  /// Reads a member; nil if it is none. Characters that could disturb a terminal are replaced.
  public init?(text: String) {
    let parts = text.split(separator: "|", maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 4, text.utf8.count <= 512 else { return nil }
    func plain(_ part: Substring) -> String {
      String(String.UnicodeScalarView(part.unicodeScalars.map { (0x20..<0x7F).contains($0.value) ? $0 : "?" }))
    }
    (id, version, fingerprint, host) = (plain(parts[0]), plain(parts[1]), plain(parts[2]), plain(parts[3]))
  }
}
