// BaseEncodings.swift -- hexadecimal and Base64 (RFC 4648), strict both ways.

private let hexadecimalDigits = Array("0123456789abcdef".utf8)
private let base64Digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
private let padding = UInt8(ascii: "=")

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

/// The octets of pairs of digits in any case; nil for an odd number of them or anything else.
func decodeHexadecimal(_ digits: [UInt8]) -> [UInt8]? {
  guard digits.count.isMultiple(of: 2) else { return nil }
  var output: [UInt8] = []
  output.reserveCapacity(digits.count / 2)
  for index in stride(from: 0, to: digits.count, by: 2) {
    guard let high = hexadecimalDigits.firstIndex(of: asciiLowercase(digits[index])),
      let low = hexadecimalDigits.firstIndex(of: asciiLowercase(digits[index + 1]))
    else { return nil }
    output.append(UInt8(high << 4 | low))
  }
  return output
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

/// The octets of padded Base64; nil for missing padding, bits behind the last octet, or anything else.
func decodeBase64(_ text: [UInt8]) -> [UInt8]? {
  guard text.count.isMultiple(of: 4) else { return nil }
  let paddingCount = text.reversed().prefix { $0 == padding }.count
  guard paddingCount <= 2 else { return nil }
  var output: [UInt8] = []
  output.reserveCapacity(text.count / 4 * 3)
  var bits = 0
  var bitCount = 0
  for digit in text.dropLast(paddingCount) {
    guard let value = base64Digits.firstIndex(of: digit) else { return nil }
    bits = (bits << 6 | value) & 0xFFFF
    bitCount += 6
    guard bitCount >= 8 else { continue }
    bitCount -= 8
    output.append(UInt8(truncatingIfNeeded: bits >> bitCount))
  }
  return bits & (1 << bitCount - 1) == 0 ? output : nil
}
