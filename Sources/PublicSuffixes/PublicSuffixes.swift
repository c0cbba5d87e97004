// PublicSuffixes.swift -- where names are sold to anybody: the domain that a name's owner has.
//
// The list is libpsl's, which libcurl brings along anyway. Immutable and safe on every thread; allocates nothing.

import CPublicSuffix
import DNSWire

/// The public suffix list (publicsuffix.org), its registries' part only: `com`, `com.cn`, `co.uk`.
public enum PublicSuffixes {
  /// Whether anybody may register names directly below `name`: a top level domain, or a name of the list. The root is one.
  public static func contains(_ name: DomainName) -> Bool {
    name.octets.withUnsafeBufferPointer { contains($0, from: 0) }
  }

  /// Where the domain of a name begins, as an offset into its octets: its last two labels, three where those two are a
  /// public suffix; below `in-addr.arpa` and `ip6.arpa` the network of 16 or 32 bits. A shorter name is its own domain.
  ///
  /// - Parameter octets: an uncompressed name in wire form, in lower case.
  /// - Complexity: O(octets)
  public static func domainStart(_ octets: UnsafeBufferPointer<UInt8>) -> Int {
    var starts = InlineArray<128, UInt8>(repeating: 0)
    var labels = 0
    var position = 0
    while position < octets.count, octets[position] != 0 {
      starts[labels] = UInt8(truncatingIfNeeded: position)
      labels += 1
      position += Int(octets[position]) + 1
    }
    func start(_ count: Int) -> Int { count < labels ? Int(starts[labels - count]) : 0 }
    let lastTwo = start(2)
    guard labels > 2 else { return lastTwo }
    if isSuffix(octets, from: lastTwo, inAddrArpa) { return start(2 + 2) }
    if isSuffix(octets, from: lastTwo, ip6Arpa) { return start(2 + 8) }
    return contains(octets, from: lastTwo) ? start(3) : lastTwo
  }

  /// The domain of a name: what `domainStart` leaves of it.
  public static func domain(of name: DomainName) -> DomainName {
    let octets = name.lowercased.octets
    let start = octets.withUnsafeBufferPointer { domainStart($0) }
    return DomainName(unchecked: Array(octets[start...]))
  }

  private static let inAddrArpa = DomainName(text: "in-addr.arpa")!.octets
  private static let ip6Arpa = DomainName(text: "ip6.arpa")!.octets

  private static func isSuffix(_ octets: UnsafeBufferPointer<UInt8>, from start: Int, _ name: [UInt8]) -> Bool {
    octets.count - start == name.count && octets[start...].elementsEqual(name)
  }

  /// Without the list, which a build of libpsl may lack, only a top level domain is one.
  private static func contains(_ octets: UnsafeBufferPointer<UInt8>, from start: Int) -> Bool {
    // The name as the list has it: text without the final dot. What is no host name is in no list.
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: NameLimit.name + 1) { text in
      var length = 0
      var position = start
      let isTopLevel = octets[start] == 0 || octets[start + Int(octets[start]) + 1] == 0
      guard !isTopLevel else { return true }
      while octets[position] != 0 {
        if length > 0 {
          text[length] = CChar(bitPattern: UInt8(ascii: "."))
          length += 1
        }
        for octet in octets[(position + 1)...(position + Int(octets[position]))] {
          guard octet > 0x20, octet < 0x7F, octet != UInt8(ascii: ".") else { return false }
          text[length] = CChar(bitPattern: asciiLowercase(octet))
          length += 1
        }
        position += Int(octets[position]) + 1
      }
      text[length] = 0
      guard let list = psl_builtin() else { return false }
      return psl_is_public_suffix2(list, text.baseAddress!, PSL_TYPE_ICANN) != 0
    }
  }
}
