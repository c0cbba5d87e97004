// LocalAddresses.swift -- lists the addresses of this machine's interfaces.

import EventLoop
import Glibc

/// The addresses of this machine.
public enum LocalAddresses {
  /// The IPv4 and IPv6 addresses of all interfaces, with port 0 and the scope of link-local ones; empty if the kernel
  /// returns an error.
  public static func all() -> Set<SocketAddress> {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { return [] }
    defer { freeifaddrs(first) }
    var addresses: Set<SocketAddress> = []
    var next = first
    while let entry = next {
      next = entry.pointee.ifa_next
      if let address = entry.pointee.ifa_addr.flatMap({ SocketAddress($0) }) { addresses.insert(address) }
    }
    return addresses
  }
}
