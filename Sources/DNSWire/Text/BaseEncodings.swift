// BaseEncodings.swift -- hexadecimal, Base32 and Base64 (RFC 4648), strict both ways.

private let hexadecimalDigits = Array("0123456789abcdef".utf8)
private let base32Digits = Array("0123456789abcdefghijklmnopqrstuv".utf8)
private let base64Digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
private let padding = UInt8(ascii: "=")

/// The value of each octet as a digit; `noDigit` if it is none. A search through the digits would take tens of comparisons
/// for each of up to 500,000 octets.
private let base32Values = values(of: base32Digits, ignoringCase: true)
private let base64Values = values(of: base64Digits, ignoringCase: false)
private let noDigit = UInt8.max

private func values(of digits: [UInt8], ignoringCase: Bool) -> [UInt8] {
  var values = [UInt8](repeating: noDigit, count: 256)
  for (value, digit) in digits.enumerated() {
    values[Int(digit)] = UInt8(value)
    // An upper-case letter is the lower-case one without bit 0x20.
    if ignoringCase, digit >= UInt8(ascii: "a") { values[Int(digit & ~0x20)] = UInt8(value) }
  }
  return values
}

/// Two lower-case digits for each octet.
func hexadecimal(_ octets: ArraySlice<UInt8>) -> String {
  var output: [UInt8] = []
  output.reserveCapacity(octets.count * 2)
  for octet in octets {
    output.append(hexadecimalDigits[Int(octet >> 4)])
    output.append(hexadecimalDigits[Int(octet & 15)])
  }
  return String(decoding: output, as: UTF8.self)
}

/// The octets of pairs of digits in any case; nil for an odd number of digits or an invalid one.
func decodeHexadecimal(_ digits: [UInt8]) -> [UInt8]? {
  guard digits.count.isMultiple(of: 2) else { return nil }
  var output: [UInt8] = []
  output.reserveCapacity(digits.count / 2)
  for index in stride(from: 0, to: digits.count, by: 2) {
    let high = base32Values[Int(digits[index])]
    let low = base32Values[Int(digits[index + 1])]
    guard high < 16, low < 16 else { return nil }
    output.append(high << 4 | low)
  }
  return output
}

/// Base32 with the extended hexadecimal alphabet (RFC 4648 section 7), in lower case and without padding, as in NSEC3
/// (RFC 5155 section 3.3).
func base32Hexadecimal(_ octets: ArraySlice<UInt8>) -> [UInt8] {
  var output: [UInt8] = []
  output.reserveCapacity((octets.count * 8 + 4) / 5)
  var bits = 0
  var bitCount = 0
  for octet in octets {
    bits = (bits << 8 | Int(octet)) & 0xFFFF
    bitCount += 8
    while bitCount >= 5 {
      bitCount -= 5
      output.append(base32Digits[bits >> bitCount & 31])
    }
  }
  if bitCount > 0 { output.append(base32Digits[bits << (5 - bitCount) & 31]) }
  return output
}

/// The octets of unpadded Base32 in any case; nil for an invalid number of digits, nonzero trailing bits, or an invalid
/// digit.
func decodeBase32Hexadecimal(_ digits: some Collection<UInt8>) -> [UInt8]? {
  var output: [UInt8] = []
  output.reserveCapacity(digits.count * 5 / 8)
  var bits = 0
  var bitCount = 0
  for digit in digits {
    let value = base32Values[Int(digit)]
    guard value != noDigit else { return nil }
    bits = (bits << 5 | Int(value)) & 0xFFFF
    bitCount += 5
    guard bitCount >= 8 else { continue }
    bitCount -= 8
    output.append(UInt8(truncatingIfNeeded: bits >> bitCount))
  }
  return bitCount < 5 && bits & (1 << bitCount - 1) == 0 ? output : nil
}

/// Padded Base64 of the standard alphabet.
func base64(_ octets: ArraySlice<UInt8>) -> [UInt8] {
  var output: [UInt8] = []
  output.reserveCapacity((octets.count + 2) / 3 * 4)
  var rest = octets
  while !rest.isEmpty {
    let group = rest.prefix(3)
    rest = rest.dropFirst(3)
    let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
    for sextet in 0..<4 {
      output.append(sextet <= group.count ? base64Digits[bits >> (18 - 6 * sextet) & 63] : padding)
    }
  }
  return output
}

/// The octets of padded Base64; nil for missing padding, nonzero trailing bits, or an invalid digit.
func decodeBase64(_ text: [UInt8]) -> [UInt8]? {
  guard text.count.isMultiple(of: 4) else { return nil }
  let paddingCount = text.reversed().prefix { $0 == padding }.count
  guard paddingCount <= 2 else { return nil }
  var output: [UInt8] = []
  output.reserveCapacity(text.count / 4 * 3)
  var bits = 0
  var bitCount = 0
  for digit in text.dropLast(paddingCount) {
    let value = base64Values[Int(digit)]
    guard value != noDigit else { return nil }
    bits = (bits << 6 | Int(value)) & 0xFFFF
    bitCount += 6
    guard bitCount >= 8 else { continue }
    bitCount -= 8
    output.append(UInt8(truncatingIfNeeded: bits >> bitCount))
  }
  return bits & (1 << bitCount - 1) == 0 ? output : nil
}
