// Rule.swift -- one `[[rule]]`: names and the source of their answers.

import DNSWire

extension Configuration {
  /// An exception for some names. The first rule that matches wins.
  public struct Rule: Hashable, Sendable {
    /// Name in `query`, logs and metrics, by default the number of the rule.
    public var name: String?
    /// Names with all below; `"*.lan"` only those below, `"=lan"` only itself.
    public var names: [NamePattern]
    /// Lists of names: paths, URLs and names of `[[list]]`.
    public var lists: [ListItem] = []
    /// Types of the questions that the rule is for; empty means all.
    public var types: [RuleType] = []
    /// Clients that the rule is for, by their addresses; empty means all.
    public var clients: [IPPrefix] = []
    /// Providers in their order, or one of `default`, `localdns`, `nxdomain`, `nodata`, `refused`, `pinned`.
    public var use: Use
    /// With providers or `default`, replaces `localdns.fallback`.
    public var fallback: Fallback?
    /// With `localdns`, resolvers to use instead of `localdns.servers`.
    public var servers: [LocalServer] = []
    /// With `pinned`, the addresses to answer with.
    public var addresses: [IPAddress] = []
    /// Sets of nftables, `family#table#set`, that get the addresses of the answers.
    public var sets: [FirewallSetName] = []
    /// Time that an address stays in a set after its last answer has expired.
    public var setKeep: Duration = .seconds(3600)
    /// Replaces `cache.max_ttl` for these names.
    public var maxTTL: Duration?
    /// Replaces `cache.min_ttl` for these names.
    public var minTTL: Duration?
    /// Replaces `cache.stale` for these names.
    public var stale: Stale?
    /// Replaces `cache.immutable` for these names.
    public var isImmutable: Bool?
  }

  /// The types that rules tell apart.
  public enum RuleType: String, CaseIterable, Hashable, Sendable {
    case ipv4 = "A"
    case ipv6 = "AAAA"
    /// HTTPS and SVCB, which have addresses too.
    case https = "HTTPS"
    case pointer = "PTR"
    /// Every type without a case of its own.
    case other
  }

  /// The source of the answers for a rule's names.
  public enum Use: Hashable, Sendable {
    /// The providers of these names, in this order.
    case providers([String])
    /// As if no rule matched.
    case standard
    /// The resolvers of the rule's `servers`, otherwise those of `localdns.servers`.
    case localDNS
    /// The daemon answers NXDOMAIN.
    case nxdomain
    /// The daemon answers that the name has no such records.
    case noData
    /// The daemon answers REFUSED.
    case refused
    /// The daemon answers with the rule's own addresses.
    case pinned

    /// Whether it answers in place of the names' owners.
    public var blocks: Bool {
      switch self {
      case .nxdomain, .noData, .refused, .pinned: true
      case .providers, .standard, .localDNS: false
      }
    }

    static let words: [String: Use] = [
      "default": .standard, "localdns": .localDNS, "nxdomain": .nxdomain, "nodata": .noData, "refused": .refused,
      "pinned": .pinned,
    ]
  }
}

extension Configuration.Rule {
  /// Largest number of different prefixes in the rules' `clients`.
  static let mostPrefixes = 63

  /// - Parameter configuration: what rules are checked against, as read so far.
  static func readAll(from root: TableReader, beside configuration: Configuration) -> [Configuration.Rule] {
    var rules: [Configuration.Rule] = []
    // The types of each pattern that earlier rules have.
    var covered: [NamePattern: Set<Configuration.RuleType>] = [:]
    var prefixes: Set<IPPrefix> = []
    var listCount = 0
    root.tables("rule") { reader in
      var rule = Configuration.Rule(names: [], use: .localDNS)
      rule.read(from: reader, configuration)
      let types = Set(rule.types.isEmpty ? Configuration.RuleType.allCases : rule.types)
      for name in rule.names where reader.isSound("types") {
        if types.isSubset(of: covered[name, default: []]) {
          reader.warn("names", "an earlier rule already covers \(shownText(name.description)); the first match wins")
        }
        if rule.clients.isEmpty, reader.isSound("clients") { covered[name, default: []].formUnion(types) }
      }
      let before = prefixes.count
      prefixes.formUnion(rule.clients)
      if before <= mostPrefixes, prefixes.count > mostPrefixes {
        reader.refuse(
          "clients", is: "makes \(prefixes.count) different prefixes in all rules", allowed: "at most \(mostPrefixes)")
      }
      listCount += rule.lists.count
      if listCount > Configuration.mostLists, listCount - rule.lists.count <= Configuration.mostLists {
        reader.refuse(
          "lists", is: "makes \(listCount) lists in all rules", allowed: "at most \(Configuration.mostLists)")
      }
      if let name = rule.name, name.utf8.allSatisfy({ (48...57).contains($0) }) {
        reader.refuse("name", is: "could be the number of another rule", allowed: "another name")
      }
      if let name = rule.name, rules.contains(where: { $0.name == name }) {
        reader.refuse("name", is: "is the name of an earlier rule", allowed: "another name")
      }
      rules.append(rule)
    }
    return rules
  }

  private mutating func read(from reader: TableReader, _ configuration: Configuration) {
    let patterns = Form<[NamePattern]>.list(of: .namePattern, atLeast: reader.isGiven("lists") ? 0 : 1)
    if !reader.isGiven("lists") { reader.require("names", allowed: patterns.allowed) }
    reader.require("use", allowed: Form<Configuration.Use>.use.allowed)
    reader.read("name", &name, .optional(.identifier))
    reader.read("names", &names, patterns)
    reader.read("lists", &lists, .distinctList(of: .listItem))
    if reader.isSound("lists"), reader.isSound("names"), names.isEmpty, lists.isEmpty, reader.isGiven("lists") {
      reader.refuse("lists", is: "is not enough", allowed: "names or lists")
    }
    reader.checkLists(lists, among: configuration.lists)
    reader.read("types", &types, .distinctList(of: .choice))
    reader.read("clients", &clients, .distinctList(of: .exactPrefix))
    reader.read("use", &use, .use)
    reader.read("fallback", &fallback, .optional(.choice))
    reader.read("servers", &servers, .distinctList(of: .localServer))
    reader.read("addresses", &addresses, .distinctList(of: .address))
    reader.read("sets", &sets, .distinctList(of: .firewallSet))
    reader.read("set_keep", &setKeep, .ttl())
    reader.read("max_ttl", &maxTTL, .optional(.ttl()))
    reader.read("min_ttl", &minTTL, .optional(.ttl()))
    reader.read("stale", &stale, .optional(.choice))
    reader.read("immutable", &isImmutable, .some(.boolean))
    refuseContradictions(reader, configuration)
  }

  private func refuseContradictions(_ reader: TableReader, _ configuration: Configuration) {
    // Which other keys are allowed depends on `use`.
    guard reader.isSound("use") else { return }
    let providers = configuration.providers.map(\.name)
    if case .providers(let names) = use, let unknown = names.first(where: { !providers.contains($0) }) {
      let choices = providers + Configuration.Use.words.keys.sorted()
      let words = choices.map { "\"\($0)\"" }.joined(separator: ", ")
      let subject = names.count > 1 ? "has \(shownText(unknown)), which " : ""
      reader.refuse("use", is: "\(subject)is not a configured provider", allowed: "one of \(words)")
    }
    if use == .nxdomain, !types.isEmpty {
      reader.refuse("types", "not possible with use = \"nxdomain\", which is for every type", remedy: "use \"nodata\"")
    }
    if use == .localDNS, servers.isEmpty, configuration.localDNS.servers.isEmpty, reader.isSound("servers") {
      reader.refuse("use", is: "has no servers", allowed: "servers in this rule or in [localdns]")
    }
    reader.refuseOwn("servers", servers, configuration.listen.addresses)
    if !servers.isEmpty, use != .localDNS {
      reader.refuse("servers", "only valid with use = \"localdns\"", remedy: "remove the key")
    }
    if !addresses.isEmpty, use != .pinned {
      reader.refuse("addresses", "only valid with use = \"pinned\"", remedy: "remove the key")
    }
    if use == .pinned, addresses.isEmpty, reader.isSound("addresses") {
      reader.refuse("addresses", is: "is not enough", allowed: "at least one address for use = \"pinned\"")
    }
    if fallback != nil, use != .standard, Configuration.Use.words.values.contains(use) {
      reader.refuse("fallback", "only valid if use names providers or is \"default\"", remedy: "remove the key")
    }
    if !sets.isEmpty, use.blocks {
      reader.refuse(
        "sets", "only valid if use names providers or is \"default\" or \"localdns\"", remedy: "remove the key")
    }
    if sets.isEmpty, reader.isGiven("set_keep"), reader.isSound("sets") {
      reader.warn("set_keep", "unused: sets is empty")
    }
    if let minTTL, let maxTTL { reader.refuseInverted("min_ttl", minTTL, "max_ttl", maxTTL) }
    for prefix in clients where !configuration.listen.allow.contains(where: { $0.mayInclude(prefix) }) {
      reader.warn("clients", "\(prefix) may not ask: listen.allow does not have it")
    }
    guard reader.isSound("types"), reader.isSound("addresses") else { return }
    for address in addresses where use == .pinned && !types.isEmpty && !types.contains(address.isIPv6 ? .ipv6 : .ipv4) {
      reader.warn("addresses", "\(address) is not used: types has no \"\(address.isIPv6 ? "AAAA" : "A")\"")
    }
  }
}

extension Configuration.ClientNetwork {
  /// Whether an address of a prefix may be in it.
  fileprivate func mayInclude(_ prefix: IPPrefix) -> Bool {
    guard case .prefix(let own) = self else { return true }
    return own.contains(prefix.address) || prefix.contains(own.address)
  }
}

extension Form where Result == IPPrefix {
  /// A prefix without bits behind it.
  static var exactPrefix: Form {
    Form("an address or a prefix without host bits, e.g. \"192.168.7.0/24\" or \"fd00:7::/64\"") { value in
      guard let text = value.line, let prefix = IPPrefix(text: text) else { return nil }
      // Queries over IPv4 never have a mapped address.
      guard prefix.address.unmapped == prefix.address else { return nil }
      return IPAddress(text: text.prefix { $0 != "/" }) == prefix.address ? prefix : nil
    }
  }
}

extension Form where Result == FirewallSetName {
  /// An element of `sets`.
  fileprivate static var firewallSet: Form {
    Form("family#table#set with the family inet, ip or ip6, e.g. \"inet#fw#domestic4\"") { value in
      value.line.flatMap { try? FirewallSetName(text: $0) }
    }
  }
}

extension Form where Result == Configuration.Use {
  static var use: Form {
    let names = Form<[String]>.distinctList(of: .providerName, atLeast: 1)
    let word = Form(
      "a provider's name, an array of several, \"default\", \"localdns\", \"nxdomain\", \"nodata\", \"refused\" or \"pinned\""
    ) { value in
      guard let line = value.line, !line.isEmpty else { return nil }
      return Configuration.Use.words[line] ?? .providers([line])
    }
    return Form(allowed: word.allowed) { value, place, report in
      guard case .array = value else { return word.read(value, place, report) }
      return names.read(value, place, report).map { .providers($0) }
    }
  }
}

extension Form where Result == String {
  /// A provider in an array of them, where no word may stand.
  fileprivate static var providerName: Form {
    Form("a provider's name") { value in
      value.line.flatMap { isIdentifier($0) && Configuration.Use.words[$0] == nil ? $0 : nil }
    }
  }
}
