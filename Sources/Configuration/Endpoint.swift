// Endpoint.swift -- an address with a port; a host that is an address or a name.

import DNSWire

/// An IPv4 or IPv6 address with a port.
public struct Endpoint: Hashable, Sendable {
  /// IPv4 or IPv6.
  public var address: IPAddress
  /// The interface of a link-local IPv6 address, by name or number (RFC 4007 section 11); nil for every other address.
  public var zone: String?
  /// The port. 0, only for listening, lets the kernel choose.
  public var port: UInt16

  public init(address: IPAddress, zone: String? = nil, port: UInt16) {
    self.address = address
    self.zone = zone
    self.port = port
  }

  /// An endpoint from `127.0.0.1:53`, `[::1]:53` or `[fe80::1%eth0]:53`; nil for anything else.
  ///
  /// - Parameter defaultPort: the port of an address without one, with or without brackets; nil if the port is required.
  public init?(text: String, defaultPort: UInt16? = nil) { self.init(text, defaultPort, ports: 1...UInt16.max) }

  /// An endpoint to listen on, where port 0 lets the kernel choose.
  init?(listening text: String) { self.init(text, nil, ports: 0...UInt16.max) }

  private init?(_ text: String, _ defaultPort: UInt16?, ports: ClosedRange<UInt16>) {
    guard let (host, given) = splitPort(text, in: ports), let port = given ?? defaultPort else { return nil }
    let parts = host.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = IPAddress(text: parts[0]) else { return nil }
    self.init(address: address, zone: parts.count == 2 ? String(parts[1]) : nil, port: port)
    guard let zone else { return }
    // The kernel's names have up to 15 octets.
    let isName =
      (1...15).contains(zone.utf8.count) && zone.utf8.allSatisfy { 0x21...0x7E ~= $0 && !"/:%[]".utf8.contains($0) }
    guard isName, address.isLinkLocal else { return nil }
  }

  /// Whether it stands for every address of its family.
  public var isWildcard: Bool { address.octets.allSatisfy { $0 == 0 } }

  /// Whether it lacks the zone without which its address means nothing.
  var lacksZone: Bool { address.isLinkLocal && zone == nil }
}

extension Endpoint {
  /// Whether a socket on the other endpoint already receives everything that is sent to this one, so that no second
  /// socket can be bound. A wildcard covers its own family only: sockets are made with IPV6_V6ONLY.
  func isCovered(by other: Endpoint) -> Bool {
    other.isWildcard && !isWildcard && other.port == port && port != 0 && other.address.isIPv6 == address.isIPv6
  }

  /// Whether a packet from this machine to this endpoint certainly reaches one of its listening endpoints. Which of the
  /// other loopback addresses a wildcard receives is not in the text: 127.0.0.11 may be Docker's resolver.
  func reaches(_ listening: [Endpoint]) -> Bool {
    listening.contains { own in
      guard own.port == port else { return false }
      let covers = own.isWildcard && own.address.isIPv6 == address.isIPv6
      return own.address == address && own.zone == zone || covers && Endpoint.firstLoopback.contains(address)
    }
  }

  private static let firstLoopback = ["127.0.0.1", "::1"].compactMap { IPAddress(text: $0) }
}

extension Endpoint: CustomStringConvertible {
  /// `127.0.0.1:53`, `[::1]:53` or `[fe80::1%eth0]:53`.
  public var description: String {
    zone.map { "[\(address)%\($0)]:\(port)" } ?? "\(Host.address(address).urlText):\(port)"
  }
}

/// A host: an address, or a name to look up.
public enum Host: Hashable, Sendable {
  /// IPv4 or IPv6; nothing has to be looked up.
  case address(IPAddress)
  /// A host name in lower case.
  case name(DomainName)

  /// A host from an address without brackets, or a name of letters, digits, hyphens and underscores.
  public init?(text: String) {
    if let address = IPAddress(text: text) {
      self = .address(address)
      return
    }
    // A name whose last label is a number is a mistyped address (WHATWG URL, "ends in a number").
    guard let name = DomainName(text: text), name.isPlain, !name.isRoot,
      let last = text.split(separator: ".").last, !last.utf8.allSatisfy({ isDigit($0) })
    else { return nil }
    self = .name(name.lowercased)
  }

  /// Whether the host is a name, which has to be looked up.
  public var isName: Bool { if case .name = self { true } else { false } }

  /// The address without brackets, or the name without its final dot: for SNI and the certificate check.
  public var text: String {
    switch self {
    case .address(let address): address.description
    case .name(let name): String(name.text.dropLast())
    }
  }

  /// The same with brackets around an IPv6 address: for a URL or the Host header.
  public var urlText: String {
    if case .address(let address) = self, address.isIPv6 { "[\(address)]" } else { text }
  }
}

/// The port number of a text; nil if it is not a decimal number in the range.
func portNumber(_ text: some StringProtocol, in ports: ClosedRange<UInt16> = 1...UInt16.max) -> UInt16? {
  guard !text.isEmpty, text.utf8.allSatisfy({ isDigit($0) }), let port = UInt16(text), ports.contains(port) else {
    return nil
  }
  return port
}

/// The digits after the colon of `address:port` if they are a number that no port has; nil for anything else.
func portOutOfRange(_ text: String) -> Substring? {
  guard let colon = text.lastIndex(of: ":") else { return nil }
  let digits = text[text.index(after: colon)...]
  guard !digits.isEmpty, digits.utf8.allSatisfy({ isDigit($0) }), UInt16(digits) == nil else { return nil }
  // With a valid port, the rest has to be an endpoint.
  return Endpoint(text: "\(text[..<colon]):1") == nil ? nil : digits
}

/// Splits `host`, `host:port`, `[IPv6]`, `[IPv6]:port` or a bare IPv6 address; nil if the port is invalid.
func splitPort(_ text: String, in ports: ClosedRange<UInt16> = 1...UInt16.max) -> (host: String, port: UInt16?)? {
  if text.hasPrefix("[") {
    guard let end = text.firstIndex(of: "]") else { return nil }
    let host = String(text[text.index(after: text.startIndex)..<end])
    let rest = text[text.index(after: end)...]
    guard host.contains(":") else { return nil }
    if rest.isEmpty { return (host, nil) }
    guard rest.hasPrefix(":"), let port = portNumber(rest.dropFirst(), in: ports) else { return nil }
    return (host, port)
  }
  let parts = text.split(separator: ":", omittingEmptySubsequences: false)
  guard parts.count == 2 else { return (text, nil) }
  guard let port = portNumber(parts[1], in: ports) else { return nil }
  return (String(parts[0]), port)
}
