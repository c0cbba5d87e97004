// ProviderFactoryTests.swift -- a provider that could never be asked stops the start.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import LocalDNS
import Persistence
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `A provider is made` {
  private func factory(
    on loop: EventLoop, state: String = "/nonexistent", client: (any LocalDNSTransport)? = nil
  ) -> ProviderFactory {
    ProviderFactory(
      loop: loop, localClient: client ?? LocalDNSClient(loop: loop), systemServers: { [] }, localServers: [],
      maxInFlight: 10, state: StateFolder(path: state) { _ in }, ledger: nil
    ) { _, _ in }
  }

  /// Why it is not; nil where it is.
  private func mistake(_ adjust: (inout Configuration.Provider) throws -> Void) throws -> String? {
    let factory = factory(on: try EventLoop())
    var provider = Configuration.Provider()
    try adjust(&provider)
    do throws(HTTPSetupError) {
      _ = try factory.make(provider)
      return nil
    } catch { return error.description }
  }

  private func server(_ host: String, named name: String) throws -> Configuration.Server {
    Configuration.Server(
      host: try #require(Host(text: host)), port: 443, scheme: .https, tlsName: name, path: "/dns-query")
  }

  @Test(arguments: ["192.0.2.1", "2001:db8::1", "dns.example"]) func `a provider can have servers by address or name`(
    host: String
  )
    throws
  {
    #expect(try mistake { $0.servers = [try server(host, named: "dns.example")] } == nil)
    #expect(try mistake { $0.servers = [try server(host, named: host)] } == nil)
  }

  @Test(arguments: ["192.0.2.1", "dns.example"])
  func `a provider requires readable certificates before its server is resolved`(host: String) throws {
    for (file, reason) in [
      ("/nonexistent/ca.pem", "No such file or directory"), ("/dev/null", "no certificate (PEM) in it"),
    ] {
      let mistake = try mistake { provider in
        provider.servers = [try server(host, named: "dns.example")]
        provider.caFile = file
      }
      #expect(mistake == "certificates \(file): \(reason)")
    }
  }

  @Test func `a provider requires that every server is usable`() throws {
    let mistake = try mistake {
      $0.servers = [try server("192.0.2.1", named: "a.example"), try server("192.0.2.2", named: "b/c")]
    }
    #expect(mistake == "192.0.2.2:443: \"b/c\" cannot be the name of a server")
  }

  @Test func `a provider does not ask a configured server twice that is in its list`() throws {
    let factory = factory(on: try EventLoop())
    var provider = Configuration.Provider()
    provider.scheme = .http
    provider.servers = try ["base.example", "192.0.2.1", "192.0.2.2"].map {
      Configuration.Server(
        host: try #require(Host(text: $0)), port: 80, scheme: .http, tlsName: "base.example", path: "/")
    }
    let boot = provider.servers.map { ProviderServer("boot \($0.host.text)") { _ in nil } }
    let nodes = UCloudNodes(account: .init(id: "abc-0001", secret: Secret("UcloudSecret01")))
    let listed = try ["192.0.2.9", "Base.example", "192.0.2.1"].map { ListedServer(try #require(Host(text: $0))) }
    func places(_ listed: [ListedServer], by source: any ServerListSource) -> [String] {
      factory.servers(listed, by: source, of: provider, before: boot).map(\.description)
    }
    #expect(places(listed, by: nodes) == ["192.0.2.9:80", "base.example:80", "192.0.2.1:80", "boot 192.0.2.2"])
    let other = ListedServer(.address(try #require(IPAddress(text: "192.0.2.1"))), port: 8080)
    #expect(places([other], by: nodes) == ["192.0.2.1:8080"] + boot.map(\.description))
    #expect(places([other], by: EMASSchedule(accountID: "100000")) == ["192.0.2.1:8080"])
  }

  @Test func `a provider does not follow a name in its list to this machine, unless the list is from there`() throws {
    try onLoop { loop in
      let client = ScriptedPlainDNS(on: loop) { type, _ in
        (type == .a ? ["127.0.0.1", "192.0.2.7", "169.254.169.254"] : ["::1"], 300, .zero)
      }
      let transport = ScriptedTransport(on: loop) { _ in (.refused, .zero) }
      let factory = factory(on: loop, client: client)
      var provider = Configuration.Provider()
      provider.bootstrap = [Configuration.ResolverAddress(try #require(Endpoint(text: "192.0.2.53:53")))]
      for (bases, expected) in [
        (["192.0.2.1"], ["192.0.2.7"]), (["127.0.0.1", "192.0.2.1"], ["192.0.2.7"]),
        (["127.0.0.1", "127.0.0.2"], ["127.0.0.1", "192.0.2.7", "169.254.169.254", "::1"]),
      ] {
        let boot = bases.map { ProviderServer("boot", addresses: [IPAddress(text: $0)!]) { _ in transport } }
        let listed = ListedServer(try #require(Host(text: "node.example")))
        let server = try #require(
          factory.servers(
            [listed], by: AliDNSServerList(path: "/resolve", isEncrypted: true), of: provider, before: boot
          ).first)
        _ = await server.transport(timeout: .seconds(1))
        #expect(server.addresses.map(\.description) == expected)
      }
    }
  }

  @Test func `a name in a list is left out if a proxy would resolve it`() throws {
    try onLoop { loop in
      let boot = ProviderServer("boot", addresses: [try #require(IPAddress(text: "192.0.2.1"))]) { _ in nil }
      let listed = ["node.example", "192.0.2.7"].map { ListedServer(Host(text: $0)!) }
      var provider = Configuration.Provider()
      provider.proxy = CredentialURL(text: "socks5h://127.0.0.1:1080", schemes: ["socks5h"])
      for (bootstrap, expected) in [
        ([], ["192.0.2.7:443"]), (["192.0.2.53:53"], ["node.example:443", "192.0.2.7:443"]),
      ] {
        provider.bootstrap = bootstrap.map { Configuration.ResolverAddress(Endpoint(text: $0)!) }
        let servers = factory(on: loop).servers(
          listed, by: AliDNSServerList(path: "/resolve", isEncrypted: true), of: provider, before: [boot])
        #expect(servers.map { String("\($0)".prefix { $0 != "," }) } == expected + ["boot"])
      }
    }
  }

  @Test func `a provider does not use the saved list of another server`() throws {
    let folder = TemporaryFolder()
    folder.write("httpdnsd servers 1 https 127.0.0.1:1\n127.0.0.2 3\n", to: "servers-alidns")
    try onLoop { loop in
      let factory = factory(on: loop, state: folder.path)
      for (port, expected) in [(UInt16(1), ["127.0.0.2:3", "127.0.0.1:1"]), (2, ["127.0.0.1:2"])] {
        var provider = Configuration.Provider()
        provider.kind = .alidns(account: nil, short: false, isScheduled: true)
        provider.servers = [try server("127.0.0.1", named: "dns.example")]
        provider.servers[0].port = port
        let made = try #require(try factory.make(provider) as? HTTPDNSProvider)
        made.start()
        #expect(made.health.servers.map(\.description) == expected)
      }
    }
  }
}
