// DoHSite.swift -- what the listeners for DNS over HTTPS serve: their hosts and their paths.

import CHotPath
import DNSWire
import FairShares

/// The hosts and paths of one kind of listener. Immutable; any thread; its checks do not allocate.
package final class DoHSite: Sendable {
  private let path: [UInt8]
  private let name: [UInt8]
  private let addresses: [IPNumber]
  private let hasJSON: Bool
  /// Whether requests must name an address or `localhost` where there is no name.
  private let isPlain: Bool
  private let hasEveryIPv4: Bool
  private let hasEveryIPv6: Bool

  /// - Parameters:
  ///   - path: `encrypted.path`: begins with a slash and does not end with one.
  ///   - hasJSON: `encrypted.json`.
  ///   - name: `encrypted.name`.
  ///   - addresses: those of all encrypted listeners, and `encrypted.published`. A wildcard stands for every address of its
  ///     family: a page in a browser cannot give itself the address of another machine as its host.
  ///   - isPlain: whether the listeners have no TLS.
  package init(path: String, hasJSON: Bool, name: DomainName?, addresses: [IPAddress], isPlain: Bool) {
    let wildcards = addresses.filter { $0.octets.allSatisfy { $0 == 0 } }
    self.path = Array(path.utf8)
    self.name = name.map { Array($0.lowercased.text.utf8.dropLast()) } ?? []
    self.addresses = addresses.filter { !wildcards.contains($0) }.map { IPNumber(octets: $0.unmapped.octets) }
    self.hasJSON = hasJSON
    self.isPlain = isPlain
    hasEveryIPv4 = wildcards.contains { !$0.isIPv6 }
    hasEveryIPv6 = wildcards.contains { $0.isIPv6 }
  }

  /// Whether a request with that `Host` or `:authority` is meant for this server: with a name, that or an address of the
  /// server's, with any port and in any case; without a name, anything over TLS, else an address or `localhost`.
  func serves(_ host: UnsafeBufferPointer<UInt8>) -> Bool {
    let host = RequestHost(host)
    guard !name.isEmpty else {
      return !isPlain || host.isEqual(("localhost" as StaticString).octets) || host.address != nil
    }
    if name.withUnsafeBufferPointer({ host.isEqual($0) }) { return true }
    guard let address = host.address else { return false }
    if address.isIPv6 ? hasEveryIPv6 : hasEveryIPv4 { return true }
    // `contains` allocates in a debug build.
    for index in addresses.indices where addresses[index] == address { return true }
    return false
  }

  /// What the path of a target leads to.
  func place(of target: UnsafeBufferPointer<UInt8>) -> DoHPlace {
    let end = target.offset(of: UInt8(ascii: "?"))
    let path = target.part(0, end)
    var place = self.path.withUnsafeBufferPointer { DoHPlace(path, after: $0, isJSON: false) }
    if !place.exists, hasJSON { place = DoHPlace(path, after: ("/resolve" as StaticString).octets, isJSON: true) }
    place.queryStart = end < target.count ? end + 1 : end
    return place
  }
}

/// What a target leads to.
struct DoHPlace {
  /// Whether the path is one of the server's.
  var exists = false
  /// Whether it is that of the JSON interface, not that of DNS messages.
  let isJSON: Bool
  /// What stands behind the path and a slash; empty if nothing does.
  var token = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
  /// Where the query string begins in the target; its end without one.
  var queryStart = 0

  /// - Parameter known: the path that the token stands behind.
  @_noAllocation
  init(_ path: UnsafeBufferPointer<UInt8>, after known: UnsafeBufferPointer<UInt8>, isJSON: Bool) {
    self.isJSON = isJSON
    guard path.begins(with: known) else { return }
    if path.count == known.count {
      exists = true
    } else if path[known.count] == UInt8(ascii: "/"), path.count > known.count + 1 {
      exists = true
      token = path.part(known.count + 1, path.count)
    }
  }
}

/// A host without its port (RFC 3986 section 3.2.2).
private struct RequestHost {
  /// Empty if the text has not the form of a host and a port.
  private var octets: UnsafeBufferPointer<UInt8>
  private var isBracketed: Bool

  @_noAllocation
  init(_ text: UnsafeBufferPointer<UInt8>) {
    isBracketed = text.count > 0 && text[0] == UInt8(ascii: "[")
    let end = text.offset(of: isBracketed ? UInt8(ascii: "]") : UInt8(ascii: ":"))
    octets = text.part(isBracketed ? 1 : 0, end)
    var port = end + (isBracketed ? 1 : 0)
    if port > text.count { octets = text.part(0, 0) }
    guard port < text.count else { return }
    if text[port] != UInt8(ascii: ":") { octets = text.part(0, 0) }
    port += 1
    while port < text.count {
      if text[port] &- UInt8(ascii: "0") >= 10 { octets = text.part(0, 0) }
      port += 1
    }
  }

  /// Whether it is that name, which is in lower case, in any case, with or without a final dot.
  @_noAllocation
  func isEqual(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
    guard !isBracketed, octets.count > 0 else { return false }
    let hasDot = octets[octets.count - 1] == UInt8(ascii: ".")
    return octets.part(0, octets.count - (hasDot ? 1 : 0)).isEqual(inAnyCase: name)
  }

  /// Nil for a name. An IPv4-mapped address is the IPv4 one.
  var address: IPNumber? {
    @_noAllocation get {
      guard let text = octets.baseAddress else { return nil }
      var number = IPNumber()
      number.isIPv6 = isBracketed
      guard hot_parse_address(text, octets.count, isBracketed ? 1 : 0, &number.high, &number.low) != 0 else {
        return nil
      }
      return number.unmapped
    }
  }
}
