// RDATATextField.swift -- the fields of presentation text, for types where they differ from those on the wire.

extension RDATAField {
  /// The fields of a type's text; nil for a type with only the generic form.
  ///
  /// Types that occur only here are opaque on the wire: their RDATA is passed on unchanged, even if it does not have the
  /// form known here (RFC 3597).
  static func textFields(of type: RecordType) -> [RDATAField]? {
    switch type.rawValue {
    case 19: [.string]  // X25
    case 20: [.words]  // ISDN
    case 22: [.whole(.nsap)]  // NSAP
    case 23: [.name]  // NSAP-PTR
    case 24, 46: [.type, .algorithm, .octet, .long, .time, .time, .short, .name, .base64]  // SIG RRSIG
    case 25, 57: [.short, .octet, .algorithm, .key]  // KEY RKEY
    case 27: [.string, .string, .string]  // GPOS
    case 29: [.whole(.location)]  // LOC
    case 31, 32: [.hexadecimal]  // EID NIMLOC
    case 37: [.certificateType, .short, .algorithm, .base64]  // CERT
    case 42: [.whole(.prefixes)]  // APL
    case 45: [.whole(.ipsecKey)]  // IPSECKEY
    case 47: [.name, .types]  // NSEC
    case 49, 61, 67, 68: [.base64]  // DHCID OPENPGPKEY HHIT BRID
    case 50: [.octet, .octet, .short, .salt, .hash, .types]  // NSEC3
    case 51: [.octet, .octet, .short, .salt]  // NSEC3PARAM
    case 55: [.whole(.hostIdentity)]  // HIP
    case 58: [.name, .name]  // TALINK
    case 62: [.long, .short, .types]  // CSYNC
    case 63: [.long, .octet, .octet, .hexadecimal]  // ZONEMD
    case 56, 99, 258, 261, 262, 263: [.strings]  // NINFO SPF AVC RESINFO WALLET CLA
    case 66: [.type, .octet, .short, .name]  // DSYNC
    case 104, 106: [.short, .locator]  // NID L64
    case 105: [.short, .ipv4]  // L32
    case 107: [.short, .name]  // LP
    case 108: [.hyphenated(6)]  // EUI48
    case 109: [.hyphenated(8)]  // EUI64
    case 256: [.short, .short, .quoted]  // URI
    case 260: [.whole(.relay)]  // AMTRELAY
    case 32_768, 32_769: [.short, .algorithm, .digestType, .hexadecimal]  // TA DLV
    default: fields(of: type)
    }
  }
}

/// A time of RRSIG: seconds since 1970 modulo 2³² (RFC 4034 section 3.1.5).
struct SignatureTime {
  let seconds: UInt32

  init(seconds: UInt32) { self.seconds = seconds }

  /// A time from `YYYYMMDDHHmmSS`, or from a number of seconds with at most ten digits.
  init?(text: ArraySlice<UInt8>) {
    guard text.count == 14 else {
      guard let seconds = decimalNumber(text, as: UInt32.self) else { return nil }
      self.seconds = seconds
      return
    }
    guard let number = decimalNumber(text, as: UInt64.self) else { return nil }
    let (year, month, day) = (
      Int(number / 10_000_000_000), Int(number / 100_000_000 % 100), Int(number / 1_000_000 % 100)
    )
    let (hour, minute, second) = (Int(number / 10_000 % 100), Int(number / 100 % 100), Int(number % 100))
    guard year >= 1970, (1...12).contains(month), day >= 1, hour < 24, minute < 60, second < 60,
      day <= SignatureTime.days(in: month, of: year)
    else { return nil }
    let days = SignatureTime.days(before: year) + (1..<month).reduce(0) { $0 + SignatureTime.days(in: $1, of: year) }
    seconds = UInt32(truncatingIfNeeded: ((days + day - 1) * 24 + hour) * 3600 + minute * 60 + second)
  }

  /// `YYYYMMDDHHmmSS`.
  var text: String {
    var days = Int(seconds / 86_400)
    var year = 1970 + days / 366
    while SignatureTime.days(before: year + 1) <= days { year += 1 }
    days -= SignatureTime.days(before: year)
    var month = 1
    while days >= SignatureTime.days(in: month, of: year) {
      days -= SignatureTime.days(in: month, of: year)
      month += 1
    }
    let parts = [month, days + 1, Int(seconds / 3600 % 24), Int(seconds / 60 % 60), Int(seconds % 60)]
    return parts.reduce(String(year)) { $0 + ($1 < 10 ? "0" : "") + String($1) }
  }

  private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

  private static func days(in month: Int, of year: Int) -> Int {
    switch month {
    case 2: isLeap(year) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// The days from the beginning of 1970 to the beginning of the year.
  private static func days(before year: Int) -> Int {
    let last = year - 1
    return (year - 1970) * 365 + (last / 4 - 1969 / 4) - (last / 100 - 1969 / 100) + (last / 400 - 1969 / 400)
  }
}

/// The types that NSEC, NSEC3 and CSYNC list (RFC 4034 section 4.1.2).
enum TypeBitmaps {
  /// The bitmaps of types given by mnemonic or generic name, in any order; nil for an unknown word.
  static func octets(_ words: [ArraySlice<UInt8>]) -> [UInt8]? {
    var types: Set<UInt16> = []
    for word in words {
      guard let type = RecordType(text: String(decoding: word, as: UTF8.self)) else { return nil }
      types.insert(type.rawValue)
    }
    var output: [UInt8] = []
    var block: [UInt8] = []
    var window: UInt16 = 0
    func close() {
      if !block.isEmpty { output += [UInt8(window), UInt8(block.count)] + block }
      block = []
    }
    for type in types.sorted() {
      if type >> 8 != window {
        close()
        window = type >> 8
      }
      let index = Int(type & 0xFF) / 8
      block += [UInt8](repeating: 0, count: index + 1 - min(block.count, index + 1))
      block[index] |= 0x80 >> (type & 7)
    }
    close()
    return output
  }

  /// The types in bitmaps; nil if a block is incomplete.
  static func types(_ octets: ArraySlice<UInt8>) -> [RecordType]? {
    var types: [RecordType] = []
    var rest = octets
    while !rest.isEmpty {
      guard let window = rest.popFirst(), let count = rest.popFirst(), rest.count >= Int(count) else { return nil }
      for (index, octet) in rest.prefix(Int(count)).enumerated() where index < 32 {
        for bit in 0..<8 where octet & (0x80 >> UInt8(bit)) != 0 {
          types.append(RecordType(UInt16(window) << 8 | UInt16(index * 8 + bit)))
        }
      }
      rest = rest.dropFirst(Int(count))
    }
    return types
  }
}
