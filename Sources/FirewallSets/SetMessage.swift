// SetMessage.swift -- a set or a list of its elements as libnftnl has it.

import Configuration
import CFirewall
import DNSWire
import EventLoop

/// Owns a set of libnftnl with its elements.
final class SetMessage {
  let pointer: OpaquePointer

  /// A set without elements.
  init(_ name: FirewallSetName) {
    pointer = nftnl_set_alloc()!
    nftnl_set_set_str(pointer, UInt16(NFTNL_SET_TABLE.rawValue), name.table)
    nftnl_set_set_str(pointer, UInt16(NFTNL_SET_NAME.rawValue), name.set)
  }

  /// Parses `NFT_MSG_NEWSET`; nil if it is malformed.
  init?(set message: UnsafePointer<nlmsghdr>) {
    pointer = nftnl_set_alloc()!
    guard nftnl_set_nlmsg_parse(message, pointer) == 0 else { return nil }
  }

  /// Parses `NFT_MSG_NEWSETELEM`; nil if it is malformed.
  init?(elements message: UnsafePointer<nlmsghdr>) {
    pointer = nftnl_set_alloc()!
    guard nftnl_set_elems_nlmsg_parse(message, pointer) == 0 else { return nil }
  }

  deinit { nftnl_set_free(pointer) }

  /// What the set accepts.
  ///
  /// - Throws: the reason for which it accepts no single addresses.
  func description() throws(SetFailure) -> SetDescription {
    let flags = nftnl_set_get_u32(pointer, UInt16(NFTNL_SET_FLAGS.rawValue))
    let type = nftnl_set_get_u32(pointer, UInt16(NFTNL_SET_KEY_TYPE.rawValue))
    let octets = nftnl_set_get_u32(pointer, UInt16(NFTNL_SET_KEY_LEN.rawValue))
    func has(_ flag: nft_set_flags) -> Bool { flags & flag.rawValue != 0 }
    guard !has(NFT_SET_MAP), !has(NFT_SET_OBJECT) else { throw .map }
    guard !has(NFT_SET_CONSTANT) else { throw .constant }
    let key: SetDescription.Key
    switch (type, octets) {
    case (KeyTypes.ipv4, 4): key = .ipv4
    case (KeyTypes.ipv6, 16): key = .ipv6
    default: throw .otherKey(KeyTypes.text(type))
    }
    return SetDescription(key, hasTimeouts: has(NFT_SET_TIMEOUT), isInterval: has(NFT_SET_INTERVAL))
  }

  /// The first element; nil if there is none.
  var firstElement: (key: [UInt8], life: ElementLife)? {
    guard let iterator = nftnl_set_elems_iter_create(pointer) else { return nil }
    defer { nftnl_set_elems_iter_destroy(iterator) }
    guard let element = nftnl_set_elems_iter_cur(iterator) else { return nil }
    var count: UInt32 = 0
    guard let key = nftnl_set_elem_get(element, UInt16(NFTNL_SET_ELEM_KEY), &count) else { return nil }
    let octets = Array(UnsafeRawBufferPointer(start: key, count: Int(count)))
    let expiration = UInt16(NFTNL_SET_ELEM_EXPIRATION)
    guard nftnl_set_elem_is_set(element, expiration) else { return (octets, .forever) }
    return (octets, .expires(after: .milliseconds(nftnl_set_elem_get_u64(element, expiration))))
  }

  /// Appends an element of an address, in a set of intervals with the element that ends it.
  func add(_ element: SetElement, isInterval: Bool) {
    add(element.address.octets, timeout: element.timeout)
    // After the last address of all there is none that could end it.
    if isInterval, let next = element.address.next { add(next, isEnd: true) }
  }

  /// Appends an element. The end of an interval is the first address behind it and has no timeout of its own.
  func add(_ key: [UInt8], timeout: Duration? = nil, isEnd: Bool = false) {
    let element = nftnl_set_elem_alloc()!
    nftnl_set_elem_set(element, UInt16(NFTNL_SET_ELEM_KEY), key, UInt32(key.count))
    if let timeout {
      nftnl_set_elem_set_u64(element, UInt16(NFTNL_SET_ELEM_TIMEOUT), UInt64(timeout.nanoseconds / 1_000_000))
    }
    if isEnd { nftnl_set_elem_set_u32(element, UInt16(NFTNL_SET_ELEM_FLAGS), NFT_SET_ELEM_INTERVAL_END.rawValue) }
    nftnl_set_elem_add(pointer, element)
  }
}

/// nft(8)'s numbers of key types, which the kernel keeps and does not interpret.
private enum KeyTypes {
  static let ipv4: UInt32 = 7
  static let ipv6: UInt32 = 8

  private static let names: [UInt32: String] = [
    ipv4: "ipv4_addr", ipv6: "ipv6_addr", 9: "ether_addr", 12: "inet_proto", 13: "inet_service", 19: "mark",
    41: "ifname",
  ]

  /// `ipv4_addr . inet_service`: a concatenation has 6 bits for each of its types.
  static func text(_ type: UInt32) -> String {
    let parts = stride(from: UInt32(24), through: 0, by: -6).map { type >> $0 & 0x3F }.filter { $0 != 0 }
    return parts.isEmpty ? "unknown" : parts.map { names[$0] ?? "type \($0)" }.joined(separator: " . ")
  }
}

extension IPAddress {
  /// The octets of the address behind it; nil after the last one.
  var next: [UInt8]? {
    var octets = octets
    for index in octets.indices.reversed() {
      octets[index] &+= 1
      if octets[index] != 0 { return octets }
    }
    return nil
  }
}
