// HostsFile.swift -- the names and addresses of a hosts(5) file.
//
// Tolerant, as every reader of that file is: what cannot be understood is skipped and counted.

import DNSWire
import Files

/// What a hosts file says: addresses of names, and a name for each address.
public struct HostsFile: Sendable {
  /// A name with its addresses.
  public struct Host: Hashable, Sendable {
    /// The name, in lower case.
    public let name: DomainName
    /// Its addresses in the order of the file, each once, at most `HostsFile.maximumAddresses`.
    public fileprivate(set) var addresses: [IPAddress]
  }

  /// The name that an address is looked up backwards to.
  public struct Pointer: Hashable, Sendable {
    /// The address; never the unspecified one, which blocklists use.
    public let address: IPAddress
    /// The first name of the first line of that address.
    public let name: DomainName
  }

  /// A larger file is refused; in octets.
  public static let maximumSize = 16 << 20
  /// How many addresses of one name count.
  public static let maximumAddresses = 64

  /// The names, in the order in which the file first has them.
  public private(set) var hosts: [Host] = []
  /// The addresses that have a name, in the order of the file.
  public private(set) var pointers: [Pointer] = []
  /// How many lines had an address or a name that is none; the rest of such a line counts.
  public private(set) var skippedLines = 0

  /// A file that says nothing.
  public init() {}

  /// Understands the octets of a file.
  ///
  /// - Throws: `FileFault.tooLarge`
  /// - Complexity: O(octets)
  public init(octets: [UInt8]) throws(FileFault) {
    guard octets.count <= HostsFile.maximumSize else { throw .tooLarge }
    var places = Places()
    for line in octets.split(separator: UInt8(ascii: "\n")) {
      if !add(line.prefix { $0 != UInt8(ascii: "#") }, &places) { skippedLines += 1 }
    }
  }

  /// Reads a file. Blocks: not for the thread of a loop.
  ///
  /// - Throws: `FileFault`
  public init(path: String) throws(FileFault) {
    try self.init(octets: try WholeFile.read(path, limit: HostsFile.maximumSize))
  }

  /// Whether it answers a question; the name in lower case.
  ///
  /// - Complexity: O(entries)
  public func answers(_ name: DomainName, _ type: RecordType) -> Bool {
    switch type {
    case .ptr: pointers.contains { $0.address.reverseName == name }
    case .a, .aaaa, .svcb, .https: hosts.contains { $0.name == name }
    default: false
    }
  }

  /// Where names and addresses already stand, while a file is read.
  private struct Places: ~Copyable {
    var names = SuffixTableBuilder()
    /// The place in `hosts` of each node of `names`.
    var hosts: [Int?] = [nil]
    var pointers: Set<IPAddress> = []
  }

  /// Adds what a line says; false where a part of it is not an address or a name.
  private mutating func add(_ line: ArraySlice<UInt8>, _ places: inout Places) -> Bool {
    let fields = line.split(whereSeparator: isBlank)
    guard let first = fields.first else { return true }
    guard fields.count > 1, let address = IPAddress(text: String(decoding: first, as: UTF8.self)) else { return false }
    var isWhole = true
    for field in fields.dropFirst() {
      guard let name = hostName(field) else {
        isWhole = false
        continue
      }
      add(name, address, &places)
    }
    return isWhole
  }

  private mutating func add(_ name: DomainName, _ address: IPAddress, _ places: inout Places) {
    if !address.isUnspecified, places.pointers.insert(address).inserted {
      pointers.append(Pointer(address: address, name: name))
    }
    let node = Int(places.names.node(of: name))
    while places.hosts.count <= node { places.hosts.append(nil) }
    guard let place = places.hosts[node] else {
      places.hosts[node] = hosts.count
      hosts.append(Host(name: name, addresses: [address]))
      return
    }
    guard hosts[place].addresses.count < HostsFile.maximumAddresses,
      !hosts[place].addresses.contains(address)
    else { return }
    hosts[place].addresses.append(address)
  }
}

/// The name of a field in lower case; nil for the root and for what is not printable ASCII or has an escape.
private func hostName(_ field: ArraySlice<UInt8>) -> DomainName? {
  guard field.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }) else { return nil }
  guard let name = DomainName(text: String(decoding: field, as: UTF8.self)), !name.isRoot else { return nil }
  return name.lowercased
}

/// Space, tab, vertical tab, form feed, carriage return.
private func isBlank(_ octet: UInt8) -> Bool { octet == 0x20 || octet == 9 || (11...13).contains(octet) }
