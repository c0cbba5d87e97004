// RDATAField.swift -- the fields of each known type's RDATA: one table for wire, text and checks.

/// A field of RDATA, with its form on the wire and in presentation text.
enum RDATAField {
  /// A number of 1, 2 or 4 octets, in decimal.
  case octet, short, long
  /// A DNSSEC algorithm: one octet, a number or a mnemonic.
  case algorithm
  /// A digest algorithm of DS: one octet, a number or a mnemonic.
  case digestType
  /// An IPv4 or IPv6 address.
  case ipv4, ipv6
  /// A domain name. It may be compressed in received messages, for all types known here (RFC 3597 section 4 requires this
  /// for some of them only), but never in stored RDATA.
  case name
  /// A character-string (RFC 1035 section 3.3): a length octet and that many octets.
  case string
  /// One character-string or more, to the end.
  case strings
  /// A character-string of letters and digits, not empty, never quoted: the tag of CAA.
  case tag
  /// The rest, as one quoted string: the value of CAA, which may be longer than 255 octets.
  case quoted
  /// The rest, in hexadecimal or Base64; not empty in text.
  case hexadecimal, base64
  /// SvcParams (RFC 9460 section 2.2).
  case parameters
  /// The rest, without a text form: such RDATA is written in the generic form.
  case opaque

  // The following occur only in `textFields(of:)`.

  /// A record type: its mnemonic or generic name.
  case type
  /// A certificate's type (RFC 4398 section 2.1): a number or a mnemonic.
  case certificateType
  /// A time of RRSIG (RFC 4034 section 3.2).
  case time
  /// A length octet and that many octets: in hexadecimal, a hyphen if there are none (RFC 5155 section 3.3).
  case salt
  /// A length octet and that many octets: in Base32 (RFC 5155 section 3.3).
  case hash
  /// The rest: type bitmaps (RFC 4034 section 4.1.2).
  case types
  /// The rest, in Base64: a key, which may be missing.
  case key
  /// Eight octets: four groups of hexadecimal digits (RFC 6742).
  case locator
  /// A fixed number of octets, two digits each, separated by hyphens (RFC 7043).
  case hyphenated(Int)
  /// One or more separate character-strings, each a word or quoted.
  case words
  /// The rest, in the given form.
  case whole(RDATAForm)

  /// The fields of a type's RDATA on the wire; nil for a type that is treated as opaque.
  static func fields(of type: RecordType) -> [RDATAField]? {
    switch type.rawValue {
    case 1: [.ipv4]  // A
    case 28: [.ipv6]  // AAAA
    case 2, 3, 4, 5, 7, 8, 9, 12, 39: [.name]  // NS MD MF CNAME MB MG MR PTR DNAME
    case 6: [.name, .name, .long, .long, .long, .long, .long]  // SOA
    case 13: [.string, .string]  // HINFO
    case 14, 17: [.name, .name]  // MINFO RP
    case 15, 18, 21, 36: [.short, .name]  // MX AFSDB RT KX
    case 16: [.strings]  // TXT
    case 24, 46:  // SIG RRSIG
      [.short, .algorithm, .octet, .long, .long, .long, .short, .name, .opaque]
    case 26: [.short, .name, .name]  // PX
    case 30, 47: [.name, .opaque]  // NXT NSEC
    case 33: [.short, .short, .short, .name]  // SRV
    case 35: [.short, .short, .string, .string, .string, .name]  // NAPTR
    case 43, 59: [.short, .algorithm, .digestType, .hexadecimal]  // DS CDS
    case 44: [.octet, .octet, .hexadecimal]  // SSHFP
    case 48, 60: [.short, .octet, .algorithm, .base64]  // DNSKEY CDNSKEY
    case 52, 53: [.octet, .octet, .octet, .hexadecimal]  // TLSA SMIMEA
    case 64, 65: [.short, .name, .parameters]  // SVCB HTTPS
    case 257: [.octet, .tag, .quoted]  // CAA
    default: nil
    }
  }
}

extension WireReader {
  /// Steps over `length` octets of RDATA.
  ///
  /// - Returns: the RDATA with its names uncompressed; nil if they cannot have the form of their type.
  @_lifetime(self: copy self)
  mutating func rdata(_ type: RecordType, length: Int) throws(WireError) -> [UInt8]? {
    guard let fields = RDATAField.fields(of: type) else { return try array(length) }
    return try rdata(fields, length: length)
  }

  /// As above, for RDATA with the given fields.
  @_lifetime(self: copy self)
  mutating func rdata(_ fields: [RDATAField], length: Int) throws(WireError) -> [UInt8]? {
    try beginPart(length)
    defer { leavePart() }
    var output: [UInt8] = []
    output.reserveCapacity(length)
    do {
      for field in fields { try copy(field, to: &output) }
    } catch {
      guard error != .tooMuchWork else { throw error }
      return nil
    }
    return remaining == 0 ? output : nil
  }

  @_lifetime(self: copy self)
  private mutating func copy(_ field: RDATAField, to output: inout [UInt8]) throws(WireError) {
    switch field {
    case .octet, .algorithm, .digestType: try copy(1, to: &output)
    case .short, .type, .certificateType: try copy(2, to: &output)
    case .long, .ipv4, .time: try copy(4, to: &output)
    case .locator: try copy(8, to: &output)
    case .hyphenated(let count): try copy(count, to: &output)
    case .ipv6: try copy(16, to: &output)
    case .name: try copyName(to: &output)
    case .string, .tag, .salt, .hash: try copyString(to: &output)
    case .strings, .words: while remaining > 0 { try copyString(to: &output) }
    case .quoted, .hexadecimal, .base64, .opaque, .types, .key, .whole: try copy(remaining, to: &output)
    case .parameters: try copyParameters(to: &output)
    }
  }

  @_lifetime(self: copy self)
  private mutating func copyString(to output: inout [UInt8]) throws(WireError) {
    let length = try octet()
    output.append(length)
    try copy(Int(length), to: &output)
  }

  /// SvcParams: checks only the lengths. A resolver may treat them as opaque, even invalid ones (RFC 9460 section 4.3), and
  /// clients that know more keys than this code must get the zone's data.
  @_lifetime(self: copy self)
  private mutating func copyParameters(to output: inout [UInt8]) throws(WireError) {
    while remaining > 0 {
      let start = output.count
      try copy(4, to: &output)
      try copy(Int(output[start + 2]) << 8 | Int(output[start + 3]), to: &output)
    }
  }
}

func isLetterOrDigit(_ octet: UInt8) -> Bool { asciiLowercase(octet) &- 97 < 26 || isDigit(octet) }
