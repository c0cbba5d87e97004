// ProxyTests.swift -- a provider through a proxy of the configuration, and no other.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ProxyTests {
  /// The environment's variables that programs take a proxy from.
  private static let variables = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]

  private static let cases = ["http", "https"].flatMap { scheme in ["http", "socks5h"].map { (scheme, $0) } }

  /// A provider of kind doh, which is a simulator.
  private func provider(_ simulator: Simulator, scheme: String, host: String?, _ more: String) throws -> String {
    let https = try #require(simulator.https)
    let address = scheme == "https" ? https.address : simulator.http
    let authority = scheme == "https" ? "ca_file = \"\(https.authority)\"" : ""
    return Settings.provider(
      "doh",
      """
      url = "\(scheme)://\(host.map { "\($0):\(address.port)" } ?? address.description)/dns-query"
      \(authority)
      \(more)
      """)
  }

  @Test(arguments: cases)
  func `a server given by name is resolved by the proxy, despite the environment`(
    scheme: String, proxyScheme: String
  ) throws {
    try withLab { lab in
      let simulator = try lab.simulator("--tls-name", "dns.example.org", https: true)
      let (proxy, other) = (try TestProxy(), try TestProxy())
      // Only the proxy can resolve the name: bootstrap and LocalDNS are not configured.
      let provider = try provider(
        simulator, scheme: scheme, host: "dns.example.org", "proxy = \"\(proxyScheme)://\(proxy.address)\"")
      var environment = Dictionary(uniqueKeysWithValues: ProxyTests.variables.map { ($0, "http://\(other.address)") })
      environment["NO_PROXY"] = "*"
      environment["no_proxy"] = "*"
      let daemon = try lab.daemon(Settings(provider).text, environment: environment)
      for number in 1...3 {
        #expect(try ask(daemon.address, "n\(number).bench.example").data == ["198.18.0.\(number)"])
      }
      let port = (scheme == "https" ? simulator.https!.address : simulator.http).port
      let request = proxyScheme == "http" ? "CONNECT" : "SOCKS5 name"
      #expect(proxy.requests == ["\(request) dns.example.org:\(port)"])
      #expect(other.requests.isEmpty)
      #expect(try simulator.requests.map(\.transport) == [scheme, scheme, scheme])
    }
  }

  @Test(arguments: cases)
  func `a proxy gets the address of a server that has one`(scheme: String, proxyScheme: String) throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let proxy = try TestProxy()
      let provider = try provider(
        simulator, scheme: scheme, host: nil, "proxy = \"\(proxyScheme)://\(proxy.address)\"")
      let daemon = try lab.daemon(Settings(provider).text)
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      let address = scheme == "https" ? simulator.https!.address : simulator.http
      #expect(proxy.requests == ["\(proxyScheme == "http" ? "CONNECT" : "SOCKS5") \(address)"])
    }
  }

  @Test(arguments: ["http", "https"])
  func `the environment's proxies are not used`(scheme: String) throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let other = try TestProxy()
      let daemon = try lab.daemon(
        Settings(try provider(simulator, scheme: scheme, host: nil, "")).text,
        environment: Dictionary(uniqueKeysWithValues: ProxyTests.variables.map { ($0, "http://\(other.address)") }))
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      #expect(try simulator.count.transfers == 1)
      #expect(other.requests.isEmpty)
    }
  }

  @Test(arguments: ["http", "socks5h"])
  func `a missing proxy is not bypassed`(proxyScheme: String) throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let closed = try lab.closedAddress()
      let network = try PlainServer(addresses: ["n1.bench.example.": "10.0.0.1"])
      var settings = Settings(
        try provider(simulator, scheme: "https", host: nil, "proxy = \"\(proxyScheme)://\(closed)\""))
      settings.localServers = [network.address]
      let daemon = try lab.daemon(settings.text)
      #expect(try ask(daemon.address, "n1.bench.example").data == ["10.0.0.1"])
      #expect(try simulator.count.transfers == 0)
    }
  }
}
