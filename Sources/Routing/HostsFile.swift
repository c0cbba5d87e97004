// HostsFile.swift -- the names and addresses of a hosts(5) file.
//
// Tolerant like every reader of such files: invalid entries are skipped and counted.

import DNSWire
import Files

/// The contents of a hosts file: addresses of names, and a name for each address.
public struct HostsFile: Sendable {
  /// A name with its addresses.
  public struct Host: Hashable, Sendable {
    /// The name, in lower case.
    public let name: DomainName
    /// Its addresses in the order of the file, each once, at most `HostsFile.maximumAddresses`.
    public fileprivate(set) var addresses: [IPAddress]
  }

  /// An address and the name for its PTR record.
  public struct Pointer: Hashable, Sendable {
    /// The address; never the unspecified one, which blocklists use.
    public let address: IPAddress
    /// The first name of the first line of that address.
    public let name: DomainName
  }

  /// A line that cannot be read as a whole.
  public struct SkippedLine: Hashable, Sendable, CustomStringConvertible {
    /// Its number, from 1.
    public let number: Int
    /// What is wrong, with the text in question escaped.
    public let reason: String

    /// `line 12: "192.0.2" is not an address`.
    public var description: String { "line \(number): \(reason)" }
  }

  /// The largest accepted file, in octets.
  public static let maximumSize = 16 << 20
  /// The most addresses of one name; further ones are ignored.
  public static let maximumAddresses = 64

  /// The names, in the order of their first occurrence.
  public private(set) var hosts: [Host] = []
  /// The addresses that have a name, in the order of the file.
  public private(set) var pointers: [Pointer] = []
  /// The number of lines with an invalid address or name. The rest of such a line is used.
  public private(set) var skippedLines = 0
  /// The first of these lines; nil without such a line.
  public private(set) var firstSkipped: SkippedLine?

  public init() {}

  /// Parses the octets of a file, without a byte order mark in front.
  ///
  /// - Throws: `FileFault.tooLarge`
  /// - Complexity: O(octets)
  public init(octets: [UInt8]) throws(FileFault) {
    guard octets.count <= HostsFile.maximumSize else { throw .tooLarge(limit: HostsFile.maximumSize) }
    var index = Index()
    let text = octets.starts(with: [0xEF, 0xBB, 0xBF]) ? octets.dropFirst(3) : octets[...]
    var number = 0
    for line in text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      number += 1
      guard let fault = add(line.prefix { $0 != UInt8(ascii: "#") }, &index) else { continue }
      skippedLines += 1
      firstSkipped = firstSkipped ?? SkippedLine(number: number, reason: fault.text)
    }
  }

  /// The same names, but for loopback addresses of one of them: installers give such an address to the machine's own name,
  /// and to every other machine it means itself.
  public func withoutLoopback(of name: DomainName) -> HostsFile {
    var file = self
    guard let index = file.hosts.firstIndex(where: { $0.name == name }) else { return self }
    file.hosts[index].addresses.removeAll(where: \.isLoopback)
    if file.hosts[index].addresses.isEmpty { file.hosts.remove(at: index) }
    return file
  }

  /// Reads and parses a file. Blocks, so do not call it on a loop.
  ///
  /// - Throws: `FileFault`
  public init(path: String) throws(FileFault) {
    try self.init(octets: try WholeFile.read(path, limit: HostsFile.maximumSize))
  }

  /// Whether it answers a question. The name must be in lower case.
  ///
  /// - Complexity: O(entries)
  public func answers(_ name: DomainName, _ type: RecordType) -> Bool {
    switch type {
    case .ptr: pointers.contains { $0.address.reverseName == name }
    case .a, .aaaa, .svcb, .https: hosts.contains { $0.name == name }
    default: false
    }
  }

  /// The indices of known names and addresses while a file is read.
  private struct Index: ~Copyable {
    var names = SuffixTableBuilder()
    /// The index in `HostsFile.hosts` of each node of `names`.
    var hosts: [Int?] = [nil]
    var pointers: Set<IPAddress> = []
  }

  /// What is wrong with a line, with the field that is to blame.
  private enum Fault {
    case address(ArraySlice<UInt8>)
    case noName(ArraySlice<UInt8>)
    case name(ArraySlice<UInt8>)

    var text: String {
      switch self {
      case .address(let field): "\(shown(field)) is not an address"
      case .noName(let field): "no name after \(shown(field))"
      case .name(let field): "\(shown(field)) is not a name"
      }
    }
  }

  /// Adds a line; returns the first fault of it, if there is one.
  private mutating func add(_ line: ArraySlice<UInt8>, _ index: inout Index) -> Fault? {
    let fields = line.split(whereSeparator: isBlank)
    guard let first = fields.first else { return nil }
    guard let address = IPAddress(text: String(decoding: first, as: UTF8.self)) else { return .address(first) }
    guard fields.count > 1 else { return .noName(first) }
    var fault: Fault?
    for field in fields.dropFirst() {
      guard let name = hostName(field) else {
        fault = fault ?? .name(field)
        continue
      }
      add(name, address, &index)
    }
    return fault
  }

  private mutating func add(_ name: DomainName, _ address: IPAddress, _ index: inout Index) {
    if !address.isUnspecified, index.pointers.insert(address).inserted {
      pointers.append(Pointer(address: address, name: name))
    }
    let node = Int(index.names.node(of: name))
    while index.hosts.count <= node { index.hosts.append(nil) }
    guard let number = index.hosts[node] else {
      index.hosts[node] = hosts.count
      hosts.append(Host(name: name, addresses: [address]))
      return
    }
    guard hosts[number].addresses.count < HostsFile.maximumAddresses,
      !hosts[number].addresses.contains(address)
    else { return }
    hosts[number].addresses.append(address)
  }
}

/// A field in quotes, cut after 60 octets. Others than printable ASCII are escaped: the file may be a stranger's.
private func shown(_ field: ArraySlice<UInt8>) -> String {
  let longest = 60
  let text = field.prefix(longest).map { octet in
    let isPlain = octet > 0x20 && octet < 0x7F && octet != UInt8(ascii: "\\") && octet != UInt8(ascii: "\"")
    return isPlain ? String(UnicodeScalar(octet)) : "\\x" + (octet < 16 ? "0" : "") + String(octet, radix: 16)
  }
  return "\"\(text.joined())\(field.count > longest ? "…" : "")\""
}

/// The name of a field in lower case; nil for the root, unprintable or non-ASCII octets, and escapes.
private func hostName(_ field: ArraySlice<UInt8>) -> DomainName? {
  guard field.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }) else { return nil }
  guard let name = DomainName(text: String(decoding: field, as: UTF8.self)), !name.isRoot else { return nil }
  return name.lowercased
}

/// Space, tab, vertical tab, form feed, carriage return.
private func isBlank(_ octet: UInt8) -> Bool { octet == 0x20 || octet == 9 || (11...13).contains(octet) }
