// EncryptedDiscovery.swift -- which of the configured encrypted listeners clients may learn of (DDR, RFC 9462).

import Configuration
import Routing

extension DesignatedResolver {
  /// The listeners with a port of their own and TLS. Nil without one, without a name, with tokens, since the path would be
  /// secret, and with `ddr = false`.
  init?(_ encrypted: Configuration.Encrypted) {
    guard encrypted.ddr, encrypted.tokensFile == nil, let name = encrypted.name else { return nil }
    func ports(_ endpoints: [Endpoint]) -> [UInt16] {
      endpoints.map(\.port).reduce(into: []) { ports, port in
        // The kernel chooses another one for port 0.
        if port != 0, !ports.contains(port) { ports.append(port) }
      }
    }
    let listeners = (encrypted.doh + encrypted.dot).map(\.address)
    self.init(
      name: name, https: ports(encrypted.doh), path: encrypted.path, tls: ports(encrypted.dot),
      addresses: encrypted.published.isEmpty ? listeners : encrypted.published)
  }
}
