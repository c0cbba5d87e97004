// Header.swift -- the second 16 bits of a message: its flags, OPCODE and RCODE (RFC 1035 section 4.1.1).

/// The flags of a message under their RFC mnemonics.
public struct Header: Hashable, Sendable {
  /// The 16 bits as on the wire.
  public var bits: UInt16

  /// The octets of a whole message header: ID, these bits, and four counts.
  public static let octetCount = 12

  /// The default is a query of OPCODE 0.
  public init(bits: UInt16 = 0) { self.bits = bits }

  /// Whether the message is a response.
  public var qr: Bool {
    get { self[0x8000] }
    set { self[0x8000] = newValue }
  }
  /// Authoritative answer.
  public var aa: Bool {
    get { self[0x0400] }
    set { self[0x0400] = newValue }
  }
  /// Truncated: nothing in the message may be used (RFC 2181 section 9).
  public var tc: Bool {
    get { self[0x0200] }
    set { self[0x0200] = newValue }
  }
  /// Recursion desired.
  public var rd: Bool {
    get { self[0x0100] }
    set { self[0x0100] = newValue }
  }
  /// Recursion available.
  public var ra: Bool {
    get { self[0x0080] }
    set { self[0x0080] = newValue }
  }
  /// The reserved bit; zero in messages that we send.
  public var z: Bool {
    get { self[0x0040] }
    set { self[0x0040] = newValue }
  }
  /// Authentic data (RFC 4035 section 3.2.3).
  public var ad: Bool {
    get { self[0x0020] }
    set { self[0x0020] = newValue }
  }
  /// Checking disabled (RFC 4035 section 3.2.2).
  public var cd: Bool {
    get { self[0x0010] }
    set { self[0x0010] = newValue }
  }
  /// The kind of query, 0…15; 0 is QUERY. Higher bits of a new value are dropped.
  public var opcode: UInt8 {
    get { UInt8(truncatingIfNeeded: bits >> 11) & 0x0F }
    set { bits = bits & ~0x7800 | UInt16(newValue & 0x0F) << 11 }
  }
  /// The low four bits of the response code; an OPT record may hold more (``Message/responseCode``).
  public var rcode: UInt8 {
    get { UInt8(truncatingIfNeeded: bits) & 0x0F }
    set { bits = bits & ~0x000F | UInt16(newValue & 0x0F) }
  }

  private subscript(mask: UInt16) -> Bool {
    get { bits & mask != 0 }
    set { bits = newValue ? bits | mask : bits & ~mask }
  }
}
