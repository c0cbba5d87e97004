// SocketAddress.swift -- an IPv4 or IPv6 address with a port, or a Unix socket's path, in the form for system calls.

import CEvent
import Glibc

/// An address and a port for `bind`, `connect` and `sendto`.
public struct SocketAddress: Sendable {
  /// The kernel's form; only the first `length` octets are significant.
  public var storage: sockaddr_storage
  /// The number of significant octets in `storage`.
  public var length: socklen_t

  public init(storage: sockaddr_storage, length: socklen_t) {
    self.storage = storage
    self.length = length
  }

  /// Copies the kernel's form; nil if it has more octets than any address.
  public init?(copying form: UnsafeRawBufferPointer) {
    guard form.count <= MemoryLayout<sockaddr_storage>.size else { return nil }
    storage = sockaddr_storage()
    length = socklen_t(form.count)
    withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: form) }
  }

  /// An endpoint from 4 or 16 address octets in network order; nil for any other number of octets.
  public init?(octets: [UInt8], port: UInt16) {
    storage = sockaddr_storage()
    switch octets.count {
    case 4:
      length = socklen_t(MemoryLayout<sockaddr_in>.size)
      withUnsafeMutableBytes(of: &storage) { raw in
        raw.storeBytes(of: sa_family_t(AF_INET), as: sa_family_t.self)
        raw.storeBytes(of: port.bigEndian, toByteOffset: 2, as: UInt16.self)
        raw.baseAddress!.advanced(by: 4).copyMemory(from: octets, byteCount: 4)
      }
    case 16:
      length = socklen_t(MemoryLayout<sockaddr_in6>.size)
      withUnsafeMutableBytes(of: &storage) { raw in
        raw.storeBytes(of: sa_family_t(AF_INET6), as: sa_family_t.self)
        raw.storeBytes(of: port.bigEndian, toByteOffset: 2, as: UInt16.self)
        raw.baseAddress!.advanced(by: 8).copyMemory(from: octets, byteCount: 16)
      }
    default: return nil
    }
  }

  /// An endpoint from `192.0.2.1:53`, `[2001:db8::1]:53` or `[fe80::1%eth0]:53`; nil for anything else, or if the machine
  /// has no such interface.
  public init?(text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    let host = text[..<colon]
    var octets = [UInt8](repeating: 0, count: 16)
    if host.hasPrefix("["), host.hasSuffix("]") {
      let parts = host.dropFirst().dropLast().split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
      guard inet_pton(AF_INET6, String(parts[0]), &octets) == 1 else { return nil }
      self.init(octets: octets, port: port)
      guard parts.count == 2 else { return }
      scope = SocketAddress.interface(String(parts[1]))
      guard scope != 0 else { return nil }
    } else {
      guard inet_pton(AF_INET, String(host), &octets) == 1 else { return nil }
      octets.removeLast(12)
      self.init(octets: octets, port: port)
    }
  }

  /// Copies an IPv4 or IPv6 address of the kernel; nil for any other family.
  public init?(_ address: UnsafePointer<sockaddr>) {
    let length: Int
    switch Int32(address.pointee.sa_family) {
    case AF_INET: length = MemoryLayout<sockaddr_in>.size
    case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
    default: return nil
    }
    self.init(copying: UnsafeRawBufferPointer(start: address, count: length))
  }

  /// The address of a Unix socket; nil if the path is empty, too long or contains a NUL.
  public init?(unixPath path: String) {
    var form = sockaddr_un()
    form.sun_family = sa_family_t(AF_UNIX)
    let octets = Array(path.utf8)
    // One octet is for the terminating NUL.
    guard !octets.isEmpty, octets.count < MemoryLayout.size(ofValue: form.sun_path), !octets.contains(0) else {
      return nil
    }
    withUnsafeMutableBytes(of: &form.sun_path) { $0.copyBytes(from: octets) }
    guard let address = withUnsafeBytes(of: form, { SocketAddress(copying: $0) }) else { return nil }
    self = address
  }

  /// `AF_INET`, `AF_INET6` or `AF_UNIX`.
  public var family: Int32 { Int32(storage.ss_family) }

  /// The address, 4 or 16 octets in network order.
  public var octets: [UInt8] {
    withUnsafeBytes(of: storage) { raw in family == AF_INET6 ? Array(raw[8..<24]) : Array(raw[4..<8]) }
  }

  /// The port, in host order.
  public var port: UInt16 {
    withUnsafeBytes(of: storage) { UInt16(bigEndian: $0.load(fromByteOffset: 2, as: UInt16.self)) }
  }

  /// The number of the interface on which a link-local IPv6 address is meant (RFC 4007 section 6); 0 for none, and always
  /// for IPv4.
  public var scope: UInt32 {
    get {
      guard family == AF_INET6 else { return 0 }
      return withUnsafeBytes(of: storage) { $0.load(fromByteOffset: SocketAddress.scopeOffset, as: UInt32.self) }
    }
    set {
      guard family == AF_INET6 else { return }
      withUnsafeMutableBytes(of: &storage) {
        $0.storeBytes(of: newValue, toByteOffset: SocketAddress.scopeOffset, as: UInt32.self)
      }
    }
  }

  private static let scopeOffset = MemoryLayout<sockaddr_in6>.offset(of: \.sin6_scope_id)!

  /// The number of an interface by its name or number (RFC 4007 section 11.2); 0 if the machine does not have it.
  public static func interface(_ zone: String) -> UInt32 { UInt32(zone) ?? if_nametoindex(zone) }

  /// Calls `body` with a pointer for a system call.
  public func withSockaddr<Value>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
    withUnsafePointer(to: storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
  }
}

extension SocketAddress {
  /// The local address of a bound socket; nil if the descriptor is not a socket.
  public init?(boundTo descriptor: Int32) {
    self.init { getsockname(descriptor, $0, $1) }
  }

  /// The peer of a connected socket; nil if it is not connected.
  public init?(peerOf descriptor: Int32) {
    self.init { getpeername(descriptor, $0, $1) }
  }

  private init?(_ fill: (__SOCKADDR_ARG, UnsafeMutablePointer<socklen_t>) -> Int32) {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { fill(__SOCKADDR_ARG(__sockaddr__: $0), &length) }
    }
    guard result == 0 else { return nil }
    self.init(storage: storage, length: length)
  }
}

extension SocketAddress: Hashable, CustomStringConvertible {
  /// Whether family, address, port and scope are the same.
  public static func == (left: SocketAddress, right: SocketAddress) -> Bool { left.identity == right.identity }

  /// Hashes address, port and scope.
  public func hash(into hasher: inout Hasher) { hasher.combine(identity) }

  /// What two equal addresses have in common.
  private struct Identity: Hashable {
    var family: Int32
    var port: UInt16
    var scope: UInt32
    var high: UInt64
    var low: UInt64
  }

  private var identity: Identity {
    withUnsafeBytes(of: storage) { raw in
      let isIPv6 = family == AF_INET6
      return Identity(
        family: family, port: port, scope: scope,
        high: isIPv6
          ? raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
          : UInt64(raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self)),
        low: isIPv6 ? raw.loadUnaligned(fromByteOffset: 16, as: UInt64.self) : 0)
    }
  }

  /// `192.0.2.1` or `2001:db8::1`.
  public var host: String {
    var text = [CChar](repeating: 0, count: 46)
    inet_ntop(family, octets, &text, 46)
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// `192.0.2.1:53`, `[2001:db8::1]:53` or `[fe80::1%eth0]:53`.
  public var description: String { family == AF_INET6 ? "[\(host)\(zone)]:\(port)" : "\(host):\(port)" }

  private var zone: String {
    guard scope != 0 else { return "" }
    var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
    guard if_indextoname(scope, &name) != nil else { return "%\(scope)" }
    return "%" + String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
