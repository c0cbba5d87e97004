// FirewallSetName.swift -- the name of an nftables set in the configuration: family#table#set.

/// A set of nftables, such as `inet#fw#domestic4`. It need not exist.
public struct FirewallSetName: Hashable, Sendable {
  /// The family of a table. A table of each family may contain sets of IPv4 and of IPv6 addresses.
  public enum Family: String, CaseIterable, Sendable { case inet, ip, ip6 }

  public let family: Family
  public let table: String
  public let set: String

  /// Maximum octets of a table's or a set's name in the kernel.
  private static let longestName = 255

  /// A name from the text of the configuration.
  ///
  /// - Throws: `FirewallSetNameMistake`
  public init(text: some StringProtocol) throws(FirewallSetNameMistake) {
    let parts = text.split(separator: "#", omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw .notThreeParts }
    guard let family = Family(rawValue: String(parts[0])) else { throw .family(String(parts[0])) }
    for name in parts[1...] where !FirewallSetName.isIdentifier(name) { throw .identifier(String(name)) }
    self.family = family
    table = String(parts[1])
    set = String(parts[2])
  }

  /// Whether nft(8) accepts a name without quotes.
  private static func isIdentifier(_ name: some StringProtocol) -> Bool {
    guard let first = name.utf8.first, isLetter(first) || first == UInt8(ascii: "_") || first == UInt8(ascii: ".")
    else {
      return false
    }
    return name.utf8.count <= longestName
      && name.utf8.allSatisfy { isLetter($0) || "0123456789_./\\-".utf8.contains($0) }
  }

  private static func isLetter(_ octet: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(octet | 0x20)
  }
}

extension FirewallSetName: CustomStringConvertible {
  /// The text of the configuration.
  public var description: String { "\(family.rawValue)#\(table)#\(set)" }

  /// The name as arguments of nft(8).
  public var arguments: String { "\(family.rawValue) \(table) \(set)" }
}

/// Why a text does not name a set.
public enum FirewallSetNameMistake: Error, Hashable, CustomStringConvertible {
  case notThreeParts
  /// No family that has sets of addresses.
  case family(String)
  /// The name of a table or a set that nft(8) does not accept.
  case identifier(String)

  /// What is wrong and what is allowed, for a line that has the text itself.
  public var description: String {
    switch self {
    case .notThreeParts: "it is not family#table#set, such as inet#fw#domestic4"
    case .family(let family):
      "its family is '\(family)', not \(FirewallSetName.Family.allCases.map(\.rawValue).joined(separator: ", "))"
    case .identifier(let name):
      "'\(name)' is not a name of nftables: a letter, '_' or '.', then letters, digits and _ . / - up to 255 characters"
    }
  }
}
