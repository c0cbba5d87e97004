// ResolverFile.swift -- reads servers and search domains from a resolv.conf(5).

import DNSWire
import EventLoop
import Files

/// The servers and search domains of one file in the format of `/etc/resolv.conf`.
public struct ResolverFile: Equatable, Sendable {
  /// The servers at port 53, in the order of the file, without duplicates.
  public private(set) var servers: [PlainResolver] = []
  /// The names of the last `search` or `domain` line, without the root.
  public private(set) var searchDomains: [DomainName] = []

  /// Maximum octets of a file; a larger file is ignored.
  public static let maximumSize = 65_536
  /// Maximum servers. The C library's limit is 3, but other programs write more.
  public static let maximumServers = 8
  public static let maximumSearchDomains = 32

  /// Parses the text of a file. Lines that it cannot parse are ignored.
  ///
  /// - Complexity: O(n) in the octets, which are looked at as octets: Unicode's spaces would take ten times as long.
  public init(text: some StringProtocol) {
    var isOverTCP = false
    var searched: [String] = []
    for line in text.utf8.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) where !ResolverFile.isComment(line) {
      let fields = line.split { $0 == UInt8(ascii: " ") || 0x09...0x0C ~= $0 }
      guard let keyword = fields.first.map({ String(decoding: $0, as: UTF8.self) }) else { continue }
      switch keyword {
      case "nameserver" where fields.count > 1 && servers.count < ResolverFile.maximumServers:
        add(server: String(decoding: fields[1], as: UTF8.self))
      case "search", "domain":
        searched = fields.dropFirst().prefix { !ResolverFile.isComment($0) }.map { String(decoding: $0, as: UTF8.self) }
      case "options": isOverTCP = isOverTCP || fields.contains { $0.elementsEqual("use-vc".utf8) }
      default: break
      }
    }
    searchDomains = Array(
      searched.lazy.compactMap { DomainName(text: $0) }.filter { !$0.isRoot }.prefix(ResolverFile.maximumSearchDomains))
    if isOverTCP { servers = servers.map { PlainResolver($0.address, zone: $0.zone, isOverTCP: true) } }
  }

  private static func isComment(_ octets: some Collection<UInt8>) -> Bool {
    octets.first == UInt8(ascii: "#") || octets.first == UInt8(ascii: ";")
  }

  /// Reads a file; nil if it is unreadable or too large.
  public init?(path: String) {
    guard let octets = try? WholeFile.read(path, limit: ResolverFile.maximumSize) else { return nil }
    self.init(text: String(decoding: octets, as: UTF8.self))
  }

  private mutating func add(server text: String) {
    guard let server = PlainResolver(text), !servers.contains(server) else { return }
    servers.append(server)
  }
}

extension PlainResolver {
  /// Port 53 of a textual address with an optional zone: `192.0.2.1`, `fe80::1%eth0`, `fe80::1%2`. Nil if the machine
  /// has no such interface.
  fileprivate init?(_ text: String) {
    let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = IPAddress(text: parts[0]), let place = SocketAddress(octets: address.effectiveOctets, port: 53)
    else { return nil }
    self.init(place, zone: parts.count == 2 ? String(parts[1]) : nil)
    guard zone == nil || address.isIPv6 && target != nil else { return nil }
  }
}

extension IPAddress {
  /// The address that the kernel uses instead: IPv4-mapped IPv6 becomes IPv4, the unspecified address becomes loopback.
  var effectiveOctets: [UInt8] {
    let octets = unmapped.octets
    guard octets.allSatisfy({ $0 == 0 }) else { return octets }
    return octets.count == 4 ? [127, 0, 0, 1] : [UInt8](repeating: 0, count: 15) + [1]
  }
}
