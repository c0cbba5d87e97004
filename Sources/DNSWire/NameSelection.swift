// NameSelection.swift -- a set of names, with or without the names below them.

/// A set of names, as in a flush command.
///
/// A check costs the same for any number of names, because every entry of the cache is checked.
public struct NameSelection: Sendable {
  /// Names in wire form and lower case.
  private struct Names: Sendable {
    private var names: Set<[UInt8]> = []
    /// Their hashes, which avoid copying a name in most checks.
    private var hashes: Set<UInt64> = []

    mutating func insert(_ name: ArraySlice<UInt8>) {
      names.insert(Array(name))
      hashes.insert(name.withUnsafeBufferPointer { Names.hash($0) })
    }

    func contains(_ name: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
      hashes.contains(Names.hash(UnsafeBufferPointer(rebasing: name))) && names.contains(Array(name))
    }

    /// FNV-1a. It needs no seed: the names come from an operator.
    private static func hash(_ octets: UnsafeBufferPointer<UInt8>) -> UInt64 {
      octets.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
  }

  /// Nil for every name.
  private let names: Names?
  /// The ancestors of the selected names: NXDOMAIN for an ancestor covers them.
  private let ancestors: Names
  private let includesBelow: Bool

  public static let everything = NameSelection(names: nil, ancestors: Names(), includesBelow: true)

  /// Whether every name is selected.
  public var isEverything: Bool { names == nil }

  private init(names: Names?, ancestors: Names, includesBelow: Bool) {
    self.names = names
    self.ancestors = ancestors
    self.includesBelow = includesBelow
  }

  /// Selects these names and, with `andBelow`, all names below them.
  public init(_ names: [DomainName], andBelow: Bool) {
    var (these, ancestors) = (Names(), Names())
    for name in names {
      let octets = name.lowercased.octets
      these.insert(octets[...])
      var start = 0
      while start < octets.count, octets[start] != 0 {
        start += Int(octets[start]) + 1
        if start < octets.count { ancestors.insert(octets[start...]) }
      }
    }
    self.init(names: these, ancestors: ancestors, includesBelow: andBelow)
  }

  /// Whether a name is selected, ignoring ASCII case.
  ///
  /// - Complexity: O(labels)
  public func contains(_ name: DomainName) -> Bool {
    name.lowercased.octets.withUnsafeBufferPointer { contains(name: $0, isNXDOMAIN: false) }
  }

  /// Whether a name is selected. NXDOMAIN for a name also concerns all names below (RFC 8020).
  ///
  /// - Parameter name: in wire form and lower case.
  /// - Complexity: O(labels)
  public func contains(name: UnsafeBufferPointer<UInt8>, isNXDOMAIN: Bool) -> Bool {
    guard let names else { return true }
    if names.contains(name[...]) || isNXDOMAIN && ancestors.contains(name[...]) { return true }
    guard includesBelow else { return false }
    var start = 0
    while start < name.count, name[start] != 0 {
      start += Int(name[start]) + 1
      if start < name.count, names.contains(name[start...]) { return true }
    }
    return false
  }
}
