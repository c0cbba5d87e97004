// EligibleAddresses.swift -- which addresses of an answer may be added to a firewall set.

import DNSWire
import Routing

/// An address of an answer, and how long a set is to contain it at least.
public struct SetAddress: Hashable, Sendable {
  public let address: IPAddress
  /// From the moment of the addition, TTL and `set_keep` together. A set without timeouts ignores it.
  public let lifetime: Duration

  public init(_ address: IPAddress, lifetime: Duration) {
    self.address = address
    self.lifetime = lifetime
  }
}

extension [SetAddress] {
  /// Minimum lifetime, since a timeout of 0 would mean none; and maximum, ten years.
  private static let lifetimes = Duration.seconds(1)...Duration.seconds(315_360_000)

  /// The addresses that may be added, each one once with its longest lifetime, in their order. An IPv4-mapped IPv6 address
  /// counts as the IPv4 address, which is where packets go.
  ///
  /// - Parameter includingPrivate: whether addresses that the public Internet does not route to may be added.
  /// - Complexity: O(*n*)
  func eligible(includingPrivate: Bool) -> [SetAddress] {
    var longest: [IPAddress: Duration] = [:]
    var order: [IPAddress] = []
    for element in self {
      let address = element.address.unmapped
      guard address.isRoutable, includingPrivate || !RebindFilter.isPrivate(address.octets) else { continue }
      let lifetime = Swift.min(
        Swift.max(element.lifetime, Self.lifetimes.lowerBound), Self.lifetimes.upperBound)
      if let known = longest[address] {
        longest[address] = Swift.max(known, lifetime)
      } else {
        longest[address] = lifetime
        order.append(address)
      }
    }
    return order.map { SetAddress($0, lifetime: longest[$0]!) }
  }
}
