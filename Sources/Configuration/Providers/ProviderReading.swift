// ProviderReading.swift -- reads `[[provider]]` tables.

import DNSWire

extension Configuration.Provider {
  /// Reads all providers, or the default one if the file has none.
  ///
  /// - Parameter others: the sections that providers are checked against.
  static func readAll(from root: TableReader, beside others: Configuration) -> [Configuration.Provider] {
    guard let value = root.value("provider") else { return [Configuration.Provider()] }
    var providers: [Configuration.Provider] = []
    var names: Set<String> = []
    let uniqueNames = uniqueNames(of: value)
    let shownName = { (table: [String: Value]) in name(of: table).flatMap { uniqueNames.contains($0) ? $0 : nil } }
    root.tables("provider", atMost: 64, name: shownName) { reader in
      var provider = Configuration.Provider()
      provider.read(from: reader, beside: others)
      // A provider without a valid kind has no default name that could clash.
      let isNamed = reader.isSound("kind") || reader.isGiven("name")
      if isNamed, !names.insert(provider.name).inserted {
        reader.refuse(
          "name", "another provider is already named \"\(provider.name)\"", remedy: "give each a unique name")
      }
      providers.append(provider)
    }
    if value == .array([]) {
      root.refuse("provider", is: "is not enough", allowed: "at least one [[provider]], or no such key for the default")
    }
    return providers
  }

  /// The names by which messages call a provider: valid and unique ones. Other providers are called by their position.
  private static func uniqueNames(of value: Value) -> Set<String> {
    guard case .array(let tables) = value else { return [] }
    var counts: [String: Int] = [:]
    for case .table(let table) in tables {
      if let name = name(of: table) { counts[name, default: 0] += 1 }
    }
    return Set(counts.filter { $0.value == 1 }.keys)
  }

  /// The name of a provider, given or by its kind; nil if it is not valid.
  private static func name(of table: [String: Value]) -> String? {
    if let name = table["name"] { return name.line.flatMap { isIdentifier($0) ? $0 : nil } }
    guard let kind = table["kind"] else { return ProviderKindName.alidns.rawValue }
    return kind.line.flatMap { ProviderKindName(rawValue: $0)?.rawValue }
  }

  mutating func read(from reader: TableReader, beside others: Configuration) {
    var kind = ProviderKindName.alidns
    reader.read("kind", &kind, .choice)
    name = kind.rawValue
    reader.read("name", &name, .identifier)
    if Configuration.Use.words[name] != nil {
      reader.refuse("name", is: "is reserved for rules", allowed: "another name")
    }
    readCommonKeys(from: reader)
    guard reader.isSound("kind") else {
      // Without the kind these keys cannot be checked.
      reader.ignore { key in ProviderKindName.allCases.contains { $0.owns(key) } }
      return
    }
    read(kind, from: reader)
    refuseContradictions(reader, others)
    // A secret that is only sent to this machine belongs to a test or a demonstration.
    if !isOnThisMachine { reader.warnOfInlineSecrets() }
    reader.refuseUnknownKeys { key in
      let owners = ProviderKindName.allCases.filter { $0.owns(key) }.map { "\"\($0.rawValue)\"" }
      guard let last = owners.last else { return nil }
      let others = owners.dropLast().joined(separator: ", ")
      let own = reader.isGiven("kind") ? "this provider has kind" : "without kind, a provider has kind"
      return ("needs kind = \(others.isEmpty ? last : "\(others) or \(last)")", "\(own) \"\(kind.rawValue)\"")
    }
  }

  private func leavesMachineInTheClear(_ server: Configuration.Server) -> Bool {
    server.scheme == .http && (proxy != nil || !server.host.isLoopback)
  }

  /// Whether every transfer stays on this machine. With a proxy, a loopback address is the proxy's.
  private var isOnThisMachine: Bool { !servers.isEmpty && proxy == nil && servers.allSatisfy(\.host.isLoopback) }

  private mutating func readCommonKeys(from reader: TableReader) {
    reader.read("ca_file", &caFile, .optional(.absolutePath))
    reader.read("pins", &pins, .distinctList(of: .pin))
    reader.read("bootstrap", &bootstrap, .distinctList(of: .resolver))
    reader.read("proxy", &proxy, .optional(.credentialURL(schemes: ["http", "socks5h"])))
    reader.read("family", &family, .choice)
    readCheckName(from: reader)
    reader.read("timeout", &timeout, .duration(.milliseconds(100) ... .seconds(10)))
    reader.read("attempts_before_switch", &attemptsBeforeSwitch, .integer(1...100))
    reader.read("return_to_first", &returnToFirst, .duration(.seconds(1) ... .seconds(86_400)))
    reader.read("client_subnet", &clientSubnet, .clientSubnet)
    reader.read("trust_ad", &trustsAD, .boolean)
    reader.read("requests_per_second", &requestsPerSecond, .integer(0...1_000_000))
    reader.read("units_per_day", &unitsPerDay, .integer(0...1_000_000_000_000))
    reader.read("connections", &connections, .integer(1...1024))
    reader.read("units_reserve", &unitsReserve, .number(0...0.9))
    reader.read("subnets_per_name", &subnetsPerName, .integer(0...1_000_000))
    reader.read("fallback_on_empty", &fallbackOnEmpty, .boolean)
    reader.read("not_listed_ttl", &notListedTTL, .ttl())
    // "-----BEGIN CERTIFICATE-----", or TRUSTED CERTIFICATE.
    if let caFile { reader.requireReadable("ca_file", caFile, mark: ("CERTIFICATE-----", "PEM certificates")) }
  }

  /// A key of earlier versions, which named a question to judge failures by.
  private func readCheckName(from reader: TableReader) {
    var unused: DomainName?
    reader.read("check_name", &unused, .optional(.domainName))
    if reader.isGiven("check_name") { reader.warn("check_name", "has no effect any more; remove it") }
  }

  private func refuseContradictions(_ reader: TableReader, _ others: Configuration) {
    if case .table = kind, clientSubnet != .none {
      reader.refuse(
        "client_subnet", is: "is not valid with kind \"table\"",
        allowed: "\"\", because a table is the same for every client")
    }
    switch (kind, clientSubnet) {
    case (.ucloud, .fixed), (.ucloud, .fromClient):
      reader.warn("client_subnet", "not used: this service takes no address of a client")
    case (.jdcloud, .fixed(let subnet)) where subnet.address.isIPv6:
      reader.warn("client_subnet", "not used: this service takes IPv4 addresses only")
    default: break
    }
    guard !servers.isEmpty else { return }
    if servers.contains(where: { $0.scheme == .http }) {
      if !kind.encryptsReplies, servers.contains(where: leavesMachineInTheClear), reader.isSound("url") {
        let key = scheme == .https ? nil : kind.schemeKeys.last
        reader.warn(key ?? "servers", "over http everyone on the path can read and forge every answer")
      }
      if !pins.isEmpty {
        reader.refuse("pins", "not possible with http, which has no certificates", remedy: "use https or remove pins")
      }
    }
    if servers.allSatisfy({ !$0.host.mayBe(family) }) {
      reader.refuse("family", is: "matches none of the servers", allowed: "the family of at least one server")
    }
    reader.refuseOwn("bootstrap", bootstrap.map { .resolver($0) }, others.listen.addresses)
    if !bootstrap.isEmpty, !kind.listsServerNames, servers.allSatisfy({ !$0.host.isName }) {
      let isGiven = reader.isGiven("servers")
      let known = isGiven ? "every server is an address" : "the addresses of this service are built in"
      reader.warn("bootstrap", "not used: \(known)")
    }
    // A proxy looks up names itself.
    let canFindNames = !bootstrap.isEmpty || others.hasLocalDNS || proxy != nil
    if !canFindNames, servers.allSatisfy({ $0.host.isName }) {
      let key = ["servers", "url"].first { kind.placeKeys.contains($0) && reader.isGiven($0) } ?? "servers"
      reader.refuse(
        key, "\(key == "url" ? "the URL's host" : "every server") is a name and nothing can resolve it",
        remedy: "use an address\(key == "url" ? " in the URL" : ""), or set bootstrap or localdns.servers")
    }
    if let proxy, proxy.host.isName {
      reader.refuse(
        "proxy", is: "has a name as its host", allowed: "an address, because names of proxies are not resolved")
    }
  }
}

extension Host {
  /// Whether the host is a loopback address.
  var isLoopback: Bool { if case .address(let address) = self { address.isLoopback } else { false } }

  /// Whether the host has an address of the family. A name may have one.
  fileprivate func mayBe(_ family: Configuration.Family) -> Bool {
    guard case .address(let address) = self else { return true }
    return family == .auto || address.isIPv6 == (family == .ipv6)
  }
}
