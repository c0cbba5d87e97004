// ProviderTests.swift -- the defaults of each kind of provider, and keys that contradict each other.

import Ciphers
import Configuration
import DNSWire
import Testing

/// The servers of a text's first provider, as scheme, host, port and path, with the name that is checked.
private func servers(_ text: String) throws -> [String] {
  try configuration("[[provider]]\n\(text)").providers[0].servers.map {
    "\($0.scheme)://\($0.host.urlText):\($0.port)\($0.path) as \($0.tlsName)"
  }
}

private let resolved: [(text: String, servers: [String])] = [
  (
    "kind = \"alidns\"",
    ["https://223.5.5.5:443/resolve as dns.alidns.com", "https://223.6.6.6:443/resolve as dns.alidns.com"]
  ),
  (
    "scheme = \"http\"\nservers = [\"127.0.0.1:8053\", \"[2400:3200::1]\"]",
    ["http://127.0.0.1:8053/resolve as dns.alidns.com", "http://[2400:3200::1]:80/resolve as dns.alidns.com"]
  ),
  ("servers = [\"999999.alidns.com\"]", ["https://999999.alidns.com:443/resolve as 999999.alidns.com"]),
  (
    "kind = \"json\"",
    ["https://8.8.8.8:443/resolve as dns.google", "https://8.8.4.4:443/resolve as dns.google"]
  ),
  (
    "kind = \"json\"\nurl = \"https://cloudflare-dns.com/dns-query\"",
    ["https://1.1.1.1:443/dns-query as cloudflare-dns.com", "https://1.0.0.1:443/dns-query as cloudflare-dns.com"]
  ),
  (
    "kind = \"doh\"\nurl = \"https://DOH.pub:8443/dns-query\"",
    ["https://1.12.12.12:8443/dns-query as doh.pub", "https://120.53.53.53:8443/dns-query as doh.pub"]
  ),
  (
    "kind = \"doh\"\nurl = \"https://dns.alidns.com/dns-query\"\nservers = [\"223.5.5.5\"]",
    ["https://223.5.5.5:443/dns-query as dns.alidns.com"]
  ),
  (
    "kind = \"doh\"\ntls_name = \"a.example\"\n"
      + "servers = [\"https://192.0.2.1:8443/q\", \"dns.example:444\", \"192.0.2.2\"]",
    [
      "https://192.0.2.1:8443/q as a.example", "https://dns.example:444/dns-query as dns.example",
      "https://192.0.2.2:443/dns-query as a.example",
    ]
  ),
  ("kind = \"json\"\nurl = \"http://127.0.0.1:8053/resolve\"", ["http://127.0.0.1:8053/resolve as 127.0.0.1"]),
  ("kind = \"doh\"\nurl = \"https://[::1]:8443\"", ["https://[::1]:8443/ as ::1"]),
  ("kind = \"doh\"\nurl = \"https://dns.example/q\"", ["https://dns.example:443/q as dns.example"]),
]

@Test(arguments: resolved)
func `a provider's transfers go to the servers of its kind or of its keys`(text: String, expected: [String]) throws {
  #expect(try servers(text) == expected)
}

@Test func `every key of a provider is read`() throws {
  let provider = try configuration(
    """
    [[provider]]
    name = "home"
    kind = "doh"
    method = "get"
    pins = ["sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
    bootstrap = ["192.0.2.53"]
    proxy = "socks5h://user:password@[::1]:1080"
    family = "ipv4"
    timeout = "1500ms"
    attempts_before_switch = 1
    client_subnet = "192.0.2.77/24"
    trust_ad = true
    """
  ).providers[0]
  #expect(provider.name == "home")
  #expect(provider.kind == .doh(method: .get))
  #expect(provider.pins.count == 1)
  #expect(provider.bootstrap.map(\.description) == ["192.0.2.53:53"])
  #expect(provider.proxy?.description == "socks5h://…@[::1]:1080")
  #expect(provider.proxy?.text.reveal == Array("socks5h://user:password@[::1]:1080".utf8))
  #expect(provider.family == .ipv4)
  #expect(provider.timeout == .milliseconds(1500))
  #expect(provider.attemptsBeforeSwitch == 1)
  #expect("\(provider.clientSubnet)".contains("192.0.2.0/24"))
  #expect(provider.trustsAD)
}

@Test func `a provider without a name is named after its kind`() throws {
  let text = "[[provider]]\nkind = \"json\"\n[[provider]]\nkind = \"doh\"\nclient_subnet = \"from-client\""
  let providers = try configuration(text).providers
  #expect(providers.map(\.name) == ["json", "doh"])
  #expect(providers.map(\.clientSubnet) == [.none, .fromClient])
}

private let refusals: [(text: String, key: String)] = [
  ("kind = \"dns\"", "kind"),
  ("name = \"a b\"", "name"),
  ("name = \"localdns\"", "name"),
  ("servers = []", "servers"),
  ("servers = [\"300.1.1.1\"]", "servers[#1]"),
  ("servers = [\"192.0.2.1:0\"]", "servers[#1]"),
  ("servers = [\"192.0.2.1:65536\"]", "servers[#1]"),
  ("servers = [\"https://dns.alidns.com/resolve\"]", "servers[#1]"),
  ("kind = \"doh\"\nservers = [\"ftp://192.0.2.1/\"]", "servers[#1]"),
  ("kind = \"json\"\nurl = \"https://dns.google/resolve?x=1\"", "url"),
  ("kind = \"json\"\nurl = \"https://user@dns.google/resolve\"", "url"),
  ("kind = \"json\"\nurl = \"dns.google\"", "url"),
  ("kind = \"json\"\nscheme = \"http\"", "scheme"),
  ("kind = \"json\"\nmethod = \"get\"", "method"),
  ("url = \"https://dns.google/resolve\"", "url"),
  ("token_file = \"/x\"", "token_file"),
  ("kind = \"json\"\naccount_id = \"1\"", "account_id"),
  ("pins = [\"sha256//short\"]", "pins[#1]"),
  ("scheme = \"http\"\npins = [\"sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"]", "pins"),
  ("proxy = \"socks4://127.0.0.1:1080\"", "proxy"),
  ("proxy = \"http://127.0.0.1\"", "proxy"),
  // Names of proxies are not looked up.
  ("proxy = \"http://proxy.example:3128\"", "proxy"),
  ("bootstrap = [\"dns.google\"]", "bootstrap[#1]"),
  ("bootstrap = [\"127.0.0.1\"]", "bootstrap"),
  ("family = \"ipv6\"", "family"),
  ("client_subnet = \"here\"", "client_subnet"),
  ("ca_file = \"/nonexistent/ca.pem\"", "ca_file"),
  ("ca_file = \"/etc/passwd\"", "ca_file"),
  ("tls_name = \"a b\"", "tls_name"),
]

@Test(arguments: refusals)
func `a provider that cannot work is one mistake`(text: String, key: String) {
  let found = mistakes("[[provider]]\n\(text)")
  #expect(found.count == 1)
  #expect(found.first?.contains("].\(key): ") == true, "\(found)")
}

@Test func `two providers with one name are a mistake`() {
  let found = mistakes("[[provider]]\nname = \"a\"\n[[provider]]\nname = \"a\"\n")
  #expect(
    found == ["test.toml: provider[#2].name: another provider is already named \"a\"; give each a unique name"])
}

@Test func `messages call a provider by its unique name`() {
  #expect(
    mistakes("[[provider]]\nname = \"home\"\ntimeout = 1").first?.hasPrefix("test.toml: provider[\"home\"].timeout:")
      == true)
}

@Test func `messages call a provider without a name by its kind, and others by their position from 1`() {
  let text = "[[provider]]\nkind = \"json\"\ntimeout = 1\n[[provider]]\nkind = \"doh\"\ntimeout = 2\n"
  func places(_ text: String) -> [String] { mistakes(text).map { String($0.split(separator: " ")[1]) } }
  #expect(places(text) == ["provider[\"json\"].timeout:", "provider[\"doh\"].timeout:"])
  // The name is taken, or the provider has no valid one.
  #expect(
    places(text + "[[provider]]\nname = \"doh\"\n")
      == ["provider[\"json\"].timeout:", "provider[#2].timeout:", "provider[#3].name:"])
  #expect(places("[[provider]]\nkind = \"jsn\"\n") == ["provider[#1].kind:"])
  #expect(places("[[provider]]\nname = \"a b\"\n") == ["provider[#1].name:"])
  #expect(
    places(
      "[[provider]]\nservers = [\"192.0.2.1\", \"192.0.2.2:0\"]\n[[rule]]\nnames = [\"lan\"]\n[[rule]]\nuse = \"localdns\"\n"
    )
      == ["provider[\"alidns\"].servers[#2]:", "rule[#1].use:", "rule[#2].names:"])
}

@Test func `a server given by name needs a resolver to look it up`() {
  let named = "[[provider]]\nkind = \"doh\"\nurl = \"https://dns.example/q\"\n"
  let noResolver = "[localdns]\nservers = []\n"
  #expect(mistakes(named).isEmpty)
  #expect(mistakes(named + noResolver).map { $0.contains("provider[\"doh\"].url") } == [true])
  #expect(mistakes(named + "bootstrap = [\"192.0.2.53\"]\n" + noResolver).isEmpty)
  #expect(mistakes(named + "servers = [\"192.0.2.1\"]\n" + noResolver).isEmpty)
  #expect(mistakes(named + "proxy = \"socks5h://192.0.2.3:1080\"\n" + noResolver).isEmpty)
  let proxied = "[[provider]]\nproxy = \"http://proxy.example:3128\"\n"
  #expect(mistakes(proxied).map { $0.contains("provider[\"alidns\"].proxy") } == [true])
}

@Test func `http causes a warning`() {
  #expect(
    warnings("[[provider]]\nscheme = \"http\"").map { $0.contains("provider[\"alidns\"].scheme: over http") } == [true])
  #expect(
    warnings("[[provider]]\nkind = \"doh\"\nservers = [\"http://192.0.2.1/q\"]").map {
      $0.contains(".servers: over http")
    } == [true])
}

@Test func `http to a service on this machine causes no warning`() {
  let near = "[[provider]]\nkind = \"json\"\nurl = \"http://127.0.0.1:8053/resolve\"\n"
  #expect(warnings(near).isEmpty)
  let mixed = "[[provider]]\nkind = \"doh\"\nservers = [\"http://[::1]:8053/q\", \"https://192.0.2.1/q\"]"
  #expect(warnings(mixed).isEmpty)
  for text in [
    near + "servers = [\"127.0.0.1:8053\", \"192.0.2.1\"]", near + "proxy = \"http://192.0.2.9:3128\"",
    "[[provider]]\nkind = \"json\"\nurl = \"http://localhost:8053/resolve\"",
  ] {
    #expect(warnings(text).map { $0.contains("over http") } == [true], "\(text)")
  }
}

@Test func `the message about a key of another kind names both kinds`() {
  let url = "[[provider]]\nurl = \"https://192.0.2.1/\"\n"
  let kinds = "url: needs kind = \"json\", \"doh\", \"text\" or \"table\""
  #expect(mistakes(url) == ["test.toml: provider[\"alidns\"].\(kinds); without kind, a provider has kind \"alidns\""])
  #expect(
    mistakes(url + "kind = \"tencent\"\ntoken_env = \"T\"", environment: ["T": "1"])
      == ["test.toml: provider[\"tencent\"].\(kinds); this provider has kind \"tencent\""])
}

@Test func `the message about an unknown key of a provider suggests the intended one and lists no others`() {
  #expect(
    mistakes("[[provider]]\ntimeuot = \"1s\"")
      == ["test.toml: provider[\"alidns\"].timeuot: unknown key; did you mean timeout?"])
  #expect(
    mistakes("[[provider]]\nnonsense = 1")
      == ["test.toml: provider[\"alidns\"].nonsense: unknown key; httpdnsd.toml(5) lists all keys"])
  #expect(
    mistakes("[[provider]]\nmax_ttl = \"1s\"")
      == ["test.toml: provider[\"alidns\"].max_ttl: unknown key; did you mean localdns.max_ttl or cache.max_ttl?"])
}

@Test func `the message about an unusable certificate file names the reason`() {
  for (path, line) in [
    ("/nonexistent", "no such file; give the path of a file with PEM certificates"),
    ("/tmp", "is a directory; expected a file with PEM certificates"),
    ("/dev/null", "the file contains no PEM certificates; expected a file with PEM certificates"),
  ] {
    let found = mistakes("[[provider]]\nca_file = \"\(path)\"")
    #expect(found == ["test.toml: provider[\"alidns\"].ca_file: \(path): \(line)"])
  }
}

@Suite struct `The regions of EMAS HTTPDNS` {
  private func servers(_ region: Configuration.EMASRegion) throws -> [Configuration.Server] {
    let text = "[[provider]]\nkind = \"emas\"\naccount_id = \"1\"\nregion = \"\(region.rawValue)\""
    return try configuration(text).providers[0].servers
  }

  @Test(arguments: Configuration.EMASRegion.allCases)
  func `every region has boot addresses of both families`(region: Configuration.EMASRegion) throws {
    let servers = try servers(region)
    let addresses = servers.compactMap { if case .address(let address) = $0.host { address } else { nil } }
    #expect(
      addresses.count == servers.count - 1 && servers.last?.host.isName == true && addresses.count >= 4
        && Set(addresses).count == addresses.count)
    #expect(addresses.contains { $0.isIPv6 } && addresses.first?.isIPv6 == false)
    #expect(servers.allSatisfy { $0.tlsName == "resolvers.httpdns.aliyuncs.com" })
  }

  @Test func `the region global has the boot addresses of mainland China`() throws {
    #expect(try servers(.cn).count == 11)
    #expect(try servers(.global) == servers(.cn))
  }
}

@Test func `check_name of earlier versions is still read, and a warning says that it can go`() {
  let text = "[[provider]]\nkind = \"doh\"\nurl = \"https://192.0.2.1/dns-query\"\ncheck_name = \"www.example.com\""
  #expect(warnings(text) == ["test.toml: provider[\"doh\"].check_name: has no effect any more; remove it"])
  #expect(mistakes(text.replacing("www.example.com", with: "..")).count == 1)
}

@Test func `dns64 is a word or a prefix`() throws {
  let given = NAT64Prefix(IPPrefix(text: "2001:db8:64::/96")!)!
  let expected: [(String, Configuration.DNS64)] = [
    ("auto", .auto), ("off", .off), ("2001:db8:64::/96", .prefix(given)),
  ]
  for (text, value) in expected { #expect(try configuration("[names]\ndns64 = \"\(text)\"").names.dns64 == value) }
  #expect(try configuration("").names.dns64 == .auto)
  for text in ["on", "64:ff9b::", "64:ff9b::/97", "192.0.2.0/24", ""] {
    #expect(mistakes("[names]\ndns64 = \"\(text)\"").count == 1, "\(text)")
  }
}
