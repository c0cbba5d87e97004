// SetDescription.swift -- what the kernel says about a set, and the reasons for which an address cannot be added to one.

import Configuration
import DNSWire

/// What a set accepts, as the kernel describes it.
public struct SetDescription: Hashable, Sendable {
  /// What the elements of a set are.
  public enum Key: String, Sendable {
    case ipv4 = "ipv4_addr"
    case ipv6 = "ipv6_addr"
  }

  public let key: Key
  /// Whether elements may expire.
  public let hasTimeouts: Bool
  /// Whether the elements are intervals, which makes additions to large sets slow.
  public let isInterval: Bool

  public init(_ key: Key, hasTimeouts: Bool = false, isInterval: Bool = false) {
    self.key = key
    self.hasTimeouts = hasTimeouts
    self.isInterval = isInterval
  }

  /// Whether an address is of the set's key type.
  public func accepts(_ address: IPAddress) -> Bool { address.isIPv6 == (key == .ipv6) }
}

/// Why an address was not added to a set.
public enum SetFailure: Error, Hashable, Sendable {
  /// No such table, and therefore no such set.
  case missingTable
  case missing
  /// The process lacks CAP_NET_ADMIN.
  case notPermitted
  /// Another program owns the table, and keeps it from being changed as long as it runs; firewalld does that.
  case owned
  /// The elements are not single addresses, but of this type.
  case otherKey(String)
  /// Its elements have values.
  case map
  /// It is a set that must not change.
  case constant
  /// It has as many elements as its `size` allows.
  case full
  /// The kernel does not have nf_tables.
  case unsupported
  /// The kernel did not reply in time.
  case noReply
  /// Others change the rule set all the time.
  case contended
  /// Too many additions wait for the kernel.
  case overloaded
  /// Another error of the kernel or of a system call.
  case error(String)
}

extension SetFailure: CustomStringConvertible {
  /// The state of a set in a few words.
  public var description: String {
    switch self {
    case .missingTable, .missing: "missing"
    case .notPermitted: "not permitted"
    case .owned: "its table belongs to another program"
    case .otherKey(let type): "its type is \(type), not ipv4_addr or ipv6_addr"
    case .map: "it is a map"
    case .constant: "it is constant"
    case .full: "full"
    case .unsupported: "the kernel does not have nftables"
    case .noReply: "the kernel does not reply"
    case .contended: "the rule set changes too often"
    case .overloaded: "too many additions wait"
    case .error(let text): text
    }
  }

  /// What the operator may do about it; nil if that depends.
  func advice(for set: FirewallSetName) -> String? {
    switch self {
    case .missing: "create it with: \(set.creation)"
    case .missingTable: "create it with: nft add table \(set.family.rawValue) \(set.table) && \(set.creation)"
    case .notPermitted: "grant CAP_NET_ADMIN, for a service with the drop-in httpdnsd-sets.conf"
    case .owned: "create one in a table of your own, such as: nft add table inet fw"
    case .otherKey, .map, .constant: "create another one, such as: \(set.creation)"
    case .full: "raise its size"
    case .unsupported, .noReply, .contended, .overloaded, .error: nil
    }
  }
}

extension FirewallSetName {
  /// The command that creates the set, with the key type that its name suggests.
  var creation: String {
    let isIPv6 = family == .ip6 || family == .inet && set.hasSuffix("6")
    let key: SetDescription.Key = isIPv6 ? .ipv6 : .ipv4
    return "nft add set \(arguments) '{ type \(key.rawValue); flags timeout; }'"
  }
}
