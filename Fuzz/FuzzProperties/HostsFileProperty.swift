// HostsFileProperty.swift -- what a hosts file says is in order, and is the same when it is written down and read again.

import DNSWire
import Routing

/// The hosts file.
public struct HostsFileProperty: Property {
  /// The fuzz target.
  public static let name = "HostsFile"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    guard let file = try? HostsFile(octets: input) else { return }
    try require(Set(file.hosts.map(\.name)).count == file.hosts.count, "a name twice")
    try require(Set(file.pointers.map(\.address)).count == file.pointers.count, "an address with two names")
    try require(
      !file.pointers.contains { $0.address.octets.allSatisfy { $0 == 0 } }, "a name of the unspecified address")
    var lines = ""
    for host in file.hosts {
      try require(host.name.octets == host.name.lowercased.octets, "a name with capital letters")
      try require(Set(host.addresses).count == host.addresses.count, "an address twice")
      try require((1...HostsFile.maximumAddresses).contains(host.addresses.count), "\(host.addresses.count) addresses")
      for address in host.addresses { lines += "\(address) \(plainText(of: host.name))\n" }
    }
    guard let again = try? HostsFile(octets: Array(lines.utf8)) else { throw Violation("a file that grew too large") }
    try require(again.skippedLines == 0 && again.hosts == file.hosts, "other hosts when read again")
    // An address that was one too many for its name has a name nevertheless.
    try require(
      Set(again.pointers.map(\.address)).isSubset(of: file.pointers.map(\.address)), "other addresses with names")
  }

  /// A name as the file has it: without the escapes of a zone file, which it does not know.
  private func plainText(of name: DomainName) -> String {
    var labels: [Substring] = []
    var rest = name.octets[...]
    while let length = rest.first, length > 0 {
      labels.append(Substring(decoding: rest.dropFirst().prefix(Int(length)), as: UTF8.self))
      rest = rest.dropFirst(Int(length) + 1)
    }
    return labels.joined(separator: ".")
  }
}
