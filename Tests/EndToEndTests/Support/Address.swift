// Address.swift -- an address with a port, as system calls take it.

import Foundation

/// An IPv4 or IPv6 address with a port.
struct Address: Hashable, Sendable, CustomStringConvertible {
  let host: String
  let port: UInt16

  init(_ host: String, _ port: UInt16) { (self.host, self.port) = (host, port) }

  /// An address from `127.0.0.1:53` or `[::1]:53`.
  init?(text: some StringProtocol) {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    self.init(text[..<colon].trimmingCharacters(in: CharacterSet(charactersIn: "[]")), port)
  }

  /// The address that a system call has filled in.
  init(_ storage: sockaddr_storage) {
    var storage = storage
    var text = [CChar](repeating: 0, count: 64)
    let isIPv6 = Int32(storage.ss_family) == AF_INET6
    let port = withUnsafeBytes(of: &storage) { octets -> UInt16 in
      inet_ntop(Int32(isIPv6 ? AF_INET6 : AF_INET), octets.baseAddress! + (isIPv6 ? 8 : 4), &text, 64)
      return UInt16(octets[2]) << 8 | UInt16(octets[3])
    }
    self.init(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self), port)
  }

  var isIPv6: Bool { host.contains(":") }
  var family: Int32 { isIPv6 ? AF_INET6 : AF_INET }
  var description: String { isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)" }

  /// The same port at another host.
  func at(_ host: String) -> Address { Address(host, port) }

  func withSockaddr<Value>(_ body: (__CONST_SOCKADDR_ARG, socklen_t) -> Value) -> Value {
    var storage = sockaddr_storage()
    storage.ss_family = sa_family_t(family)
    withUnsafeMutableBytes(of: &storage) { octets in
      octets[2] = UInt8(port >> 8)
      octets[3] = UInt8(port & 0xFF)
      precondition(inet_pton(family, host, octets.baseAddress! + (isIPv6 ? 8 : 4)) == 1, "\(host) is no address")
    }
    let length = isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
    return withUnsafePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body(__CONST_SOCKADDR_ARG(__sockaddr__: $0), socklen_t(length))
      }
    }
  }
}
