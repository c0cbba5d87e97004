// TextEncodings.swift -- digests and text encodings of octets.

import CCrypto

enum DigestAlgorithm: Sendable {
  case md5, sha256

  fileprivate var handle: OpaquePointer? { self == .md5 ? EVP_md5() : EVP_sha256() }
}

func digest(_ octets: [UInt8], _ algorithm: DigestAlgorithm) -> [UInt8] {
  digestOctets { EVP_Digest(octets, octets.count, $0, $1, algorithm.handle, nil) == 1 }
}

/// The HMAC of the octets (RFC 2104).
func hmac(_ octets: [UInt8], key: [UInt8], _ algorithm: DigestAlgorithm) -> [UInt8] {
  digestOctets { HMAC(algorithm.handle, key, Int32(key.count), octets, octets.count, $0, $1) != nil }
}

private func digestOctets(_ compute: (UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt32>) -> Bool) -> [UInt8] {
  [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
    var length: UInt32 = 0
    guard compute(buffer.baseAddress, &length) else { preconditionFailure("libcrypto lacks a digest") }
    count = Int(length)
  }
}

/// Decodes hexadecimal digits in either case; nil for any other character and for an odd number of digits.
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

/// Parses seconds since 1970, decimal digits only; nil for any other text.
func secondsText(_ octets: some Collection<UInt8>) -> Int64? {
  guard !octets.isEmpty, octets.allSatisfy({ $0 &- 48 < 10 }) else { return nil }
  return Int64(String(decoding: octets, as: UTF8.self))
}
