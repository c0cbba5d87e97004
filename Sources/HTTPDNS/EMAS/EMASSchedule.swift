// EMASSchedule.swift -- asks EMAS which servers answer now, and where that can be asked.

import DNSWire

/// `GET /{account}/ss` ("service IP address scheduling", alibabacloud.com/help/en/httpdns). Any server answers it; those
/// that a client starts with may answer nothing else.
///
/// The request is not signed. The signature is optional, the provider's mobile programs send none, and its documents
/// disagree about it (MD5 or HMAC-MD5, the present time or an expiry): a wrong one would cost what none gives.
public struct EMASSchedule: Sendable {
  /// Where clients are, as far as the service tells them apart.
  public enum Region: String, CaseIterable, Sendable {
    /// China without Hong Kong.
    case cn
    /// Hong Kong.
    case hk
    /// Singapore.
    case sg
    /// Germany.
    case de
    /// The United States.
    case us
    /// Anywhere.
    case global
  }

  /// What a reply says.
  public enum Outcome: Hashable, Sendable {
    /// The servers to ask, in the order of the reply, those with IPv4 addresses first. There is at least one.
    case servers([ListedServer])
    /// The service is switched off for this account: there is nobody to ask until a later reply says otherwise.
    case disabled
  }

  /// Servers of each family that are taken from a reply.
  static let mostServers = 16

  /// The provider's advice is to ask again at the latest after this time, at every start, and when the network changes.
  public static let refreshInterval: Duration = .seconds(8 * 3600)
  /// An account that was switched off is asked after sooner: for that long the provider's own programs leave one alone
  /// that is not served.
  public static let retryInterval: Duration = .seconds(3600)

  private let target: String

  /// The schedule of an account's servers for a region.
  public init(accountID: String, region: Region = .cn) {
    var target = QueryTarget(path: "/\(percentEncoded(accountID))/ss")
    target.add("region", plain: region.rawValue)
    self.target = target.text
  }

  /// The transfer that asks.
  public var request: TransferRequest { TransferRequest(method: .get, target: target) }

  /// What the reply to such a transfer says. Entries that are no addresses are left out.
  ///
  /// - Throws: why it says nothing; `.unreadable(.shape)` where it names no server.
  /// - Complexity: O(*n*) in the octets of the body.
  public func outcome(from response: TransferResponse) throws(HTTPDNSFailure) -> Outcome {
    try withEMASReply(response) { root throws(HTTPDNSFailure) in
      if root["service_status"]?.text == "disable" { return .disabled }
      let servers =
        EMASSchedule.servers(root["service_ip"], ports: root["service_ip_port"], isIPv6: false)
        + EMASSchedule.servers(root["service_ipv6"], ports: root["service_ipv6_port"], isIPv6: true)
      guard !servers.isEmpty else { throw .unreadable(.shape) }
      return .servers(servers)
    }
  }

  /// The servers of a list of addresses; the port of each stands at its place in a list of their own.
  private static func servers(_ addresses: JSONValue?, ports: JSONValue?, isIPv6: Bool) -> [ListedServer] {
    guard let addresses else { return [] }
    var portNumbers = ports?.elements
    var servers: [ListedServer] = []
    for element in addresses.elements {
      let port = portNumbers?.next()?.number(upTo: 65_535).map { UInt16($0) }
      guard let octets = element.address(isIPv6: isIPv6), let address = IPAddress(octets: octets) else { continue }
      let server = ListedServer(.address(address), port: port == 0 ? nil : port)
      guard servers.count < mostServers, !servers.contains(server) else { continue }
      servers.append(server)
    }
    return servers
  }
}

extension EMASSchedule: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Only what it is: the account stays inside.
  public var description: String { "emas schedule" }
  /// The same as `description`.
  public var debugDescription: String { description }
  /// Nothing to look into.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
