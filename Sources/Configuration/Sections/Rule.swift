// Rule.swift -- one `[[rule]]`: names and the source of their answers.

import DNSWire

extension Configuration {
  /// An exception for some names. The first rule that matches wins.
  public struct Rule: Hashable, Sendable {
    /// Names with all below; `"*.lan"` only those below, `"=lan"` only itself. Never empty.
    public var names: [NamePattern]
    /// Source of their answers: a provider, `localdns`, `nxdomain`, `refused` or `pinned`.
    public var use: Use
    /// With a provider, replaces `localdns.fallback`.
    public var fallback: Fallback?
    /// With `localdns`, resolvers to use instead of `localdns.servers`.
    public var servers: [LocalServer] = []
    /// With `pinned`, the addresses to answer with.
    public var addresses: [IPAddress] = []
    /// Replaces `cache.max_ttl` for these names.
    public var maxTTL: Duration?
    /// Replaces `cache.min_ttl` for these names.
    public var minTTL: Duration?
    /// Replaces `cache.stale` for these names.
    public var stale: Stale?
    /// Replaces `cache.immutable` for these names.
    public var isImmutable: Bool?

    /// A rule without overrides.
    public init(names: [NamePattern], use: Use) {
      self.names = names
      self.use = use
    }
  }

  /// The source of the answers for a rule's names.
  public enum Use: Hashable, Sendable {
    /// The provider of this name.
    case provider(String)
    /// The resolvers of the rule's `servers`, otherwise those of `localdns.servers`.
    case localDNS
    /// The daemon answers NXDOMAIN.
    case nxdomain
    /// The daemon answers REFUSED.
    case refused
    /// The daemon answers with the rule's own addresses.
    case pinned

    static let words: [String: Use] = [
      "localdns": .localDNS, "nxdomain": .nxdomain, "refused": .refused, "pinned": .pinned,
    ]
  }
}

extension Configuration.Rule {
  /// The parts of the configuration that a rule is checked against.
  struct Context {
    let providers: [String]
    let hasLocalDNS: Bool
    let ownAddresses: [Endpoint]
  }

  static func readAll(from root: TableReader, _ context: Context) -> [Configuration.Rule] {
    var rules: [Configuration.Rule] = []
    var seen: Set<NamePattern> = []
    root.tables("rule") { reader in
      var rule = Configuration.Rule(names: [], use: .localDNS)
      rule.read(from: reader, context)
      for name in rule.names where !seen.insert(name).inserted {
        reader.warn("names", "an earlier rule already covers \(shownText(name.description)); the first match wins")
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
    reader.read("immutable", &isImmutable, .some(.boolean))
    refuseContradictions(reader, context)
  }

  private func refuseContradictions(_ reader: TableReader, _ context: Context) {
    // Which other keys are allowed depends on `use`.
    guard reader.isSound("use") else { return }
    if case .provider(let name) = use, !context.providers.contains(name) {
      let choices = context.providers + Configuration.Use.words.keys.sorted()
      let words = choices.map { "\"\($0)\"" }.joined(separator: ", ")
      reader.refuse("use", is: "is not a configured provider", allowed: "one of \(words)")
    }
    if use == .localDNS, servers.isEmpty, !context.hasLocalDNS, reader.isSound("servers") {
      reader.refuse("use", is: "has no servers", allowed: "servers in this rule or in [localdns]")
    }
    reader.refuseOwn("servers", servers, context.ownAddresses)
    if !servers.isEmpty, use != .localDNS {
      reader.refuse("servers", "only valid with use = \"localdns\"", remedy: "remove the key")
    }
    if !addresses.isEmpty, use != .pinned {
      reader.refuse("addresses", "only valid with use = \"pinned\"", remedy: "remove the key")
    }
    if use == .pinned, addresses.isEmpty, reader.isSound("addresses") {
      reader.refuse("addresses", is: "is not enough", allowed: "at least one address for use = \"pinned\"")
    }
    if fallback != nil, Configuration.Use.words.values.contains(use) {
      reader.refuse("fallback", "only valid if use names a provider", remedy: "remove the key")
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
