// ProviderReading.swift -- reads `[[provider]]` tables.

import DNSWire

extension Configuration.Provider {
  /// Reads all providers; `context` is what they may lean on.
  static func readAll(from root: TableReader, _ context: Context) -> [Configuration.Provider] {
    guard let value = root.value("provider") else { return [Configuration.Provider()] }
    var providers: [Configuration.Provider] = []
    var names: Set<String> = []
    let uniqueNames = uniqueNames(of: value)
    let shownName = { (table: [String: Value]) in
      table["name"]?.line.flatMap { uniqueNames.contains($0) ? $0 : nil }
    }
    root.tables("provider", atMost: 64, name: shownName) { reader in
      var provider = Configuration.Provider()
      provider.read(from: reader, context)
      // Without a kind there is no default name that could clash.
      let isNamed = reader.isSound("kind") || reader.isGiven("name")
      if isNamed, !names.insert(provider.name).inserted {
        reader.refuse("name", allowed: "a name of its own; an earlier provider is \"\(provider.name)\" too")
      }
      providers.append(provider)
    }
    if value == .array([]) { root.refuse("provider", allowed: "at least one [[provider]], or no key for the default") }
    return providers
  }

  /// What a provider may lean on, and what it must not.
  struct Context {
    let hasLocalDNS: Bool
    let ownAddresses: [Endpoint]
  }

  /// A provider is called by its name in messages where that is sound and unique, and else by its index.
  private static func uniqueNames(of value: Value) -> Set<String> {
    guard case .array(let tables) = value else { return [] }
    var counts: [String: Int] = [:]
    for case .table(let table) in tables {
      if let name = table["name"]?.line, isIdentifier(name) { counts[name, default: 0] += 1 }
    }
    return Set(counts.filter { $0.value == 1 }.keys)
  }

  private mutating func read(from reader: TableReader, _ context: Context) {
    var kind = ServiceKind.alidns
    reader.read("kind", &kind, .choice)
    name = kind.rawValue
    reader.read("name", &name, .identifier)
    if Configuration.Use.words[name] != nil {
      reader.refuse("name", allowed: "a name that is no word of rules, as \"\(name)\" is")
    }
    readCommonKeys(from: reader)
    guard reader.isSound("kind") else {
      // What else is right or wrong here depends on the kind.
      reader.ignore { key in
        ["scheme", "servers", "tls_name"].contains(key) || ServiceKind.allCases.contains { $0.owns(key) }
      }
      return
    }
    readService(kind, from: reader)
    refuseContradictions(reader, context)
    reader.refuseUnknownKeys { key in
      let owners = ServiceKind.allCases.filter { $0.owns(key) }.map { "\"\($0.rawValue)\"" }
      return owners.isEmpty ? nil : "a key of kind \(owners.joined(separator: " or "))"
    }
  }

  private mutating func readCommonKeys(from reader: TableReader) {
    reader.read("ca_file", &caFile, .optional(.absolutePath))
    reader.read("pins", &pins, .distinctList(of: .pin))
    reader.read("bootstrap", &bootstrap, .distinctList(of: .resolver))
    reader.read("proxy", &proxy, .optional(.credentialURL(schemes: ["http", "socks5h"])))
    reader.read("family", &family, .choice)
    reader.read("timeout", &timeout, .duration(.milliseconds(100) ... .seconds(10)))
    reader.read("attempts_before_switch", &attemptsBeforeSwitch, .integer(1...100))
    reader.read("return_to_first", &returnToFirst, .duration(.seconds(1) ... .seconds(86_400)))
    reader.read("client_subnet", &clientSubnet, .clientSubnet)
    reader.read("trust_ad", &trustsAD, .boolean)
    reader.read("requests_per_second", &requestsPerSecond, .integer(0...1_000_000))
    reader.read("units_per_day", &unitsPerDay, .integer(0...1_000_000_000_000))
    reader.read("fallback_on_empty", &fallbackOnEmpty, .boolean)
    reader.read("not_listed_ttl", &notListedTTL, .ttl())
    if let caFile { reader.requireReadable("ca_file", caFile) }
  }

  private mutating func readService(_ kind: ServiceKind, from reader: TableReader) {
    var url = kind.defaultURL
    switch kind {
    case .json:
      reader.read("url", &url, .serviceURL)
      service = .json
    case .doh:
      var method = Configuration.DoHMethod.post
      reader.read("url", &url, .serviceURL)
      reader.read("method", &method, .choice)
      service = .doh(method: method)
    default:
      var short = false
      reader.read("short", &short, .boolean)
      service = .alidns(account: Configuration.AliDNSAccount(from: reader), short: short)
    }
    readServers(of: url, kind, from: reader)
  }

  private mutating func readServers(of url: ServiceURL, _ kind: ServiceKind, from reader: TableReader) {
    let hasURL = kind != .alidns
    scheme = url.scheme
    reader.read("scheme", &scheme, .choice)
    if hasURL, scheme != url.scheme { reader.refuse("scheme", allowed: "\"\(url.scheme)\", as in url, or no scheme") }
    let base = url.with(scheme)
    tlsName = base.host.text
    path = base.path
    reader.read("tls_name", &tlsName, .tlsName)
    servers = kind.defaultServers(of: base, tlsName: reader.isGiven("tls_name") ? tlsName : nil)
    var texts: [ServerText] = []
    reader.read("servers", &texts, .distinctList(of: .server(allowsURL: hasURL), atLeast: 1))
    if !texts.isEmpty { servers = texts.map { $0.server(of: base, tlsName: tlsName) } }
  }

  private func refuseContradictions(_ reader: TableReader, _ context: Context) {
    if servers.contains(where: { $0.scheme == .http }) {
      let key = scheme == .https ? "servers" : ["scheme", "url"].first { reader.isGiven($0) } ?? "servers"
      reader.warn(key, "over http everyone on the path can read and forge every answer")
      if !pins.isEmpty { reader.refuse("pins", allowed: "nothing here with http, which has no certificate") }
    }
    if servers.allSatisfy({ !$0.host.mayBe(family) }) {
      reader.refuse("family", allowed: "a family that one of the servers has")
    }
    reader.refuseOwn("bootstrap", bootstrap.map { .endpoint($0) }, context.ownAddresses)
    let canFindNames = !bootstrap.isEmpty || context.hasLocalDNS
    if !canFindNames, servers.allSatisfy({ $0.host.isName }) {
      let key = ["servers", "url"].first { reader.isGiven($0) } ?? "servers"
      reader.refuse(key, allowed: "an address, since neither bootstrap nor localdns.servers can find a name")
    }
    if !canFindNames, let proxy, proxy.host.isName {
      reader.refuse("proxy", allowed: "an address, since neither bootstrap nor localdns.servers can find a name")
    }
  }
}

extension Configuration.AliDNSAccount {
  /// The account of a provider: all of its three keys, or nil.
  fileprivate init?(from reader: TableReader) {
    let isSecretGiven = reader.isSecretGiven("access_key_secret")
    let keys = [("account_id", reader.isGiven("account_id")), ("access_key_id", reader.isGiven("access_key_id"))]
    guard isSecretGiven || keys.contains(where: { $0.1 }) else { return nil }
    for (key, isGiven) in keys where !isGiven {
      reader.require(key, allowed: "all of account_id, access_key_id and access_key_secret_file, or none (unsigned)")
    }
    if !isSecretGiven {
      reader.require(
        "access_key_secret", allowed: "access_key_secret_file, _credential or _env beside the account's other keys")
    }
    var (accountID, accessKeyID) = ("", "")
    reader.read("account_id", &accountID, .identifier)
    reader.read("access_key_id", &accessKeyID, .identifier)
    guard let secret = reader.secret("access_key_secret") else { return nil }
    self.init(accountID: accountID, accessKeyID: accessKeyID, accessKeySecret: secret)
  }
}

extension ServiceURL {
  /// The same service over another transport; a port that was the old scheme's becomes the new one's.
  fileprivate func with(_ scheme: Scheme) -> ServiceURL {
    ServiceURL(
      scheme: scheme, host: host, port: port == self.scheme.defaultPort ? scheme.defaultPort : port, path: path)
  }
}

extension Host {
  /// Whether the host has, or may have, an address of the family.
  fileprivate func mayBe(_ family: Configuration.Family) -> Bool {
    guard case .address(let address) = self else { return true }
    return family == .auto || address.isIPv6 == (family == .ipv6)
  }
}
