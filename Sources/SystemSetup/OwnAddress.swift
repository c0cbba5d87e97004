// OwnAddress.swift -- tells this machine's own addresses from those of other machines.

import Glibc

/// The addresses at which programs of this machine can listen.
public enum OwnAddress {
  /// Whether an address, without a zone, is one at which a program of this machine can listen.
  public static func contains(_ text: String) -> Bool {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    if inet_pton(AF_INET, text, &address.sin_addr) == 1 { return canBind(&address, AF_INET) }
    var address6 = sockaddr_in6()
    address6.sin6_family = sa_family_t(AF_INET6)
    return inet_pton(AF_INET6, text, &address6.sin6_addr) == 1 && canBind(&address6, AF_INET6)
  }

  private static func canBind<Address>(_ address: inout Address, _ family: Int32) -> Bool {
    let descriptor = socket(family, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, .init(__sockaddr__: $0), socklen_t(MemoryLayout<Address>.size))
      }
    } == 0
  }
}
