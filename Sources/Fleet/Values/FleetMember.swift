// FleetMember.swift -- a daemon's entry in the store's list of daemons.

/// A member of the sorted set of daemons. Its score is the time of its last heartbeat, in milliseconds of the store's
/// clock.
public struct FleetMember: Hashable, Sendable {
  /// How long after its last heartbeat a daemon is listed, in milliseconds: two idle heartbeats and a margin.
  public static let lifetime: Int64 = 1_260_000

  /// Random identifier of the daemon: 16 octets in hexadecimal.
  public var id: String
  /// The program's version.
  public var version: String
  /// `FleetKeys.fingerprint(of:)`. Daemons with equal fingerprints share answers.
  public var fingerprint: String
  /// The machine's host name.
  public var host: String

  public init(id: String, version: String, fingerprint: String, host: String) {
    self.id = id
    self.version = version
    self.fingerprint = fingerprint
    self.host = host
  }

  /// Why two daemons do not share answers.
  public enum Difference: Hashable, Sendable {
    /// Different secret; flushes are not shared either.
    case secret
    /// Different site.
    case site
    /// Different providers, rules or limits of the default route.
    case configuration
  }

  /// The first difference in the order secret, site, configuration; nil if the fingerprints are equal.
  public func difference(from other: FleetMember) -> Difference? {
    guard fingerprint != other.fingerprint else { return nil }
    let (own, others) = (fingerprint.split(separator: "."), other.fingerprint.split(separator: "."))
    guard own.count == 3, others.count == 3 else { return .configuration }
    return own[0] != others[0] ? .secret : own[1] != others[1] ? .site : .configuration
  }

  /// The member as it is stored in the set.
  public var text: String { "\(id)|\(version)|\(fingerprint)|\(host)" }

  /// Parses a member; nil if malformed. Everything but printable ASCII becomes `?`, since commands print it to a
  /// terminal.
  public init?(text: String) {
    let parts = text.split(separator: "|", maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 4, text.utf8.count <= 512 else { return nil }
    func plain(_ part: Substring) -> String {
      String(String.UnicodeScalarView(part.unicodeScalars.map { (0x20..<0x7F).contains($0.value) ? $0 : "?" }))
    }
    (id, version, fingerprint, host) = (plain(parts[0]), plain(parts[1]), plain(parts[2]), plain(parts[3]))
  }
}
