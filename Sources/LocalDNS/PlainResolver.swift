// PlainResolver.swift -- one of the network's resolvers: its address, and over which transport it is asked.

import EventLoop

public struct PlainResolver: Hashable, Sendable {
  /// The address, without the scope that `zone` stands for.
  public let address: SocketAddress
  /// The interface of a link-local address, by name or number; nil for every other address. It is looked up for each
  /// query, since an interface that comes back has another number.
  public let zone: String?
  /// Whether it is asked over TCP only: `tcp://` in the configuration, or `use-vc` in resolv.conf.
  public let isOverTCP: Bool

  public init(_ address: SocketAddress, zone: String? = nil, isOverTCP: Bool = false) {
    self.address = address
    self.zone = zone
    self.isOverTCP = isOverTCP
  }

  /// The address for a socket; nil if the machine currently has no such interface.
  public var target: SocketAddress? {
    guard let zone else { return address }
    var target = address
    target.scope = SocketAddress.interface(zone)
    return target.scope == 0 ? nil : target
  }
}

extension PlainResolver: CustomStringConvertible {
  /// `192.0.2.1:53`, `[fe80::1%eth0]:53` or `tcp://192.0.2.1:53`.
  public var description: String {
    let place = zone.map { "[\(address.host)%\($0)]:\(address.port)" } ?? address.description
    return isOverTCP ? "tcp://\(place)" : place
  }
}
