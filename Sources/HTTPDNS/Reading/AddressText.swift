// AddressText.swift -- parses textual addresses in replies, and what surrounds them.

import Glibc

/// Parses an address of one family; nil for any other text. Copies nothing: the text must end with a NUL.
func addressOctets(_ text: UnsafePointer<CChar>, isIPv6: Bool) -> [UInt8]? {
  var octets = [UInt8](repeating: 0, count: isIPv6 ? 16 : 4)
  return inet_pton(isIPv6 ? AF_INET6 : AF_INET, text, &octets) == 1 ? octets : nil
}

/// Parses an address of one family; nil for any other text.
func addressOctets(_ text: ArraySlice<UInt8>, isIPv6: Bool) -> [UInt8]? {
  // inet_pton() would stop at a NUL and accept the text before it.
  guard text.count < Int(INET6_ADDRSTRLEN), !text.contains(0) else { return nil }
  return withUnsafeTemporaryAllocation(of: CChar.self, capacity: text.count + 1) { copy in
    for (index, octet) in text.enumerated() { copy[index] = CChar(bitPattern: octet) }
    copy[text.count] = 0
    return addressOctets(copy.baseAddress!, isIPv6: isIPv6)
  }
}

/// Removes leading and trailing white space.
func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
  let start = text.drop(while: isWhiteSpace)
  guard let end = start.lastIndex(where: { !isWhiteSpace($0) }) else { return [] }
  return start[...end]
}

func isWhiteSpace(_ octet: UInt8) -> Bool {
  octet == UInt8(ascii: " ") || (UInt8(ascii: "\t")...UInt8(ascii: "\r")).contains(octet)
}
