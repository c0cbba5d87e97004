// TextEncodings.swift -- what no other module computes: HMAC with MD5, and times as text.

import Ciphers

/// HMAC with MD5 (RFC 2104).
func hmacMD5(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
  let short = key.count > 64 ? Digest.md5(key) : key
  let block = short + [UInt8](repeating: 0, count: 64 - short.count)
  return Digest.md5(block.map { $0 ^ 0x5C } + Digest.md5(block.map { $0 ^ 0x36 } + message))
}

/// Parses seconds since 1970, decimal digits only; nil for any other text.
func secondsText(_ octets: some Collection<UInt8>) -> Int64? {
  guard !octets.isEmpty, octets.allSatisfy({ $0 &- 48 < 10 }) else { return nil }
  return Int64(String(decoding: octets, as: UTF8.self))
}
