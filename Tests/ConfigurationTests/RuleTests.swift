// RuleTests.swift -- `[[rule]]`: patterns, sources of answers, and keys that contradict each other.

import Configuration
import DNSWire
import Testing

@Test(arguments: [
  ("corp.example", NamePattern.subtree(DomainName(text: "corp.example")!)),
  ("Corp.Example.", .subtree(DomainName(text: "corp.example")!)),
  ("*.lan", .below(DomainName(text: "lan")!)),
  ("=www.example.com", .exact(DomainName(text: "www.example.com")!)),
  (".", .subtree(.root)),
  ("*.", .below(.root)),
])
func `a pattern selects a name, what is below it, or both`(text: String, pattern: NamePattern) {
  #expect(NamePattern(text: text) == pattern)
  #expect(NamePattern(text: pattern.description) == pattern)
}

@Test(arguments: ["", "*", "=", "a..b", "a.*.b", "**.a", "*.*.a", "a b", "bücher.example", "a\u{0}", "=*.a"])
func `a text that is not a pattern is refused`(text: String) {
  #expect(NamePattern(text: text) == nil)
}

@Test func `every key of a rule is read`() throws {
  let rules = try configuration(
    """
    [[rule]]
    names = ["corp.example", "*.lan"]
    use = "localdns"
    servers = ["192.0.2.1", "system"]
    [[rule]]
    names = ["=pinned.example"]
    use = "pinned"
    addresses = ["192.0.2.7", "2001:db8::7"]
    max_ttl = "10s"
    [[rule]]
    names = ["cdn.example"]
    use = "alidns"
    fallback = "never"
    min_ttl = "1m"
    [[rule]]
    name = "domestic"
    names = ["cn"]
    types = ["A", "AAAA", "HTTPS", "PTR", "other"]
    use = ["alidns"]
    [[rule]]
    names = ["good.example"]
    use = "default"
    fallback = "on-failure"
    [[rule]]
    names = ["."]
    types = ["AAAA", "HTTPS"]
    use = "nodata"
    """
  ).rules
  #expect(
    rules.map(\.use) == [
      .localDNS, .pinned, .providers(["alidns"]), .providers(["alidns"]), .standard, .noData,
    ])
  #expect(rules.map(\.name) == [nil, nil, nil, "domestic", nil, nil])
  #expect(rules[3].types == Configuration.RuleType.allCases && rules[5].types == [.ipv6, .https])
  #expect(rules[4].fallback == .onFailure)
  #expect(rules[0].servers == [.resolver(Configuration.ResolverAddress(Endpoint(text: "192.0.2.1:53")!)), .system])
  #expect(rules[1].addresses.map(\.description) == ["192.0.2.7", "2001:db8::7"])
  #expect(rules[1].maxTTL == .seconds(10))
  #expect(rules[2].fallback == .never)
  #expect(rules[2].minTTL == .seconds(60))
  #expect(rules[2].maxTTL == nil)
}

@Test(arguments: [
  ("use = \"missing\"", "use"),
  ("use = \"pinned\"", "addresses"),
  ("use = \"pinned\"\naddresses = []", "addresses"),
  ("use = \"refused\"\nservers = [\"192.0.2.1\"]", "servers"),
  ("use = \"alidns\"\nservers = [\"192.0.2.1\"]", "servers"),
  ("use = \"localdns\"\naddresses = [\"192.0.2.1\"]", "addresses"),
  ("use = \"nxdomain\"\nfallback = \"never\"", "fallback"),
  ("use = \"localdns\"\nservers = [\"127.0.0.1:53\"]", "servers"),
  ("use = \"alidns\"\nmin_ttl = \"2m\"\nmax_ttl = \"1m\"", "min_ttl"),
  ("use = \"alidns\"\nmax_ttl = 60", "max_ttl"),
  ("use = []", "use"),
  ("use = [\"alidns\", \"alidns\"]", "use[#2]"),
  ("use = [\"alidns\", \"localdns\"]", "use[#2]"),
  ("use = [\"default\"]", "use[#1]"),
  ("use = [\"alidns\", \"other\"]", "use"),
  ("use = [\"alidns\", 1]", "use[#2]"),
  ("use = \"nxdomain\"\ntypes = [\"AAAA\"]", "types"),
  ("use = \"alidns\"\nname = \"2\"", "name"),
  ("use = \"nodata\"\nfallback = \"never\"", "fallback"),
  ("use = \"default\"\nservers = [\"192.0.2.1\"]", "servers"),
  ("use = \"alidns\"\ntypes = [\"A\", \"A\"]", "types[#2]"),
  ("use = \"alidns\"\ntypes = [\"MX\"]", "types[#1]"),
  ("use = \"alidns\"\nname = \"a b\"", "name"),
])
func `a rule that contradicts itself is one mistake`(text: String, key: String) {
  let found = mistakes("[[rule]]\nnames = [\"example.com\"]\n\(text)")
  #expect(found.count == 1)
  #expect(found.first?.hasPrefix("test.toml: rule[#1].\(key): ") == true)
}

@Test func `a rule cannot use LocalDNS without servers`() {
  let text = "[localdns]\nservers = []\n[[rule]]\nnames = [\"lan\"]\nuse = \"localdns\"\n"
  #expect(mistakes(text).count == 1)
  #expect(mistakes(text + "servers = [\"192.0.2.1\"]").isEmpty)
}

@Test func `a name of an earlier rule causes a warning`() {
  let rule = "[[rule]]\nnames = [\"lan\"]\nuse = \"nxdomain\"\n"
  #expect(warnings(rule).isEmpty)
  #expect(warnings(rule + rule).map { $0.hasPrefix("test.toml: rule[#2].names: ") } == [true])
}

@Test func `rules of different types do not cover each other`() {
  func rule(_ types: String) -> String { "[[rule]]\nnames = [\"lan\"]\nuse = \"nodata\"\ntypes = [\(types)]\n" }
  #expect(warnings(rule("\"A\"") + rule("\"AAAA\"") + rule("")).isEmpty)
  #expect(warnings(rule("") + rule("\"A\"")).count == 1)
  #expect(warnings(rule("\"A\"") + rule("\"AAAA\"") + rule("\"A\", \"AAAA\"")).count == 1)
}

@Test func `a pinned address that no type of the rule asks for causes a warning`() {
  func rule(_ types: String) -> String {
    "[[rule]]\nnames = [\"lan\"]\nuse = \"pinned\"\naddresses = [\"192.0.2.1\", \"2001:db8::1\"]\ntypes = [\(types)]\n"
  }
  #expect(warnings(rule("")).isEmpty)
  #expect(warnings(rule("\"AAAA\", \"A\"")).isEmpty)
  let warning = "addresses: 192.0.2.1 is not used: types has no \"A\""
  #expect(warnings(rule("\"AAAA\"")).map { $0.contains(warning) } == [true])
  #expect(warnings(rule("\"HTTPS\"")).count == 2)
}

@Test func `clients are prefixes without host bits, that may ask at all`() {
  func rule(_ clients: String, _ more: String = "") -> String {
    "[[rule]]\nnames = [\"lan\"]\nuse = \"nxdomain\"\nclients = [\(clients)]\n" + more
  }
  #expect(warnings(rule("\"127.0.0.2\", \"::1\"")).isEmpty)
  #expect(warnings(rule("\"192.168.7.0/24\"")).map { $0.hasPrefix("test.toml: rule[#1].clients: ") } == [true])
  #expect(warnings("[listen]\nallow = [\"connected\"]\n" + rule("\"192.168.7.0/24\"")).isEmpty)
  for wrong in ["192.168.7.1/24", "fd00:7::1/64", "lan", "192.168.7.0/33", "::ffff:192.168.7.0/120"] {
    #expect(mistakes(rule("\"\(wrong)\"")).map { $0.hasPrefix("test.toml: rule[#1].clients[#1]: ") } == [true])
  }
  // A rule for some clients covers nothing that is for all.
  #expect(warnings(rule("\"127.0.0.2\"") + rule("")).isEmpty)
  #expect(warnings(rule("") + rule("\"127.0.0.2\"")).count == 1)
  func many(_ count: Int) -> String { rule((1...count).map { "\"127.0.0.\($0)\"" }.joined(separator: ",")) }
  #expect(mistakes(many(63)).isEmpty)
  let tooMany = mistakes(many(64) + rule("\"::1\"") + "[[rule]]\nnames = [\"a\"]\nuse = \"refused\"\n")
  #expect(tooMany.map { $0.hasPrefix("test.toml: rule[#1].clients: ") } == [true])
}

@Test func `two rules with one name are a mistake, and so is a provider with a word's name`() {
  let rule = "[[rule]]\nname = \"one\"\nnames = [\"lan\"]\nuse = \"nxdomain\"\n"
  #expect(mistakes(rule + rule).map { $0.hasPrefix("test.toml: rule[#2].name: ") } == [true])
  for word in ["default", "nodata"] {
    #expect(mistakes("[[provider]]\nname = \"\(word)\"\n").map { $0.hasPrefix("test.toml: provider") } == [true])
  }
}
