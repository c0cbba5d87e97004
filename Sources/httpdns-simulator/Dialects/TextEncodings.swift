// TextEncodings.swift -- digests, and how octets travel as text.

import CCrypto

/// A digest of libcrypto's, such as `EVP_sha256()`.
func digest(_ octets: [UInt8], _ algorithm: OpaquePointer?) -> [UInt8] {
  var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
  var length: UInt32 = 0
  guard EVP_Digest(octets, octets.count, &digest, &length, algorithm, nil) == 1 else {
    preconditionFailure("libcrypto lacks a digest")
  }
  return Array(digest.prefix(Int(length)))
}

/// A message authentication code (RFC 2104).
func hmac(_ octets: [UInt8], key: [UInt8], _ algorithm: OpaquePointer?) -> [UInt8] {
  var code = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
  var length: UInt32 = 0
  guard HMAC(algorithm, key, Int32(key.count), octets, octets.count, &code, &length) != nil else {
    preconditionFailure("libcrypto lacks a digest")
  }
  return Array(code.prefix(Int(length)))
}

/// The octets of hexadecimal digits in either case; nil for anything else and for half an octet.
func hexDecoded(_ text: some Collection<UInt8>) -> [UInt8]? {
  guard text.count % 2 == 0 else { return nil }
  var octets: [UInt8] = []
  octets.reserveCapacity(text.count / 2)
  var input = text.makeIterator()
  while let first = input.next(), let second = input.next() {
    guard let high = hexDigit(first), let low = hexDigit(second) else { return nil }
    octets.append(high << 4 | low)
  }
  return octets
}

/// Base64 with padding (RFC 4648 section 4).
func base64(_ octets: [UInt8]) -> String {
  let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  var text: [UInt8] = []
  for start in stride(from: 0, to: octets.count, by: 3) {
    let part = octets[start..<min(start + 3, octets.count)]
    let bits = part.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - part.count))
    for place in 0..<4 {
      text.append(place <= part.count ? alphabet[Int(bits >> UInt32(18 - 6 * place) & 63)] : UInt8(ascii: "="))
    }
  }
  return String(decoding: text, as: UTF8.self)
}

/// Seconds since 1970 from decimal digits alone; nil for anything else.
func secondsText(_ octets: some Collection<UInt8>) -> Int64? {
  guard !octets.isEmpty, octets.allSatisfy({ $0 &- 48 < 10 }) else { return nil }
  return Int64(String(decoding: octets, as: UTF8.self))
}
