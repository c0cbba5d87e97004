// Rule.swift -- one `[[rule]]`: names, and where their answers come from.

import DNSWire

extension Configuration {
  /// An exception for some names. Of all rules the first that matches wins.
  public struct Rule: Hashable, Sendable {
    /// The names; never empty.
    public var names: [NamePattern]
    /// Where their answers come from.
    public var use: Use
    /// Overrides `localdns.fallback`; nil keeps it.
    public var fallback: Fallback?
    /// With `.localDNS`: these resolvers in the place of `localdns.servers`; empty keeps those.
    public var servers: [LocalServer] = []
    /// With `.pinned`: the addresses to answer; never empty there.
    public var addresses: [IPAddress] = []
    /// Overrides `cache.max_ttl`; whole seconds.
    public var maxTTL: Duration?
    /// Overrides `cache.min_ttl`; whole seconds.
    public var minTTL: Duration?
    /// Overrides `cache.stale`.
    public var stale: Stale?
    /// Overrides `cache.immutable`: whether entries of these names never expire while the program runs.
    public var isImmutable: Bool?

    /// A rule without overrides.
    public init(names: [NamePattern], use: Use) {
      self.names = names
      self.use = use
    }
  }

  /// Where the answers of a rule's names come from.
  public enum Use: Hashable, Sendable {
    /// From the provider of this name.
    case provider(String)
    /// From LocalDNS.
    case localDNS
    /// Nowhere: the name does not exist.
    case nxdomain
    /// Nowhere: the query is refused.
    case refused
    /// From the rule itself.
    case pinned

    static let words: [String: Use] = [
      "localdns": .localDNS, "nxdomain": .nxdomain, "refused": .refused, "pinned": .pinned,
    ]
  }
}

extension Configuration.Rule {
  /// What a rule may lean on, and what it must not.
  struct Context {
    let providers: [String]
    let hasLocalDNS: Bool
    let ownAddresses: [Endpoint]
  }

  /// Reads all rules.
  static func readAll(from root: TableReader, _ context: Context) -> [Configuration.Rule] {
    var rules: [Configuration.Rule] = []
    var seen: Set<NamePattern> = []
    root.tables("rule") { reader in
      var rule = Configuration.Rule(names: [], use: .localDNS)
      rule.read(from: reader, context)
      for name in rule.names where !seen.insert(name).inserted {
        reader.warn("names", "an earlier rule has \(shownText(name.description)) too, and the first match wins")
      }
      rules.append(rule)
    }
    return rules
  }

  private mutating func read(from reader: TableReader, _ context: Context) {
    reader.require("names", allowed: Form<[NamePattern]>.patterns.allowed)
    reader.require("use", allowed: Form<Configuration.Use>.use.allowed)
    reader.read("names", &names, .patterns)
    reader.read("use", &use, .use)
    reader.read("fallback", &fallback, .optional(.choice))
    reader.read("servers", &servers, .distinctList(of: .localServer))
    reader.read("addresses", &addresses, .distinctList(of: .address))
    reader.read("max_ttl", &maxTTL, .optional(.ttl()))
    reader.read("min_ttl", &minTTL, .optional(.ttl()))
    reader.read("stale", &stale, .optional(.choice))
    if reader.isGiven("immutable") {
      var isFixed = false
      reader.read("immutable", &isFixed, .boolean)
      isImmutable = isFixed
    }
    refuseContradictions(reader, context)
  }

  private func refuseContradictions(_ reader: TableReader, _ context: Context) {
    // Where `use` itself is wrong, what may stand beside it is not known.
    guard reader.isSound("use") else { return }
    if case .provider(let name) = use, !context.providers.contains(name) {
      let choices = context.providers + Configuration.Use.words.keys.sorted()
      reader.refuse("use", allowed: choices.map { "\"\($0)\"" }.joined(separator: ", "))
    }
    if use == .localDNS, servers.isEmpty, !context.hasLocalDNS, reader.isSound("servers") {
      reader.refuse("use", allowed: "\"localdns\" only with servers here or in [localdns]")
    }
    reader.refuseOwn("servers", servers, context.ownAddresses)
    if !servers.isEmpty, use != .localDNS {
      reader.refuse("servers", allowed: "nothing here, unless use = \"localdns\"")
    }
    if !addresses.isEmpty, use != .pinned {
      reader.refuse("addresses", allowed: "nothing here, unless use = \"pinned\"")
    }
    if use == .pinned, addresses.isEmpty, reader.isSound("addresses") {
      reader.refuse("addresses", allowed: "at least one address where use = \"pinned\"")
    }
    if fallback != nil, Configuration.Use.words.values.contains(use) {
      reader.refuse("fallback", allowed: "nothing here, unless use names a provider")
    }
    if let minTTL, let maxTTL { reader.refuseInverted("min_ttl", minTTL, "max_ttl", maxTTL) }
  }
}

extension Form where Result == [NamePattern] {
  static var patterns: Form { .list(of: .namePattern, atLeast: 1) }
}

extension Form where Result == Configuration.Use {
  static var use: Form {
    Form("a provider's name, \"localdns\", \"nxdomain\", \"refused\" or \"pinned\"") { value in
      guard let line = value.line, !line.isEmpty else { return nil }
      return Configuration.Use.words[line] ?? .provider(line)
    }
  }
}
