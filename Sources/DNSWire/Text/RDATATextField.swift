// RDATATextField.swift -- the fields of presentation text, for types where they differ from those on the wire.

import Glibc

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
    func part(_ unit: UInt64, _ count: UInt64 = 100) -> Int32 { Int32(number / unit % count) }
    var date = tm()
    (date.tm_year, date.tm_mon, date.tm_mday) = (
      part(10_000_000_000, 10_000) - 1900, part(100_000_000) - 1, part(1_000_000)
    )
    (date.tm_hour, date.tm_min, date.tm_sec) = (part(10_000), part(100), part(1))
    let time = timegm(&date)
    // An impossible date has become another one.
    guard time >= 0, text.elementsEqual(SignatureTime.text(of: date).utf8) else { return nil }
    seconds = UInt32(truncatingIfNeeded: time)
  }

  /// `YYYYMMDDHHmmSS`.
  var text: String {
    var time = time_t(seconds)
    var date = tm()
    gmtime_r(&time, &date)
    return SignatureTime.text(of: date)
  }

  private static func text(of date: tm) -> String {
    let parts = [date.tm_mon + 1, date.tm_mday, date.tm_hour, date.tm_min, date.tm_sec]
    return parts.reduce(String(date.tm_year + 1900)) { $0 + ($1 < 10 ? "0" : "") + String($1) }
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
