// Support.swift -- helpers that several tests of this module share.

import DNSWire

/// A name that the test guarantees to be valid; traps otherwise.
func name(_ text: String) -> DomainName { DomainName(text: text)! }

/// Octets from hexadecimal digits; spaces are ignored.
func octets(_ hexadecimal: String) -> [UInt8] {
  let digits = Array(hexadecimal.filter { $0 != " " })
  precondition(digits.count.isMultiple(of: 2))
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0...($0 + 1)]), radix: 16)! }
}

/// A response with one question, `a. A`, whose other sections are the octets that follow.
func response(answers: UInt8 = 0, authorities: UInt8 = 0, additionals: UInt8 = 0, _ sections: String) -> [UInt8] {
  [0x12, 0x34, 0x81, 0x80, 0, 1, 0, answers, 0, authorities, 0, additionals] + octets("0161 00 0001 0001")
    + octets(sections)
}
