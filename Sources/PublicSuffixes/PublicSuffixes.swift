// PublicSuffixes.swift -- finds the registered domain of a name by the public suffix list.
//
// The list is libpsl's, which libcurl depends on anyway. Immutable; any thread; only `SuffixFilter` allocates, once.

import CPublicSuffix
import DNSWire
import Glibc
import Synchronization

/// The ICANN section of the public suffix list (publicsuffix.org): `com`, `com.cn`, `co.uk`.
public enum PublicSuffixes {
  /// Whether `name` is a public suffix: the root, a top-level domain, or a name of the list.
  public static func contains(_ name: DomainName) -> Bool {
    name.octets.withUnsafeBufferPointer { contains($0, from: 0) }
  }

  /// Whether a name is in the list, the section of private domains (`github.io`) included, or a top-level domain.
  ///
  /// - Parameter text: the name in lower case without its final dot; a zero octet ends it.
  public static func contains(text: UnsafePointer<CChar>) -> Bool {
    if strchr(text, 0x2E) == nil { return true }
    guard SuffixFilter.shared?.mayContain(text) ?? true, let list = psl_builtin() else { return false }
    return psl_is_public_suffix2(list, text, PSL_TYPE_ANY) != 0
  }

  /// The offset of a name's registered domain: the last two labels, or three if those two are a public suffix. Below
  /// `in-addr.arpa` and `ip6.arpa`, it is the network of 16 or 32 bits. A shorter name is its own domain.
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
    return SuffixMemo.shared.contains(octets, from: lastTwo) ? start(3) : lastTwo
  }

  /// The registered domain of a name; see `domainStart`.
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

  /// Looks a suffix up in libpsl's list. Without a list, which some builds of libpsl lack, only top-level domains are public suffixes.
  fileprivate static func contains(_ octets: UnsafeBufferPointer<UInt8>, from start: Int) -> Bool {
    // The list has names as text without the final dot. Names with special octets are not in it.
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

/// Whether the last two labels of names are public suffixes: libpsl takes some 4,500 instructions to say so.
private final class SuffixMemo: Sendable {
  static let shared = SuffixMemo()

  /// Keyed hashes of suffixes, each with the answer in its last bit; 0 in an empty cell. Because the hash is keyed, an
  /// owner of domains cannot choose which suffix another one displaces.
  private let cells = InlineArray<1024, Atomic<UInt64>> { _ in Atomic(0) }

  func contains(_ octets: UnsafeBufferPointer<UInt8>, from start: Int) -> Bool {
    // SipHash with the random seed of the process.
    var hasher = Hasher()
    hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(octets)[start...]))
    let hash = UInt64(bitPattern: Int64(hasher.finalize())) | 3
    let place = Int(truncatingIfNeeded: (hash >> 2) % UInt64(cells.count))
    let known = cells[place].load(ordering: .relaxed)
    if known | 1 == hash { return known & 1 != 0 }
    let isSuffix = PublicSuffixes.contains(octets, from: start)
    cells[place].store(isSuffix ? hash : hash & ~1, ordering: .relaxed)
    return isSuffix
  }
}
