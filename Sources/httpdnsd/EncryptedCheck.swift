// EncryptedCheck.swift -- what `httpdnsd doctor` finds at the encrypted listeners: what phones and proxies mind and do not say.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import Forwarder
import Frontend
import Glibc
import LocalDNS
import Resolver
import Streams
import Upstreams

/// The findings about the encrypted listeners of a configuration.
struct EncryptedCheck {
  private(set) var findings: [MachineCheck.Finding] = []
  private let encrypted: Configuration.Encrypted
  private let files: EncryptedFiles?
  /// The name without its final dot; nil without one.
  private let name: String?

  /// Tries each listener, one after the other.
  ///
  /// - Parameter resolve: the addresses of a name as others see them; nil if that is unknown.
  init(_ configuration: Configuration, resolve: (DomainName) -> [IPAddress]?) {
    encrypted = configuration.encrypted
    name = encrypted.name.map { Host.name($0).text }
    do throws(EncryptedFiles.Faults) { files = try EncryptedFiles(encrypted) } catch {
      files = nil
      for line in error.lines { add(geteuid() == 0 ? .problem : .note, line) }
    }
    let token = files?.tokens.flatMap { tokens in
      tokens.labels.first.flatMap { tokens.token(of: $0).map { String(decoding: $0.reveal, as: UTF8.self) } }
    }
    if encrypted.tokensFile != nil, token == nil {
      add(.note, "not tried: there is no token that can be read")
      return
    }
    let path = encrypted.path + (token.map { "/\($0)" } ?? "")
    for endpoint in encrypted.dohPlain { attempt(.dohPlain(path: path), endpoint, nil, token: nil) }
    guard encrypted.usesCertificate else { return }
    let trust: TrustStore
    do throws(TrustFailure) { trust = try TrustStore.load(extra: "") } catch {
      add(.note, "not tried with TLS: this system has no certificates of authorities")
      return
    }
    for endpoint in encrypted.dot { attempt(.dot, endpoint, trust, token: token) }
    for endpoint in encrypted.doh { attempt(.doh(path: path), endpoint, trust, token: nil) }
    checkAddresses(of: encrypted.name, resolve)
    checkDiscovery(configuration)
  }

  private mutating func add(_ result: MachineCheck.Finding.Result, _ text: String, at place: String = "encrypted") {
    findings.append(MachineCheck.Finding(part: place, result: result, text: text))
  }

  /// - Parameters:
  ///   - trust: nil without TLS.
  ///   - token: for the server's name; nil for none.
  private mutating func attempt(
    _ service: EncryptedTrial.Service, _ endpoint: Endpoint, _ trust: TrustStore?, token: String?
  ) {
    let target = Healthcheck.target(of: SocketAddress(endpoint))
    guard endpoint.port != 0 else { return add(.note, "not tried: the port is 0", at: service.word) }
    let place = "\(service.word) \(target)"
    if encrypted.proxyProtocol.contains(where: { $0.contains(endpoint.address) || $0.contains(target.ip) }) {
      return add(.note, "not tried: connections from this machine need a PROXY header", at: place)
    }
    let expected = name.map { name in token.map { "\($0).\(name)" } ?? name } ?? target.host
    let shown = name.map { token == nil ? $0 : "TOKEN.\($0)" } ?? target.host
    let objection = EncryptedTrial(service: service, address: target, name: expected, trust: trust).objection()
    if objection == EncryptedTrial.notAllowed {
      // Clients that the proxy names may be.
      add(.note, "not tried: \(EncryptedTrial.notAllowed)", at: place)
    } else if let objection {
      add(.problem, token.map { objection.split(separator: $0).joined(separator: "TOKEN") } ?? objection, at: place)
    } else {
      add(.ok, "answers a \(trust == nil ? "proxy" : "strict client") as \(shown)", at: place)
    }
  }

  /// Whether the addresses of the name are those that are served.
  private mutating func checkAddresses(of name: DomainName?, _ resolve: (DomainName) -> [IPAddress]?) {
    guard let name, let addresses = resolve(name) else { return }
    let text = Host.name(name).text
    guard !addresses.isEmpty else {
      return add(.note, "\(text) has no address; devices find the server only where httpdnsd answers for the name")
    }
    let listeners = (encrypted.dot + encrypted.doh).map(\.address)
    let own = LocalAddresses.all().compactMap { IPAddress(octets: $0.octets) } + encrypted.published
    for address in addresses {
      if !own.contains(address), !listeners.contains(address) {
        add(.note, "\(text) has the address \(address), which is neither this machine's nor in encrypted.published")
      } else if !encrypted.published.contains(address), !listeners.contains(where: { $0.serves(address) }) {
        let family = address.isIPv6 ? "IPv6" : "IPv4"
        add(
          .problem,
          "\(text) has the \(family) address \(address), at which no encrypted listener is; devices fail or wait")
      }
    }
  }

  /// Whether clients that find the listeners by DDR will use them.
  private mutating func checkDiscovery(_ configuration: Configuration) {
    guard encrypted.ddr, encrypted.tokensFile == nil, name != nil, let pair = files?.pair else { return }
    let asked = configuration.listen.addresses.map(\.address).filter { !$0.isLoopback && !$0.isUnspecified }
    // Clients ask this machine, and not a proxy before its listeners.
    let published = encrypted.proxyProtocol.isEmpty ? encrypted.published : []
    for address in Set(published + asked) where !pair.isFor(address: "\(address)") {
      add(
        .note,
        "discovery: the certificate is not for \(address), so Apple's and Windows' clients do not switch by themselves")
    }
  }
}

extension IPAddress {
  fileprivate var isUnspecified: Bool { octets.allSatisfy { $0 == 0 } }

  /// Whether a listener at this address takes connections to another one.
  fileprivate func serves(_ address: IPAddress) -> Bool {
    self == address || isUnspecified && isIPv6 == address.isIPv6
  }
}

extension SocketAddress {
  fileprivate var ip: IPAddress { IPAddress(octets: octets)! }
}
