// ProxyHeader.swift -- the header by which a proxy says whose connection it passes on: version 2 of the PROXY protocol.
//
// The header is all that may be read of the socket before TLS: what follows it is the client's. So a reader asks for as many
// octets as the header is known to have, never for more, and the parser says how many these are.
//
// Specification: haproxy's proxy-protocol.txt, section 2.2. Only TCP over IPv4 and IPv6 is taken, and LOCAL, by which the
// proxy speaks for itself, as for its health checks. Anything else ends the connection: a header that is understood in part
// would let its sender choose what the limits and the log see.

import EventLoop

/// The beginning of a connection from a proxy.
public enum ProxyHeader: Hashable, Sendable {
  /// The header goes on: this many more octets certainly belong to it.
  case incomplete(missing: Int)
  /// The proxy passes on the connection of this client. The header has `length` octets.
  case client(SocketAddress, length: Int)
  /// The connection is the proxy's own (LOCAL). The header has `length` octets.
  case local(length: Int)
  /// The connection does not begin with a header that is accepted.
  case refused

  /// The most octets that a header may have, with its TLVs: what a sender may send at once (section 2).
  public static let longest = 536

  /// Signature, version with command, family with protocol, and the length of the rest.
  private static let fixedLength = 16
  private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

  /// Parses the octets that have been read of a connection so far. Octets after the header are not looked at.
  public init(_ octets: Span<UInt8>) {
    let fixedLength = ProxyHeader.fixedLength
    for position in 0..<min(octets.count, ProxyHeader.signature.count)
    where octets[position] != ProxyHeader.signature[position] {
      self = .refused
      return
    }
    guard octets.count >= fixedLength else {
      self = .incomplete(missing: fixedLength - octets.count)
      return
    }
    let length = fixedLength + Int(octets[14]) << 8 + Int(octets[15])
    guard length <= ProxyHeader.longest, let content = Content(octets[12], octets[13]),
      length >= fixedLength + content.addressLength
    else {
      self = .refused
      return
    }
    guard octets.count >= length else {
      self = .incomplete(missing: length - octets.count)
      return
    }
    switch content {
    case .own: self = .local(length: length)
    case .ipv4: self = ProxyHeader.client(octets, addressCount: 4, length)
    case .ipv6: self = ProxyHeader.client(octets, addressCount: 16, length)
    }
  }

  /// Source and destination address, then both ports (section 2.2). An IPv4 address in the form of IPv6 becomes itself again:
  /// rules about clients are written for that.
  private static func client(_ octets: Span<UInt8>, addressCount: Int, _ length: Int) -> ProxyHeader {
    let place = fixedLength + 2 * addressCount
    let port = UInt16(octets[place]) << 8 | UInt16(octets[place + 1])
    var address = (0..<addressCount).map { octets[fixedLength + $0] }
    if address.count == 16, address.starts(with: mapped) { address.removeFirst(12) }
    guard let client = SocketAddress(octets: address, port: port) else { return .refused }
    return .client(client, length: length)
  }

  /// The beginning of ::ffff:0:0/96 (RFC 4291 section 2.5.5.2).
  private static let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]

  /// What a header has behind its fixed part.
  private enum Content {
    /// Anything, to be skipped.
    case own
    case ipv4
    case ipv6

    /// - Parameters:
    ///   - command: the version, then LOCAL or PROXY.
    ///   - family: the address family, then the protocol.
    init?(_ command: UInt8, _ family: UInt8) {
      switch (command, family) {
      case (0x20, _): self = .own
      case (0x21, 0x11): self = .ipv4
      case (0x21, 0x21): self = .ipv6
      default: return nil
      }
    }

    /// The octets of both addresses and ports.
    var addressLength: Int {
      switch self {
      case .own: 0
      case .ipv4: 12
      case .ipv6: 36
      }
    }
  }
}
