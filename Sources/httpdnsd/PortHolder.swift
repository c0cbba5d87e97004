// PortHolder.swift -- finds the process that holds a port in use, as far as /proc shows.

import DNSWire
import EventLoop
import Files

enum PortHolder {
  /// The largest socket table that is read, in octets; a hundred thousand sockets take less.
  private static let largest = 32 << 20

  /// A process that holds a port.
  struct Holder: CustomStringConvertible {
    var name: String
    var pid: String

    var description: String { "\(name) (pid \(pid))" }
    /// Whether it may be httpdnsd's: systemd holds the sockets of httpdnsd.socket.
    var mayBeHTTPDNSD: Bool { name == "httpdnsd" || pid == "1" }
  }

  /// `name (pid N)` of the process that holds the port; nil if it cannot be found.
  static func find(_ address: SocketAddress, transport: String) -> String? {
    holders(address, transport: transport).first?.description
  }

  /// The processes that hold the port, as far as they can be found.
  static func holders(_ address: SocketAddress, transport: String) -> [Holder] {
    let inodes = [transport, "\(transport)6"].flatMap { table in
      inodesOfSockets(table: "/proc/net/\(table)", port: address.port, places: places(address))
    }
    guard !inodes.isEmpty else { return [] }
    let links = Set(inodes.map { "socket:[\($0)]" })
    return (Folder.names(in: "/proc") ?? []).filter { $0.allSatisfy(\.isNumber) }.compactMap { process in
      let directory = "/proc/\(process)/fd"
      let targets = (Folder.names(in: directory) ?? []).lazy.compactMap { Folder.target(ofLink: "\(directory)/\($0)") }
      guard targets.contains(where: links.contains) else { return nil }
      let name = text(of: "/proc/\(process)/comm")?.split(separator: "\n").first.map { String($0) }
      return Holder(name: name ?? "a process", pid: process)
    }
  }

  /// Advice if a wildcard cannot be bound because the port is in use on single addresses; lists those that /proc shows.
  static func adviceForWildcard(_ address: SocketAddress, transport: String) -> String {
    let advice = "list your addresses one by one in listen.addresses"
    let bound = [transport, "\(transport)6"].flatMap { table in
      sockets(table: "/proc/net/\(table)", port: address.port)
    }
    let places = Set(bound.compactMap { octets(ofPlace: String($0[1].prefix { $0 != ":" })) })
    // If a process holds the wildcard itself, no single address is free either.
    guard !places.contains(where: { $0.allSatisfy { $0 == 0 } }) else { return "" }
    let taken = places.compactMap { IPAddress(octets: $0).map { "\($0)" } }.sorted()
    guard !taken.isEmpty else {
      return "; if a program holds the port on one address, as systemd-resolved does, \(advice)"
    }
    return "; port \(address.port) is in use on \(taken.joined(separator: ", ")): \(advice)"
  }

  /// Parses an address of /proc/net: 32-bit words in host byte order, in hexadecimal.
  private static func octets(ofPlace text: String) -> [UInt8]? {
    let octets = stride(from: 0, to: text.utf8.count, by: 8).flatMap { start -> [UInt8] in
      let word = text.dropFirst(start).prefix(8)
      return UInt32(word, radix: 16).map { withUnsafeBytes(of: $0, Array.init) } ?? []
    }
    return octets.count == 4 || octets.count == 16 ? octets : nil
  }

  /// A command that shows the holder if `find` cannot: in the unit, /proc has neither /proc/net nor other processes.
  static func command(_ address: SocketAddress, transport: String) -> String {
    "sudo ss -l\(transport == "udp" ? "u" : "t")np sport = :\(address.port)"
  }

  /// The local addresses, in the format of /proc/net, of sockets that conflict with one on `address`: the address
  /// itself and the wildcards of both families. Empty for a wildcard, which conflicts with every address.
  private static func places(_ address: SocketAddress) -> Set<String> {
    let octets = address.octets
    guard octets.contains(where: { $0 != 0 }) else { return [] }
    let places = [
      octets, [0, 0, 0, 0], [UInt8](repeating: 0, count: 16), [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF] + octets,
    ]
    return Set(places.map(procText))
  }

  private static func procText(_ octets: [UInt8]) -> String {
    let words = stride(from: 0, to: octets.count, by: 4).map { octets[$0..<($0 + 4)].reversed() }
    return words.joined().map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined().uppercased()
  }

  /// The inodes of the receiving sockets (listening TCP, all UDP) in a table of /proc/net that are bound to the port on
  /// one of the places, or on any address if `places` is empty.
  private static func inodesOfSockets(table: String, port: UInt16, places: Set<String>) -> [String] {
    sockets(table: table, port: port).filter { fields in
      places.isEmpty || places.contains(String(fields[1].prefix { $0 != ":" }))
    }.map { String($0[9]) }
  }

  /// The fields of each receiving socket in a table of /proc/net that is bound to the port.
  private static func sockets(table: String, port: UInt16) -> [[Substring]] {
    let lines = text(of: table)?.split(separator: "\n").dropFirst() ?? []
    return lines.map { $0.split(separator: " ") }.filter { fields in
      guard fields.count > 9, let colon = fields[1].lastIndex(of: ":") else { return false }
      return UInt16(fields[1][fields[1].index(after: colon)...], radix: 16) == port
        && (table.contains("udp") || fields[3] == "0A")
    }
  }

  private static func text(of path: String) -> String? {
    (try? WholeFile.read(path, limit: largest)).map { String(decoding: $0, as: UTF8.self) }
  }
}
