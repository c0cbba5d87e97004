// Location.swift -- the RDATA of LOC (RFC 1876): a geographical location with size and precision.

/// The RDATA of LOC, version 0.
struct Location {
  /// Size, horizontal and vertical precision, each a digit and a power of ten in centimetres.
  private var sizes: [UInt8] = [0x12, 0x16, 0x13]
  /// Thousandths of a second of arc; 2³¹ is the equator and the prime meridian.
  private let latitude: UInt32
  private let longitude: UInt32
  /// Centimetres above 100,000 m below the reference spheroid.
  private let altitude: UInt32

  private static let origin: UInt32 = 1 << 31
  private static let deepest = 10_000_000

  /// The RDATA.
  var octets: [UInt8] { [0] + sizes + bigEndian(latitude) + bigEndian(longitude) + bigEndian(altitude) }

  /// A location from RDATA; nil for an unknown version or a wrong length.
  init?(octets: ArraySlice<UInt8>) {
    guard octets.count == 16, octets.first == 0 else { return nil }
    let octets = Array(octets)
    func long(_ start: Int) -> UInt32 { octets[start..<(start + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
    sizes = Array(octets[1...3])
    (latitude, longitude, altitude) = (long(4), long(8), long(12))
  }

  /// A location from text: `d1 [m1 [s1]] N|S d2 [m2 [s2]] E|W alt[m] [siz[m] [hp[m] [vp[m]]]]` (section 3).
  init?(_ reader: inout TextReader) {
    guard let latitude = Location.angle(&reader, positive: UInt8(ascii: "N"), negative: UInt8(ascii: "S"), limit: 90),
      let longitude = Location.angle(&reader, positive: UInt8(ascii: "E"), negative: UInt8(ascii: "W"), limit: 180),
      let altitude = reader.word().flatMap({ Location.centimetres($0) }),
      let above = UInt32(exactly: altitude + Location.deepest)
    else { return nil }
    (self.latitude, self.longitude, self.altitude) = (latitude, longitude, above)
    reader.skipSpaces()
    var index = 0
    while !reader.isAtEnd {
      guard index < 3, let size = reader.word().flatMap({ Location.centimetres($0) }), size >= 0,
        let encoded = Location.encoded(size)
      else { return nil }
      sizes[index] = encoded
      index += 1
      reader.skipSpaces()
    }
  }

  /// The text with all optional parts.
  var text: String? {
    guard let sizes = sizes.mapAll(Location.decoded) else { return nil }
    let places = [
      Location.text(latitude, positive: "N", negative: "S"), Location.text(longitude, positive: "E", negative: "W"),
    ]
    let lengths = ([Int(altitude) - Location.deepest] + sizes).map { centimetres in
      "\(centimetres < 0 ? "-" : "")\(Location.decimal(abs(centimetres), places: 2))m"
    }
    return (places + lengths).joined(separator: " ")
  }

  /// Degrees, minutes and seconds, up to the letter of the direction.
  private static func angle(_ reader: inout TextReader, positive: UInt8, negative: UInt8, limit: Int) -> UInt32? {
    var total = 0
    for (index, unit) in [3_600_000, 60_000, 1000, 0].enumerated() {
      guard let word = reader.word() else { return nil }
      if index > 0, word.count == 1, let letter = word.first, letter & ~0x20 == positive || letter & ~0x20 == negative {
        guard total <= limit * 3_600_000 else { return nil }
        return letter & ~0x20 == positive ? origin + UInt32(total) : origin - UInt32(total)
      }
      guard unit > 0, let value = thousandths(word, places: index == 2 ? 3 : 0), value < (index == 0 ? 181_000 : 60_000)
      else { return nil }
      total += value * unit / 1000
    }
    return nil
  }

  private static func centimetres(_ word: ArraySlice<UInt8>) -> Int? {
    var digits = word
    if digits.last == UInt8(ascii: "m") { digits = digits.dropLast() }
    let isNegative = digits.first == hyphen
    if isNegative { digits = digits.dropFirst() }
    guard let value = thousandths(digits, places: 2) else { return nil }
    return isNegative ? -value / 10 : value / 10
  }

  /// A decimal number with up to `places` decimal places, times 1,000.
  private static func thousandths(_ digits: ArraySlice<UInt8>, places: Int) -> Int? {
    let parts = digits.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard let whole = decimalNumber(parts[0], as: UInt32.self) else { return nil }
    guard parts.count == 2 else { return Int(whole) * 1000 }
    guard parts[1].count <= places, let fraction = decimalNumber(parts[1], as: UInt32.self) else { return nil }
    return Int(whole) * 1000 + Int(fraction) * [1, 100, 10, 1][parts[1].count]
  }

  private static func text(_ angle: UInt32, positive: String, negative: String) -> String {
    let value = abs(Int(angle) - Int(origin))
    let seconds = decimal(value % 60_000, places: 3)
    return "\(value / 3_600_000) \(value / 60_000 % 60) \(seconds) \(angle >= origin ? positive : negative)"
  }

  private static func decimal(_ value: Int, places: Int) -> String {
    let unit = places == 3 ? 1000 : 100
    let fraction = String(value % unit)
    return "\(value / unit)." + String(repeating: "0", count: places - fraction.count) + fraction
  }

  /// A size as one octet: a digit and a power of ten.
  private static func encoded(_ centimetres: Int) -> UInt8? {
    var (digit, power) = (centimetres, 0)
    while digit > 9 { (digit, power) = (digit / 10, power + 1) }
    return power <= 9 ? UInt8(digit << 4 | power) : nil
  }

  private static func decoded(_ octet: UInt8) -> Int? {
    guard octet >> 4 <= 9, octet & 15 <= 9 else { return nil }
    return (0..<(octet & 15)).reduce(Int(octet >> 4)) { value, _ in value * 10 }
  }
}

extension Array {
  /// The transformed elements; nil if one of them is nil.
  fileprivate func mapAll<Value>(_ transform: (Element) -> Value?) -> [Value]? {
    let values = compactMap(transform)
    return values.count == count ? values : nil
  }
}
