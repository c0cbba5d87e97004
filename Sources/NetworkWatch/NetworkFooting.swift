// NetworkFooting.swift -- what open connections stand on: they live as long as it does.

import CNetlink
import DNSWire
import Glibc

/// Where this machine stands, as far as it matters to connections to certain addresses.
public struct NetworkFooting: Sendable {
  /// The network.
  public let identity: NetworkIdentity
  let defaultRoutes: DefaultRoutes
  /// The machine's addresses, without loopback and those of a link alone.
  let addresses: Set<IPAddress>
  /// Those that were looked for.
  let destinations: Set<IPAddress>
  /// The address that packets to each of them are sent from; none where there is no way.
  let sources: [IPAddress: IPAddress]

  init(
    identity: NetworkIdentity, defaultRoutes: DefaultRoutes, addresses: Set<IPAddress>, destinations: Set<IPAddress>,
    sources: [IPAddress: IPAddress]
  ) {
    self.identity = identity
    self.defaultRoutes = defaultRoutes
    self.addresses = addresses
    self.destinations = destinations
    self.sources = sources
  }

  /// Whether connections that were opened on an earlier footing go on: the network is the same, as far as is known, its
  /// default routes are, and packets to the same destinations are sent from the same addresses. Interfaces of containers,
  /// addresses that nobody uses and routes to elsewhere come and go meanwhile.
  public func carriesConnections(of earlier: NetworkFooting) -> Bool {
    guard
      identity == earlier.identity || identity.mayBecome(earlier.identity) || earlier.identity.mayBecome(identity),
      defaultRoutes == earlier.defaultRoutes
    else { return false }
    return destinations.allSatisfy { destination in
      let source = sources[destination]
      if earlier.destinations.contains(destination) { return source == earlier.sources[destination] }
      // Found since: its connections come from an address that was there, or from here.
      return source.map { earlier.addresses.contains($0) || $0.isLoopback } ?? true
    }
  }

  /// The addresses that packets are sent from, by the kernel's choice; nothing is sent. Any thread.
  static func sources(toward destinations: Set<IPAddress>) -> [IPAddress: IPAddress] {
    var sources: [IPAddress: IPAddress] = [:]
    for destination in destinations {
      guard let octets = source(toward: destination.octets) else { continue }
      sources[destination] = IPAddress(octets: octets)
    }
    return sources
  }

  private static func source(toward octets: [UInt8]) -> [UInt8]? {
    let family = octets.count == 4 ? AF_INET : AF_INET6
    let descriptor = socket(family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var storage = sockaddr_storage()
    storage.ss_family = sa_family_t(family)
    let offset =
      octets.count == 4
      ? MemoryLayout<sockaddr_in>.offset(of: \.sin_addr)! : MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)!
    withUnsafeMutableBytes(of: &storage) { bytes in
      // The port of either family: any but 0.
      bytes.storeBytes(of: UInt16(443).bigEndian, toByteOffset: 2, as: UInt16.self)
      for (index, octet) in octets.enumerated() { bytes[offset + index] = octet }
    }
    var length = socklen_t(octets.count == 4 ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard connect(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: UnsafePointer(address)), length) == 0,
          getsockname(descriptor, __SOCKADDR_ARG(__sockaddr__: address), &length) == 0
        else { return nil }
        return Array(UnsafeRawBufferPointer(start: UnsafeRawPointer(address) + offset, count: octets.count))
      }
    }
  }
}

/// The footing that connections were opened on, from one look at the network to the next.
public struct FollowedFooting: Sendable {
  private var last: NetworkFooting?

  /// The footing at the start; nil where the kernel did not answer.
  public init(_ footing: NetworkFooting?) { last = footing }

  /// Takes the present footing; nil where the kernel did not answer, and then the next one is compared with the last that is
  /// known.
  ///
  /// - Returns: whether connections go on: not where that cannot be known.
  public mutating func move(to now: NetworkFooting?) -> Bool {
    guard let now else { return false }
    defer { last = now }
    return last.map { now.carriesConnections(of: $0) } ?? false
  }
}

extension IPAddress {
  fileprivate var isLoopback: Bool {
    isIPv6 ? octets.dropLast().allSatisfy { $0 == 0 } && octets.last == 1 : octets[0] == 127
  }
}
