// EMASSchedule.swift -- asks EMAS for its current servers.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import JSON

/// `GET /{account}/ss` ("service IP address scheduling", alibabacloud.com/help/en/httpdns). Any server answers it, over https
/// in every client of the provider.
///
/// The request is not signed. The signature is optional, the provider's mobile SDKs send none, and its documents
/// disagree about it (MD5 or HMAC-MD5, the current time or an expiry): a wrong signature fails where none is needed.
public struct EMASSchedule: Sendable {
  /// Maximum servers of each family from one reply.
  static let mostServers = 16

  /// The provider advises to ask again after this time, at every start, and when the network changes.
  public static let refreshInterval: Duration = .seconds(8 * 3600)
  /// The interval for an account that is switched off. The provider's own SDKs pause for the same time if the account
  /// is not served.
  public static let retryInterval: Duration = .seconds(3600)

  private let target: String

  /// Creates the request for the servers of an account in a region: `cn`, `hk`, `sg`, `de` or `us`, or the nearest ones
  /// (`global`).
  public init(accountID: String, region: String = "global") {
    var target = QueryTarget(path: "/\(PercentText.encode(accountID))/ss")
    target.add("region", encoding: region)
    self.target = target.text
  }

  /// The transfer that requests the servers.
  public var request: HTTPRequest { HTTPRequest(method: .get, target: target) }

  /// Reads the servers to use in the reply to such a transfer, those with IPv4 addresses first. There are none if the service
  /// is switched off for this account. Entries that are not addresses are ignored.
  ///
  /// - Throws: the reason if the reply is unusable; `.unreadable(.noServers)` if it has no server.
  /// - Complexity: O(*n*) in the octets of the body.
  public func servers(from response: HTTPResponse) throws(HTTPDNSFailure) -> [ListedServer] {
    try EMASErrorCode.withReply(response) { root throws(HTTPDNSFailure) in
      if root["service_status"]?.text == "disable" { return [] }
      let servers =
        EMASSchedule.servers(root["service_ip"], ports: root["service_ip_port"], isIPv6: false)
        + EMASSchedule.servers(root["service_ipv6"], ports: root["service_ipv6_port"], isIPv6: true)
      guard !servers.isEmpty else { throw .unreadable(.noServers(.noError)) }
      return servers
    }
  }

  /// The servers of a list of addresses. `ports` has the port of each server at the same index.
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

extension EMASSchedule: ServerListSource {
  /// True: the list is stored, and one that was forged on the path would outlive it.
  public var isAlwaysEncrypted: Bool { true }

  /// False: the provider advises against the permanent use of boot addresses.
  public var keepsConfiguredServers: Bool { false }

  public func request(unixTime: Int64) -> HTTPRequest { request }

  public func list(
    from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> (servers: [ListedServer], lifetime: Duration) {
    let servers = try servers(from: response)
    return (servers, servers.isEmpty ? EMASSchedule.retryInterval : EMASSchedule.refreshInterval)
  }
}

extension EMASSchedule: Concealed {
  /// A fixed name, without the account.
  public var description: String { "emas schedule" }
}
