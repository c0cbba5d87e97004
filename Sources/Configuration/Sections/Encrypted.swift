// Encrypted.swift -- the `[encrypted]` section: DNS over TLS and over HTTPS, their clients, and what they prove who they are by.
//
// The files that it names are not read here: CertificatePair and TokenList judge them, also each time that they change.

import DNSWire

extension Configuration {
  /// DNS over TLS (DoT, RFC 7858) and over HTTPS (DoH, RFC 8484). Without an address nothing of it exists.
  public struct Encrypted: Hashable, Sendable {
    /// Addresses for DNS over TLS; Android needs port 853.
    public var dot: [Endpoint] = []
    /// Addresses for DNS over HTTPS, with HTTP/2 and HTTP/1.1.
    public var doh: [Endpoint] = []
    /// Addresses for DNS over HTTP/1.1 without TLS, behind a proxy that has the certificate.
    public var dohPlain: [Endpoint] = []
    /// Name of the server, which its certificate has; tokens, discovery and profiles need it. In lower case.
    public var name: DomainName?
    /// PEM file with the certificate and its whole chain; needed with `dot` or `doh`.
    public var certificateFile: String?
    /// PEM file with the certificate's key, of mode 0640 or stricter; needed with `dot` or `doh`.
    public var keyFile: String?
    /// Path of DNS over HTTPS. Does not end with a slash.
    public var path = "/dns-query"
    /// Whether `GET /resolve` answers in JSON, for programs.
    public var json = false
    /// Clients that may ask; `"connected"` means the networks of this machine, and `"listen"` those of `listen.allow`.
    public var allow: [EncryptedClients] = [.listen]
    /// File with lines `LABEL TOKEN`; with it only clients with one of its tokens are answered.
    public var tokensFile: String?
    /// Proxies whose connections begin with a PROXY header of version 2, which names the client.
    public var proxyProtocol: [IPPrefix] = []
    /// Proxies whose `X-Forwarded-For` names the client, on `doh_plain` only.
    public var forwardedFrom: [IPPrefix] = []
    /// Connections in all; beyond that a new one replaces an idle one.
    public var connections = 512
    /// Connections of one client: an IPv4 address or an IPv6 /56.
    public var perClient = 32
    /// New connections of one client in a second; 0 means no limit. Bursts of ten seconds' worth are allowed.
    public var newPerSecond = 10
    /// Idle time of a connection; shorter while more than half of them are open.
    public var idle: Duration = .seconds(30)
    /// Whether clients that ask for `_dns.resolver.arpa` learn of these listeners (DDR, RFC 9462).
    public var ddr = true
    /// Addresses under which clients reach this machine, if it listens on others.
    public var published: [IPAddress] = []

    /// Whether any address is served.
    public var hasListeners: Bool { usesCertificate || !dohPlain.isEmpty }

    /// Whether any address is served over TLS.
    public var usesCertificate: Bool { !dot.isEmpty || !doh.isEmpty }
  }

  /// One entry of `encrypted.allow`.
  public enum EncryptedClients: Hashable, Sendable {
    /// Those of `listen.allow`.
    case listen
    case network(ClientNetwork)
  }

  /// The clients that the encrypted listeners serve, with those of `listen.allow` in the place of `"listen"`.
  public var encryptedClients: [ClientNetwork] {
    encrypted.allow.flatMap { entry -> [ClientNetwork] in
      switch entry {
      case .listen: listen.allow
      case .network(let network): [network]
      }
    }
  }
}

extension Configuration.Encrypted {
  mutating func read(from reader: TableReader, beside others: Configuration) {
    reader.read("dot", &dot, .distinctList(of: .listenEndpoint(port: 853)))
    reader.read("doh", &doh, .distinctList(of: .listenEndpoint(port: 443)))
    reader.read("doh_plain", &dohPlain, .distinctList(of: .listenEndpoint(port: 8053)))
    reader.read("name", &name, .optional(.hostName))
    reader.read("certificate_file", &certificateFile, .optional(.absolutePath))
    reader.read("key_file", &keyFile, .optional(.absolutePath))
    reader.read("path", &path, .urlPath)
    reader.read("json", &json, .boolean)
    reader.read("allow", &allow, .list(of: .encryptedClients, atLeast: 1))
    reader.read("tokens_file", &tokensFile, .optional(.absolutePath))
    reader.read("proxy_protocol", &proxyProtocol, .distinctList(of: .exactPrefix))
    reader.read("forwarded_from", &forwardedFrom, .distinctList(of: .exactPrefix))
    reader.read("connections", &connections, .integer(1...65_536))
    reader.read("per_client", &perClient, .integer(1...65_536))
    reader.read("new_per_second", &newPerSecond, .integer(0...1_000_000))
    reader.read("idle", &idle, .duration(.seconds(1) ... .seconds(600)))
    reader.read("ddr", &ddr, .boolean)
    reader.read("published", &published, .distinctList(of: .reachableAddress))
    checkAddresses(reader, beside: others)
    checkIdentity(reader)
    reader.judgeProxies("proxy_protocol", proxyProtocol)
    reader.judgeProxies("forwarded_from", forwardedFrom)
    guard ["dot", "doh", "doh_plain"].allSatisfy(reader.isSound) else { return }
    guard hasListeners else {
      if self != Configuration.Encrypted() {
        reader.report.warn("has no effect without dot, doh or doh_plain", at: reader.place)
      }
      return
    }
    warnOfUnused(reader)
    var all = others
    all.encrypted = self
    warnOfOpenness(reader, all.encryptedClients)
  }

  /// Refuses addresses that cannot be opened beside others, and those that the network would reach without TLS.
  private func checkAddresses(_ reader: TableReader, beside others: Configuration) {
    var taken = others.listen.addresses.map { (key: "listen.addresses", address: $0) }
    if let address = others.web.address { taken.append(("web.address", address)) }
    for (key, addresses) in [("dot", dot), ("doh", doh), ("doh_plain", dohPlain)] {
      reader.judge(key, addresses)
      for (index, address) in addresses.enumerated() {
        guard let other = taken.first(where: { address.excludes($0.address) }) else { continue }
        reader.report.refuse(
          "\(address) is already served: \(other.address) in \(other.key)", at: reader.place.key(key).index(index),
          allowed: "use another port or address", .failure)
      }
      taken += addresses.map { ("encrypted.\(key)", $0) }
    }
    guard proxyProtocol.isEmpty, forwardedFrom.isEmpty, reader.isSound("proxy_protocol"),
      reader.isSound("forwarded_from")
    else { return }
    for (index, address) in dohPlain.enumerated() where !address.address.isLoopback {
      reader.report.refuse(
        "\(address) would serve the network without TLS", at: reader.place.key("doh_plain").index(index),
        allowed: "use a loopback address, or name the TLS proxy in proxy_protocol or forwarded_from", .failure)
    }
  }

  /// Refuses listeners without a certificate, tokens without a name, and two answers at one path.
  private func checkIdentity(_ reader: TableReader) {
    if usesCertificate, certificateFile == nil, reader.isSound("certificate_file") {
      reader.refuse(
        "certificate_file", "needed with dot and doh", remedy: "give a PEM file with the certificate and its chain")
    }
    if usesCertificate, keyFile == nil, reader.isSound("key_file") {
      reader.refuse("key_file", "needed with dot and doh", remedy: "give a PEM file with the certificate's key")
    }
    if tokensFile != nil, name == nil, reader.isSound("name") {
      reader.refuse("tokens_file", "tokens need a name that devices can be given", remedy: "set encrypted.name")
    }
    if json, path == "/resolve" || path.hasPrefix("/resolve/") {
      reader.refuse("path", is: "belongs to json = true", allowed: "another path than /resolve")
    }
  }

  private func warnOfUnused(_ reader: TableReader) {
    let unused: [(key: String, isUnused: Bool, missing: String)] = [
      ("certificate_file", certificateFile != nil && !usesCertificate, "dot or doh"),
      ("key_file", keyFile != nil && !usesCertificate, "dot or doh"),
      ("json", json && doh.isEmpty && dohPlain.isEmpty, "doh or doh_plain"),
      ("forwarded_from", !forwardedFrom.isEmpty && dohPlain.isEmpty, "doh_plain"),
      ("published", !published.isEmpty && name == nil && reader.isSound("name"), "name"),
    ]
    for (key, isUnused, missing) in unused where isUnused { reader.warn(key, "has no effect without \(missing)") }
  }

  private func warnOfOpenness(_ reader: TableReader, _ clients: [Configuration.ClientNetwork]) {
    guard tokensFile == nil, reader.isSound("tokens_file"), reader.isSound("allow") else { return }
    for case .prefix(let prefix) in clients where prefix.length == 0 {
      reader.warn("allow", "\(prefix) allows every client, and there is no tokens_file: this is an open resolver")
    }
  }
}

extension TableReader {
  /// Refuses prefixes of proxies that have loopback among other addresses, and warns of those that are loopback.
  fileprivate func judgeProxies(_ key: String, _ prefixes: [IPPrefix]) {
    let loopbacks = ["127.0.0.0/8", "::1/128"].compactMap { IPPrefix(text: $0) }
    for (index, prefix) in prefixes.enumerated() {
      if loopbacks.contains(where: { $0.contains(prefix.address) && prefix.length >= $0.length }) {
        report.warn("\(prefix): every local program can name any client", at: place.key(key).index(index))
      } else if loopbacks.contains(where: { prefix.contains($0.address) }) {
        report.refuse(
          "\(prefix) has this machine's loopback in it, so that every local program could name any client",
          at: place.key(key).index(index), allowed: "name the addresses of the proxies", .failure)
      }
    }
  }
}

extension Endpoint {
  /// Whether no two TCP sockets can be bound to this endpoint and the other one.
  fileprivate func excludes(_ other: Endpoint) -> Bool {
    self == other && port != 0 || isCovered(by: other) || other.isCovered(by: self)
  }
}

extension Configuration.EncryptedClients: CustomStringConvertible {
  /// As in the file.
  public var description: String {
    switch self {
    case .listen: "listen"
    case .network(.connected): "connected"
    case .network(.prefix(let prefix)): "\(prefix)"
    }
  }
}

extension Form where Result == Configuration.EncryptedClients {
  fileprivate static var encryptedClients: Form {
    Form("\"listen\", \"connected\" or a prefix, e.g. \"192.0.2.0/24\"") { value in
      guard let line = value.line else { return nil }
      return line == "listen" ? .listen : Configuration.ClientNetwork(text: line).map { .network($0) }
    }
  }
}

extension Form where Result == DomainName {
  /// A name that a certificate can have.
  fileprivate static var hostName: Form {
    Form("a host name in ASCII, e.g. \"dns.example.com\"") { value in
      guard let line = value.line, case .name(let name)? = Host(text: line) else { return nil }
      return name
    }
  }
}

extension Form where Result == IPAddress {
  /// An address that clients elsewhere can connect to.
  fileprivate static var reachableAddress: Form {
    Form("an IPv4 or IPv6 address that clients can reach, e.g. \"192.0.2.53\"") { value in
      guard let address = value.line.flatMap({ IPAddress(text: $0) }), !address.isLinkLocal,
        !address.octets.allSatisfy({ $0 == 0 })
      else { return nil }
      return address
    }
  }
}

extension Form where Result == String {
  /// The path of a URL: segments of unreserved characters (RFC 3986 section 2.3), to which `/TOKEN` can be added.
  fileprivate static var urlPath: Form {
    Form("\"/\" and letters, digits or -._~/, at most 128 in all and without \"/\" at the end, e.g. \"/dns-query\"") {
      value in
      guard let line = value.line, line.hasPrefix("/"), line.utf8.count <= 128 else { return nil }
      let segments = line.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
      let isSound = segments.allSatisfy { segment in
        !["", ".", ".."].contains(segment)
          && segment.utf8.allSatisfy { isLetterOrDigit($0) || "-._~".utf8.contains($0) }
      }
      return isSound ? line : nil
    }
  }
}
