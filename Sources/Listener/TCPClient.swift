// TCPClient.swift -- whom a connection is counted for.

import EventLoop
import Glibc

/// Who counts as one client: an IPv4 address, or the /56 of an IPv6 address, which is what one customer gets.
package struct TCPClient: Hashable {
  /// An octet that tells the families apart, and the octets that count.
  private let value: UInt64

  /// An IPv4 address in IPv6 form, as a socket of both families has it, is an IPv4 address.
  package init(_ address: SocketAddress) {
    let octets = address.octets
    let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
    let counting: ArraySlice<UInt8>
    if octets.count == 4 {
      counting = octets[...]
    } else {
      counting = octets.starts(with: mapped) ? octets.suffix(4) : octets.prefix(7)
    }
    value = counting.reduce(UInt64(counting.count)) { $0 << 8 | UInt64($1) }
  }
}
