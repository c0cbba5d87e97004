// SampleTests.swift -- the files that are shipped, and what an empty file means.

import DNSWire
import Testing

@testable import Configuration

@Test func `an empty file means the defaults`() throws {
  #expect(try configuration("") == Configuration())
}

@Test func `the sample file has the defaults`() throws {
  let loaded = try sample("httpdnsd.toml")
  #expect(loaded.configuration == Configuration())
  #expect(loaded.warnings.isEmpty)
}

@Test func `the demonstration has nothing to warn of`() throws {
  #expect(try sample("demo.toml").warnings.isEmpty)
}

/// A text whose secrets come from the environment and not from files and credentials, which only its reader has.
private func withoutSecretFiles(_ text: some StringProtocol) -> String {
  let key = /\b((?:[a-z]+_)*(?:secret|key|token|password))_(?:file|credential) = "[^"]*"/
  // The key of a certificate is a file in any case.
  let sections = String(text).split(separator: "\n[", omittingEmptySubsequences: false).map { section in
    section.hasPrefix("encrypted]") || section.hasPrefix("[encrypted]")
      ? String(section) : String(section).replacing(key) { "\($0.output.1)_env = \"\($0.output.1)\"" }
  }
  return sections.joined(separator: "\n[")
}

/// One secret for each key, of the form that it needs.
private let secrets = [
  "access_key_secret": "secret", "token": "4711", "key": "0123456789abcdef", "secret_key": "0123456789abcdef",
  "aes_secret_key": "0123456789abcdef0123456789abcdef", "report_token": "0123456789abcdef",
  "secret": "0123456789abcdef0123456789abcdef", "password": "password", "auth_secret": "secret",
]

/// The least that makes each of the providers that the sample file shows as comments, in their order.
private let least = [
  "kind = \"tencent\"\ntoken_env = \"token\"",
  "kind = \"tencent\"\nname = \"tencent-aes\"\ncipher = \"aes\"\nid = \"1234\"\nkey_env = \"key\"",
  "kind = \"emas\"\naccount_id = \"100000\"\nsecret_key_env = \"secret_key\"",
  "kind = \"emas\"\nname = \"emas-aes\"\naccount_id = \"100000\"\napi = \"v2\"\nscheme = \"http\"\n"
    + "aes_secret_key_env = \"aes_secret_key\"",
  "kind = \"baidu\"\naccount_id = \"100001\"\nsecret_env = \"secret\"",
  "kind = \"volcengine\"\naccount_id = \"2100000001\"\nsecret_key_env = \"secret_key\"",
  "kind = \"jdcloud\"\naccount_id = \"123456\"\nkey_env = \"key\"",
  "kind = \"ucloud\"\nauth_id = \"abc-0001\"\nauth_secret_env = \"auth_secret\"",
  "kind = \"text\"\nurl = \"http://119.29.29.29/d\"",
  "kind = \"table\"\nurl = \"https://192.0.2.10/table.json\"\nhost = \"table.example.com\"",
  "kind = \"json\"", "kind = \"doh\"",
]

@Test func `the providers that the sample file shows as comments have their defaults`() throws {
  let paragraphs = try sampleText("httpdnsd.toml").split(separator: "\n\n").filter { $0.hasPrefix("# [[provider]]") }
  #expect(paragraphs.count == least.count)
  for (paragraph, least) in zip(paragraphs, least) {
    let lines = paragraph.split(separator: "\n").map { $0.dropFirst(2) }
    let text = withoutSecretFiles(lines.joined(separator: "\n"))
    #expect(mistakes(text, environment: secrets) == [], "\(text)")
    // The list of servers is shortened there.
    let shown = withoutSecretFiles(lines.filter { !$0.hasPrefix("servers") }.joined(separator: "\n"))
    let expected = try configuration("[[provider]]\n" + least, environment: secrets).providers
    #expect(try configuration(shown, environment: secrets).providers == expected, "\(text)")
  }
}

@Test(arguments: documentPaths()) func `every configuration that a document shows is accepted`(path: String) throws {
  for block in try repositoryText(path).split(separator: "```toml\n").dropFirst() {
    let text = withoutSecretFiles(block.split(separator: "```")[0])
    #expect(mistakes(text, environment: secrets) == [], "\(text)")
  }
}

@Test func `documents, sample file and simulator have each kind of provider`() throws {
  let text = try documentPaths().map { try repositoryText($0) }.joined()
  let guide = try repositoryText("docs/providers.md")
  let sample = try repositoryText("Config/httpdnsd.toml")
  for kind in ProviderKindName.allCases.map(\.rawValue) {
    #expect(text.contains("\nkind = \"\(kind)\"\n"), "\(kind): no configuration in the documents")
    #expect(guide.contains("\nkind = \"\(kind)\"\n"), "\(kind): no configuration in docs/providers.md")
    #expect(sample.contains("kind = \"\(kind)\""), "\(kind): not in Config/httpdnsd.toml")
  }
  #expect(text.split(separator: "```toml\n").count > 12)
}

@Test func `the simulator speaks each kind's protocol`() throws {
  // The two kinds without a vendor have several services.
  let services = ["json": "google", "doh": "rfc8484"]
  let names = try repositoryFiles(in: "Sources/httpdns-simulator/Dialects").map { try repositoryText($0) }.joined()
  for kind in ProviderKindName.allCases.map(\.rawValue) {
    #expect(names.contains("\n  let name = \"\(services[kind] ?? kind)\"\n"), "\(kind)")
  }
}

@Test func `the guide to the simulator has each kind, and the simulator has its accounts`() throws {
  let tables = try repositoryText("docs/providers.md").split(separator: "To try another kind")[1]
    .split(separator: "\n\n").filter { $0.hasPrefix("|") }
  let simulator = try ["Dialects", "Service"].flatMap { repositoryFiles(in: "Sources/httpdns-simulator/\($0)") }
    .map { try repositoryText($0) }.joined()
  let all = Set(ProviderKindName.allCases.map(\.rawValue))
  let placed = tables[0].split(separator: "\n").flatMap { row in
    row.split(separator: "|")[0].matches(of: /`([a-z]+)`/).map { String($0.output.1) }
  }
  var (shown, keys): ([String], [String]) = ([], [])
  for row in tables[1].split(separator: "\n").dropFirst(2) {
    let cells = row.split(separator: "|")
    if let kind = cells[0].firstMatch(of: /`([a-z]+)`/)?.output.1 { shown.append(String(kind)) }
    if !cells[1].contains(" also ") { keys = [] }
    keys += cells[1].matches(of: /`([a-z_]+ = "[^"]+")`/).map { String($0.output.1) }
    let place = keys.contains { $0.hasPrefix("url") } ? "" : "servers = [\"127.0.0.1:8443\"]\n"
    let text = "[[provider]]\nkind = \"\(shown.last ?? "")\"\n\(place)\(keys.joined(separator: "\n"))"
    #expect(mistakes(text) == [], "\(text)")
    for key in keys where !["url", "cipher", "api"].contains(key.prefix { $0 != " " }) {
      #expect(simulator.contains(key.drop { $0 != "\"" }), "\(key)")
    }
  }
  #expect(Set(placed) == all && Set(shown) == all)
}

@Test func `the keys of rules that the sample file shows as comments are known`() throws {
  #expect(
    mistakes(
      """
      [[rule]]
      names = ["corp.example", "*.lan"]
      use = "localdns"
      fallback = ""
      servers = []
      addresses = []
      max_ttl = ""
      min_ttl = ""
      stale = ""
      immutable = false
      """) == [])
}

@Test func `the demo asks only this machine`() throws {
  let configuration = try sample("demo.toml").configuration
  let hosts = configuration.providers.flatMap(\.servers).map(\.host.text)
  #expect(Set(hosts) == ["127.0.0.1"])
  #expect(configuration.localDNS.servers.isEmpty)
  #expect(configuration.listen.addresses.map(\.description) == ["127.0.0.1:5300", "[::1]:5300"])
}

@Test func `every key can be set`() throws {
  let configuration = try configuration(
    """
    state_directory = "/tmp/state"
    listen.addresses = ["192.0.2.1:5353"]
    listen.workers = 0
    listen.allow = ["connected", "192.0.2.0/24"]
    listen.tcp_idle = "2m"
    localdns = { servers = ["192.0.2.53", "[2001:db8::53]:5353"], fallback = "never", portal_names = false, search_domains = "first" }
    cache = { enabled = false, max_bytes = "1GiB", min_ttl = "1m", max_ttl = "1d", nxdomain_cut = false }
    refresh = { at = 0.5, keep = ["www.Example.com"], types = ["https", "TYPE65280"], min_ttl = "0s" }
    names = { hosts_file = "", special = false, rebind_protection = true, rebind_allow = ["*.example.com"], rebind_prefixes = ["203.0.113.0/24"] }
    log.level = "debug"
    """)
  #expect(configuration.stateDirectory == "/tmp/state")
  #expect(configuration.listen.addresses == [Endpoint(text: "192.0.2.1:5353")])
  #expect(configuration.listen.workers == 0)
  #expect(configuration.listen.allow.first == .connected)
  #expect(configuration.listen.tcpIdle == .seconds(120))
  let servers = configuration.localDNS.servers
  #expect(
    servers
      == ["192.0.2.53:53", "[2001:db8::53]:5353"].map { .resolver(Configuration.ResolverAddress(Endpoint(text: $0)!)) })
  #expect(configuration.localDNS.fallback == .never)
  #expect(!configuration.localDNS.portalNames)
  #expect(configuration.localDNS.searchDomains == .first)
  #expect(!configuration.cache.isEnabled)
  #expect(configuration.cache.maxBytes == 1 << 30)
  #expect(configuration.cache.minTTL == .seconds(60))
  #expect(configuration.refresh.at == 0.5)
  #expect(configuration.refresh.keep.map(\.text) == ["www.example.com."])
  #expect(configuration.refresh.types.map(\.description) == ["HTTPS", "TYPE65280"])
  #expect(configuration.names.hostsFile == nil)
  #expect(configuration.names.rebindAllow.map(\.description) == ["*.example.com."])
  #expect(configuration.names.rebindPrefixes.map(\.description) == ["203.0.113.0/24"])
  #expect(configuration.log.level == .debug)
}

@Test func `the state directory of the unit wins over the file`() throws {
  let environment = ["STATE_DIRECTORY": "/var/lib/private/httpdnsd:/other"]
  let configuration = try configuration("state_directory = \"/elsewhere\"", environment: environment)
  #expect(configuration.stateDirectory == "/var/lib/private/httpdnsd")
}

@Test(arguments: [
  ("", "/run/user/1/control.sock"), ("control.socket = \"/run/httpdnsd/a/b\"", "/run/user/1/a/b"),
  ("control.socket = \"/elsewhere/control.sock\"", "/elsewhere/control.sock"), ("control.socket = \"\"", nil),
]) func `the runtime directory of the unit takes the place of the usual one`(text: String, socket: String?) throws {
  let environment = ["RUNTIME_DIRECTORY": "/run/user/1:/other"]
  #expect(try configuration(text, environment: environment).control.socket == socket)
}

@Test(arguments: [
  ("0s", Duration.zero), ("1500ms", .milliseconds(1500)), ("3s", .seconds(3)), ("10m", .seconds(600)),
  ("2h", .seconds(7200)), ("1d", .seconds(86_400)),
])
func `a duration is a number and a unit`(text: String, duration: Duration) throws {
  // TTLs are whole seconds.
  if text.hasSuffix("ms") {
    #expect(try configuration("localdns.timeout = \"\(text)\"").localDNS.timeout == duration)
  } else {
    #expect(try configuration("cache.max_ttl = \"\(text)\"").cache.maxTTL == duration)
  }
}

@Test(arguments: ["", "s", "1", "-1s", "+1s", "1.5s", "1 s", "1S", "1s ", "1h30m", "99999999999999999d", "8d", "٣s"])
func `an invalid duration is refused`(text: String) {
  #expect(mistakes("cache.max_ttl = \"\(text)\"").count == 1)
}
