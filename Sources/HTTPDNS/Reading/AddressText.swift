// AddressText.swift -- addresses as replies write them.

import Glibc

/// The octets of the address of one family that a text is; nil for anything else. Nothing is copied: the text ends with a
/// zero octet.
func addressOctets(_ text: UnsafePointer<CChar>, isIPv6: Bool) -> [UInt8]? {
  var octets = [UInt8](repeating: 0, count: isIPv6 ? 16 : 4)
  return inet_pton(isIPv6 ? AF_INET6 : AF_INET, text, &octets) == 1 ? octets : nil
}

/// The octets of the address of one family that a text is; nil for anything else.
func addressOctets(_ text: ArraySlice<UInt8>, isIPv6: Bool) -> [UInt8]? {
  // inet_pton() would stop at a zero octet and take what stands before it.
  guard text.count < Int(INET6_ADDRSTRLEN), !text.contains(0) else { return nil }
  return withUnsafeTemporaryAllocation(of: CChar.self, capacity: text.count + 1) { copy in
    for (index, octet) in text.enumerated() { copy[index] = CChar(bitPattern: octet) }
    copy[text.count] = 0
    return addressOctets(copy.baseAddress!, isIPv6: isIPv6)
  }
}
