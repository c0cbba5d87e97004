// ForwardedClient.swift -- the client that a proxy names in X-Forwarded-For.

import DNSWire

/// The last element of an `X-Forwarded-For` field: the one that the nearest proxy has added. What stands before it came with
/// the request, and anyone can write it.
public enum ForwardedClient {
  /// The address in the value of a request's last `X-Forwarded-For` field; an IPv4 address in the form of IPv6 as itself. Nil
  /// if the last element is not an address alone, so that the request cannot be judged.
  public static func last(in value: some BidirectionalCollection<UInt8>) -> IPAddress? {
    let comma = value.lastIndex(of: UInt8(ascii: ","))
    var element = value[(comma.map { value.index(after: $0) } ?? value.startIndex)...]
    while let first = element.first, isBlank(first) { element.removeFirst() }
    while let last = element.last, isBlank(last) { element.removeLast() }
    return IPAddress(text: String(decoding: element, as: UTF8.self))?.unmapped
  }

  /// Optional white space of HTTP (RFC 9110 section 5.6.3).
  private static func isBlank(_ octet: UInt8) -> Bool { octet == UInt8(ascii: " ") || octet == UInt8(ascii: "\t") }
}
