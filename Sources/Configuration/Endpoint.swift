// Endpoint.swift -- an address with a port; a host that is an address or a name.

import DNSWire

/// An IPv4 or IPv6 address with a port.
public struct Endpoint: Hashable, Sendable {
  /// IPv4 or IPv6, without a zone index.
  public var address: IPAddress
  /// The port. 0, only for listening, lets the kernel choose.
  public var port: UInt16

  /// Creates an endpoint.
  public init(address: IPAddress, port: UInt16) {
    self.address = address
    self.port = port
  }

  /// An endpoint from `127.0.0.1:53` or `[::1]:53`; nil for anything else.
  public init?(text: String) { self.init(text: text, ports: 1...UInt16.max) }

  /// An endpoint to listen on, where port 0 lets the kernel choose.
  init?(listening text: String) { self.init(text: text, ports: 0...UInt16.max) }

  private init?(text: String, ports: ClosedRange<UInt16>) {
    guard let (host, port) = splitPort(text, in: ports), let port, case .address(let address) = Host(text: host) else {
      return nil
    }
    self.init(address: address, port: port)
  }

  /// An endpoint from an address with or without brackets and port; nil for anything else.
  public init?(text: String, defaultPort: UInt16) {
    guard let (host, port) = splitPort(text), case .address(let address) = Host(text: host) else { return nil }
    self.init(address: address, port: port ?? defaultPort)
  }
}

extension Endpoint {
  /// Whether a packet from this machine to this endpoint reaches one of its listening endpoints.
  func reaches(_ listening: [Endpoint]) -> Bool {
    listening.contains { own in
      let isWildcard = own.address.octets.allSatisfy { $0 == 0 } && own.address.isIPv6 == address.isIPv6
      return own.port == port && (own.address == address || isWildcard && address.isLoopback)
    }
  }
}

extension Endpoint: CustomStringConvertible {
  /// `127.0.0.1:53` or `[::1]:53`.
  public var description: String { "\(Host.address(address).urlText):\(port)" }
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
