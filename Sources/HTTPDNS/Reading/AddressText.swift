// AddressText.swift -- parses textual addresses in replies.

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
