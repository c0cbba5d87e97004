// NetworkIdentity.swift -- identifies the network of this machine; the value is the same after a return to it.

import Ciphers
import DNSWire

/// A network, identified by its default route; IPv4's takes precedence.
public struct NetworkIdentity: Hashable, Sendable {
  /// The interface of the default route; nil without a default route.
  public let interface: String?
  /// The router's address; nil if the route has none, as on a tunnel.
  public let gateway: IPAddress?
  /// The router's link-layer address, for example 6 octets of Ethernet. It distinguishes networks that use the same
  /// private addresses.
  public let gatewayLinkAddress: [UInt8]?
  /// The prefix of the source address of packets.
  public let prefix: IPPrefix?
  /// False while the router's link-layer address is unknown; `number` changes when it becomes known.
  public let isComplete: Bool
  /// A hash that is stable across restarts, never 0. Two networks have the same number with a probability of 2^-32.
  public let number: UInt32

  /// No default route; counts as a network.
  public static let none = NetworkIdentity(
    interface: nil, gateway: nil, gatewayLinkAddress: nil, prefix: nil, isComplete: true)

  init(interface: String?, gateway: IPAddress?, gatewayLinkAddress: [UInt8]?, prefix: IPPrefix?, isComplete: Bool) {
    self.interface = interface
    self.gateway = gateway
    self.gatewayLinkAddress = gatewayLinkAddress
    self.prefix = prefix
    self.isComplete = isComplete
    let parts = [
      interface ?? "", gateway?.description ?? "", Hexadecimal.encode(gatewayLinkAddress ?? []),
      prefix?.description ?? "",
    ]
    // Files contain these numbers, so this text must not change. An interface's name has no '/'.
    let digest = Digest.sha256(Array("network/1/\(parts.joined(separator: "//"))".utf8))
    let number = digest.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    self.number = number == 0 ? 1 : number
  }

  /// Whether both are the same network as far as is known, because this identity only lacks the router's link-layer
  /// address.
  public func mayBecome(_ other: NetworkIdentity) -> Bool {
    !isComplete && interface == other.interface && gateway == other.gateway && prefix == other.prefix
  }

  /// Reads the identity of the current network from the kernel. Blocks the calling thread, which may be any. Only
  /// `NetworkWatch.identity` also reports when an incomplete identity becomes complete.
  ///
  /// - Complexity: three or four requests, well below a millisecond on a machine with few routes.
  public static func read() throws(NetworkWatchError) -> NetworkIdentity { try IdentityReading.read().identity }
}

extension NetworkIdentity: CustomStringConvertible {
  /// One line for logs: `eth0 via 192.0.2.1 (02:00:5e:00:53:01), 192.0.2.0/24`.
  public var description: String {
    guard let interface else { return "no network" }
    var text = interface
    if let gateway { text += " via \(gateway)" }
    if let gatewayLinkAddress {
      text += " (\(gatewayLinkAddress.map { Hexadecimal.encode([$0]) }.joined(separator: ":")))"
    } else if !isComplete {
      text += " (link-layer address not known yet)"
    }
    if let prefix { text += ", \(prefix)" }
    return text
  }
}
