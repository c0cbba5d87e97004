// NetworkIdentity.swift -- which network this machine is in: the same value whenever it comes back there.

import Ciphers
import DNSWire

/// A network as this machine sees it: by its default route, preferably that of IPv4.
public struct NetworkIdentity: Hashable, Sendable {
  /// The name of the default route's interface; nil where there is no default route.
  public let interface: String?
  /// The router's address; nil where the route has none, as on a tunnel.
  public let gateway: IPAddress?
  /// The router's link-layer address, such as 6 octets of Ethernet. Two networks that use the same private addresses
  /// differ in it.
  public let gatewayLinkAddress: [UInt8]?
  /// The prefix of the address that packets are sent from.
  public let prefix: IPPrefix?
  /// False while the router's link-layer address is not known yet; `number` will become another one then.
  public let isComplete: Bool
  /// The same for the same network, also after a restart; never 0, and never that of another network but by an accident of
  /// one in four thousand million.
  public let number: UInt32

  /// There is no default route: a network of its own.
  public static let none = NetworkIdentity(
    interface: nil, gateway: nil, gatewayLinkAddress: nil, prefix: nil, isComplete: true)

  init(
    interface: String?, gateway: IPAddress?, gatewayLinkAddress: [UInt8]?, prefix: IPPrefix?, isComplete: Bool
  ) {
    self.interface = interface
    self.gateway = gateway
    self.gatewayLinkAddress = gatewayLinkAddress
    self.prefix = prefix
    self.isComplete = isComplete
    let parts = [
      interface ?? "", gateway?.description ?? "", Hexadecimal.encode(gatewayLinkAddress ?? []),
      prefix?.description ?? "",
    ]
    // Numbers are kept in files: this text is their format. An interface's name has no '/'.
    let digest = Digest.sha256(Array("network/1/\(parts.joined(separator: "//"))".utf8))
    let number = digest.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    self.number = number == 0 ? 1 : number
  }

  /// Whether it is the other one as far as is known: only the router's link-layer address is missing.
  public func mayBecome(_ other: NetworkIdentity) -> Bool {
    !isComplete && interface == other.interface && gateway == other.gateway && prefix == other.prefix
  }

  /// The network that this machine is in now, by requests to the kernel on the calling thread, which may be any.
  /// `NetworkWatch.identity` also tells when one that is not complete has become so.
  ///
  /// - Complexity: three or four requests, well below a millisecond on a machine with few routes.
  public static func read() throws(NetworkWatchError) -> NetworkIdentity { try IdentityReading.read().identity }
}

extension NetworkIdentity: CustomStringConvertible {
  /// For a log line: `eth0 via 192.0.2.1 (02:00:5e:00:53:01), 192.0.2.0/24`.
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
