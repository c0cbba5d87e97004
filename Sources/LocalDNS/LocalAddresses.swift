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
      guard let address = entry.pointee.ifa_addr else { continue }
      let length: Int
      switch Int32(UnsafeRawPointer(address).load(as: UInt16.self)) {
      case AF_INET: length = MemoryLayout<sockaddr_in>.size
      case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
      default: continue
      }
      if let address = SocketAddress(copying: UnsafeRawBufferPointer(start: address, count: length)) {
        addresses.insert(address)
      }
    }
    return addresses
  }
}
