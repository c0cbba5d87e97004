// EncryptedPolicy.swift -- what the encrypted listeners follow: tables, clients, proxies, hosts and tokens. A reload replaces it.

import DNSWire
import EventLoop
import FairShares

/// The settings of `[encrypted]` that a reload may change.
package struct EncryptedPolicy: Sendable {
  /// The tables of port 53, with the clients of `encrypted.allow`.
  package let tables: QueryTables
  /// What listeners with TLS serve over HTTP.
  let site: DoHSite
  /// What listeners without TLS serve over HTTP.
  let plainSite: DoHSite
  /// The name that follows a token in a server's name (SNI): in lower case, without a final dot.
  private let name: String?
  /// The accepted tokens; nil if clients need none.
  package var tokens: TokenList?
  private let proxies: [IPPrefix]
  private let forwarders: [IPPrefix]
  /// `encrypted.new_per_second`.
  let newConnections: BucketTable

  /// - Parameters:
  ///   - proxies: `encrypted.proxy_protocol`.
  ///   - forwarders: `encrypted.forwarded_from`.
  package init(
    tables: QueryTables, site: DoHSite, plainSite: DoHSite, name: DomainName?, tokens: TokenList? = nil,
    proxies: [IPPrefix], forwarders: [IPPrefix], newConnections: BucketTable
  ) {
    self.tables = tables
    self.site = site
    self.plainSite = plainSite
    self.name = name.map { String($0.lowercased.text.dropLast()) }
    self.tokens = tokens
    self.proxies = proxies
    self.forwarders = forwarders
    self.newConnections = newConnections
  }

  /// Whether connections from there begin with a PROXY header.
  func isProxy(_ peer: SocketAddress) -> Bool { EncryptedPolicy.contains(proxies, peer) }

  /// Whether `X-Forwarded-For` from there names the client.
  func isForwarder(_ peer: SocketAddress) -> Bool { EncryptedPolicy.contains(forwarders, peer) }

  /// The token with which a server's name (SNI) begins; nil without an accepted one.
  func token(inServerName text: String?) -> TokenList.Entry? {
    guard let tokens, let name, let text else { return nil }
    let labels = text.lowercased().split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard labels.count == 2, labels[1] == name else { return nil }
    return tokens.entry(nameLabel: Array(labels[0].utf8))
  }

  private static func contains(_ prefixes: [IPPrefix], _ peer: SocketAddress) -> Bool {
    guard !prefixes.isEmpty, let address = IPAddress(octets: peer.octets)?.unmapped else { return false }
    return prefixes.contains { $0.contains(address) }
  }
}
