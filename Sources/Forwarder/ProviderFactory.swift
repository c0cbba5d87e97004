// ProviderFactory.swift -- a provider of the configuration becomes a dialect with servers to ask.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import LocalDNS

/// Builds providers on the resolver's loop.
struct ProviderFactory {
  let loop: EventLoop
  let localClient: any LocalDNSTransport
  /// The network's plain resolvers at the time: they find servers given by name where there is no `bootstrap`.
  let systemServers: () -> [SocketAddress]
  let localServers: [Configuration.LocalServer]
  let maxInFlight: Int

  /// The provider as the resolver sees it.
  ///
  /// - Throws: `HTTPSetupError` where a CA file, a pin or a name cannot be used.
  func make(_ provider: Configuration.Provider) throws(HTTPSetupError) -> HTTPDNSProvider {
    var servers: [ProviderServer] = []
    for server in provider.servers { servers.append(try make(server, of: provider)) }
    return HTTPDNSProvider(
      name: provider.name, dialect: dialect(of: provider), servers: servers,
      attemptsBeforeSwitch: provider.attemptsBeforeSwitch, timeout: provider.timeout,
      subnetPolicy: SubnetPolicy(provider.clientSubnet), trustsAD: provider.trustsAD, loop: loop)
  }

  private func dialect(of provider: Configuration.Provider) -> any Dialect {
    switch provider.service {
    case .alidns(let account, let short):
      let credential = account.map {
        AliDNSDialect.Credential(
          accountID: $0.accountID, accessKeyID: $0.accessKeyID, accessKeySecret: $0.accessKeySecret)
      }
      return AliDNSDialect(
        credential: credential, form: short ? .short : .full, isEncrypted: provider.scheme == .https,
        path: provider.path)
    case .json:
      return JSONDialect(
        flavour: JSONDialect.Flavour(host: provider.tlsName, path: provider.path), path: provider.path)
    case .doh(let method):
      return MessageDialect(method: method == .get ? .get : .post, path: provider.path)
    }
  }

  private func make(
    _ server: Configuration.Server, of provider: Configuration.Provider
  ) throws(HTTPSetupError) -> ProviderServer {
    let (loop, options) = (loop, options(of: provider))
    let scheme: HTTPServerAddress.Scheme = server.scheme == .https ? .https : .http
    let connect: ProviderServer.Connect = { addresses in
      HTTPServerAddress(
        scheme: scheme, name: server.tlsName, addresses: addresses.map(\.description), port: server.port
      ).flatMap { try? HTTPOrigin($0, options: options, on: loop) }
    }
    let text = "\(server.host.urlText):\(server.port)"
    // Made once more than needed, so that a mistake stops the start, also where the server has yet to be found.
    guard
      let place = HTTPServerAddress(scheme: scheme, name: server.tlsName, addresses: ["127.0.0.1"], port: server.port)
    else { throw HTTPSetupError(description: "\(text): \"\(server.tlsName)\" cannot be the name of a server") }
    _ = try HTTPOrigin(place, options: options, on: loop)
    switch server.host {
    case .address(let address):
      return ProviderServer(text, addresses: [address], connect: connect)
    case .name(let name):
      let lookUp = HostLookUp(
        name, types: types(provider.family), client: localClient, loop: loop, servers: resolvers(of: provider))
      return ProviderServer(text, lookUp: lookUp, connect: connect)
    }
  }

  private func resolvers(of provider: Configuration.Provider) -> () -> [SocketAddress] {
    let fixed = provider.bootstrap.map { SocketAddress($0) }
    guard fixed.isEmpty else { return { fixed } }
    let (systemServers, localServers) = (systemServers, LocalServers(localServers))
    return {
      localServers.entries.flatMap { entry in
        switch entry {
        case .system: systemServers()
        case .address(let address): [address]
        }
      }
    }
  }

  private func types(_ family: Configuration.Family) -> [RecordType] {
    switch family {
    case .auto: [.a, .aaaa]
    case .ipv4: [.a]
    case .ipv6: [.aaaa]
    }
  }

  private func options(of provider: Configuration.Provider) -> HTTPClientOptions {
    var options = HTTPClientOptions()
    options.caFile = provider.caFile ?? ""
    options.pins = provider.pins
    options.proxy = provider.proxy.map { String(decoding: $0.text.reveal, as: UTF8.self) } ?? ""
    options.maxInFlight = maxInFlight
    switch provider.family {
    case .auto: options.family = .any
    case .ipv4: options.family = .ipv4
    case .ipv6: options.family = .ipv6
    }
    return options
  }
}

extension SubnetPolicy {
  init(_ subnet: Configuration.ClientSubnet) {
    switch subnet {
    case .none: self = .none
    case .fixed(let prefix): self = .fixed(prefix)
    case .fromClient: self = .fromClient
    }
  }
}
