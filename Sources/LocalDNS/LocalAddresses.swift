// LocalAddresses.swift -- lists the addresses of this machine's interfaces.

import Glibc

/// The addresses of this machine.
public enum LocalAddresses {
  /// The IPv4 and IPv6 addresses of all interfaces, 4 or 16 octets each; empty if the kernel returns an error.
  public static func all() -> Set<[UInt8]> {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { return [] }
    defer { freeifaddrs(first) }
    var addresses: Set<[UInt8]> = []
    var next = first
    while let entry = next {
      next = entry.pointee.ifa_next
      guard let address = entry.pointee.ifa_addr else { continue }
      let start = UnsafeRawPointer(address)
      switch Int32(address.pointee.sa_family) {
      case AF_INET:
        let offset = MemoryLayout<sockaddr_in>.offset(of: \.sin_addr)!
        addresses.insert(Array(UnsafeRawBufferPointer(start: start + offset, count: 4)))
      case AF_INET6:
        let offset = MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)!
        addresses.insert(Array(UnsafeRawBufferPointer(start: start + offset, count: 16)))
      default: break
      }
    }
    return addresses
  }
}
