// EnvironmentTests.swift -- the variables that take the place of keys.

import Configuration
import DNSWire
import Testing

@Test func `variables take the place of the file's keys`() throws {
  let text = """
    [listen]
    addresses = ["127.0.0.1:53"]
    workers = 3
    allow = ["127.0.0.0/8"]
    [[provider]]
    kind = "alidns"
    [log]
    level = "error"
    format = "text"
    """
  let environment = [
    "HTTPDNSD_LISTEN": "0.0.0.0:53,[::]:53", "HTTPDNSD_ALLOW": " connected 192.0.2.0/24 ",
    "HTTPDNSD_PROVIDER": "doh+https://dns.example/dns-query, alidns", "HTTPDNSD_LOG_LEVEL": "debug",
  ]
  let read = try configuration(text, environment: environment)
  #expect(read.listen.addresses.map(\.description) == ["0.0.0.0:53", "[::]:53"])
  #expect(read.listen.allow == [.connected, .prefix(IPPrefix(text: "192.0.2.0/24")!)])
  #expect(read.providers.map(\.name) == ["doh", "alidns"])
  #expect(read.providers[0].servers.map(\.host.text) == ["dns.example"])
  #expect(read.log.level == .debug)
  // What no variable is about stays the file's.
  #expect(read.listen.workers == 3)
}

@Test func `variables do without a file's keys`() throws {
  let read = try configuration("", environment: ["HTTPDNSD_LISTEN": "127.0.0.1:5300", "HTTPDNSD_LOG_LEVEL": "error"])
  #expect(read.listen.addresses.map(\.description) == ["127.0.0.1:5300"])
  #expect(read.log.level == .error)
  #expect(read.providers == Configuration().providers)
}

@Test(arguments: ["", " ", "\t\n"]) func `a blank variable is none`(blank: String) throws {
  let names = ["HTTPDNSD_LISTEN", "HTTPDNSD_ALLOW", "HTTPDNSD_PROVIDER", "HTTPDNSD_LOG_LEVEL"]
  let environment = Dictionary(uniqueKeysWithValues: names.map { ($0, blank) })
  #expect(try configuration("", environment: environment) == Configuration())
  #expect(Configuration.path(given: nil) { _ in blank } == "/etc/httpdnsd/httpdnsd.toml")
}

@Test(arguments: [
  ("alidns", ["alidns"]), ("json", ["json"]), ("doh json", ["doh", "json"]),
  ("doh+https://one.example/q,doh+https://two.example/q,doh", ["doh", "doh-2", "doh-3"]),
  ("table+https://192.0.2.1/table.json", ["table"]),
])
func `a provider is a kind, or a kind and a URL`(text: String, names: [String]) throws {
  #expect(try configuration("", environment: ["HTTPDNSD_PROVIDER": text]).providers.map(\.name) == names)
}

@Test(arguments: [
  (
    "HTTPDNSD_LISTEN", "0.0.0.0:53 127.0.0.1",
    "HTTPDNSD_LISTEN[1]: found \"127.0.0.1\"; allowed: an address with a port, such as \"127.0.0.1:53\" or \"[::1]:53\""
  ),
  ("HTTPDNSD_LISTEN", "[::]:53,[0::0]:53", "HTTPDNSD_LISTEN[1]: found \"[0::0]:53\" again; allowed: each only once"),
  (
    "HTTPDNSD_ALLOW", "all",
    "HTTPDNSD_ALLOW[0]: found \"all\"; allowed: a prefix such as \"192.0.2.0/24\", or \"connected\""
  ),
  (
    "HTTPDNSD_LOG_LEVEL", "loud",
    "HTTPDNSD_LOG_LEVEL: found \"loud\"; allowed: one of \"trace\", \"debug\", \"info\", \"notice\", \"warning\", "
      + "\"error\", \"critical\""
  ),
  (
    "HTTPDNSD_PROVIDER", "tencent",
    "HTTPDNSD_PROVIDER[0]: found \"tencent\"; allowed: alidns, json, doh, json+URL, doh+URL or table+URL; "
      + "whatever has an account needs a file"
  ),
  (
    "HTTPDNSD_PROVIDER", "alidns+https://192.0.2.1/resolve",
    "HTTPDNSD_PROVIDER[0]: found \"alidns+https://192.0.2.1/resolve\"; allowed: alidns, json, doh, json+URL, doh+URL or "
      + "table+URL; whatever has an account needs a file"
  ),
  (
    "HTTPDNSD_PROVIDER", "json+ftp://192.0.2.1/resolve",
    "HTTPDNSD_PROVIDER[0].url: found \"ftp://192.0.2.1/resolve\"; allowed: a URL such as "
      + "\"https://dns.example/path\", without user, query and fragment"
  ),
])
func `a mistake in a variable names the variable`(variable: String, text: String, line: String) {
  #expect(mistakes("", environment: [variable: text]) == ["environment: \(line)"])
}

@Test func `the mistakes of file and environment come in one go`() {
  let found = mistakes(
    "listen.workers = -1\nlog.level = \"loud\"",
    environment: ["HTTPDNSD_LISTEN": "nowhere", "HTTPDNSD_ALLOW": "nobody", "HTTPDNSD_LOG_LEVEL": "info"])
  let places = found.map { $0.split(separator: ": ").prefix(2).joined(separator: ": ") }
  #expect(
    Set(places) == [
      "environment: HTTPDNSD_LISTEN[0]", "environment: HTTPDNSD_ALLOW[0]", "test.toml: listen.workers",
    ])
}

@Test func `what a variable takes the place of is told, and only that`() {
  #expect(
    warnings("log.level = \"error\"", environment: ["HTTPDNSD_LOG_LEVEL": "info"])
      == ["environment: HTTPDNSD_LOG_LEVEL: takes the place of log.level in test.toml"])
  #expect(warnings("log.level = \"info\"", environment: ["HTTPDNSD_LOG_LEVEL": "info"]).isEmpty)
  #expect(warnings("", environment: ["HTTPDNSD_LOG_LEVEL": "info"]).isEmpty)
}

@Test func `who lets everyone ask by a variable is warned as by a file`() {
  let lines = warnings("", environment: ["HTTPDNSD_ALLOW": "0.0.0.0/0"])
  #expect(lines.count == 1 && lines[0].hasPrefix("environment: HTTPDNSD_ALLOW: 0.0.0.0/0 lets everyone ask"))
}

@Test func `a password in a variable's URL is not repeated`() {
  let lines = mistakes("", environment: ["HTTPDNSD_PROVIDER": "json+https://user:canary@192.0.2.1/"])
  #expect(lines.count == 1 && !lines[0].contains("canary"), "\(lines)")
}

@Test func `where a variable is a mistake, what is said of the file names the file`() {
  let text = "[[provider]]\nkind = \"tencent\"\ntoken = \"4711\""
  let environment = ["HTTPDNSD_PROVIDER": "tencent"]
  let lines = mistakes(text, environment: environment)
  #expect(lines.map { $0.hasPrefix("environment: HTTPDNSD_PROVIDER[0]: ") } == [true], "\(lines)")
  let told = warnings(text, environment: environment)
  #expect(told.map { $0.hasPrefix("test.toml: provider[0].token: a secret in") } == [true], "\(told)")
}

@Test func `a section that is no table is the file's mistake`() {
  #expect(
    mistakes("listen = 3", environment: ["HTTPDNSD_LISTEN": "127.0.0.1:53"])
      == ["test.toml: listen: found 3; allowed: a table: [listen]"])
}

@Test func `the command line wins over the variable, and that over the usual place`() {
  let environment = ["HTTPDNSD_CONFIG": "/srv/httpdnsd.toml"]
  #expect(Configuration.path(given: "mine.toml") { environment[$0] } == "mine.toml")
  #expect(Configuration.path(given: nil) { environment[$0] } == "/srv/httpdnsd.toml")
  #expect(Configuration.path(given: nil) { _ in nil } == "/etc/httpdnsd/httpdnsd.toml")
}

@Test func `where the daemon listens can be read without its secrets`() throws {
  let text = """
    [listen]
    addresses = ["192.0.2.1:5353"]
    [[provider]]
    kind = "tencent"
    token_file = "/nowhere/token"
    """
  try withFile(text) { _, path in
    let given = try Configuration.listenAddresses(path: path) { _ in nil }
    #expect(given.map(\.description) == ["192.0.2.1:5353"])
    let environment = ["HTTPDNSD_LISTEN": "[::1]:53", "HTTPDNSD_PROVIDER": "no such kind"]
    let replaced = try Configuration.listenAddresses(path: path) { environment[$0] }
    #expect(replaced.map(\.description) == ["[::1]:53"])
  }
}

@Test(arguments: [
  ("HTTPDNSD_LISTN", "did you mean HTTPDNSD_LISTEN?"), ("HTTPDNSD_PROVIDERS", "did you mean HTTPDNSD_PROVIDER?"),
  ("HTTPDNSD_LISTEN_ADDRESSES", "did you mean HTTPDNSD_LISTEN?"), ("HTTPDNSD_LOG", "did you mean HTTPDNSD_LOG_LEVEL?"),
  (
    "HTTPDNSD_PORT", "known are HTTPDNSD_CONFIG, HTTPDNSD_LISTEN, HTTPDNSD_ALLOW, HTTPDNSD_PROVIDER, HTTPDNSD_LOG_LEVEL"
  ),
]) func `a variable that nobody reads is warned of, with the one that was meant`(name: String, hint: String) {
  let lines = warnings("", environment: [name: "secret-5353", "PATH": "/bin"])
  #expect(lines == ["environment: \(name): nobody reads this variable (\(hint))"])
}

@Test(arguments: [
  ("HTTPDNSD_PORT", "tcp://10.96.0.53:53"), ("HTTPDNSD_PORT_53_UDP_ADDR", "10.96.0.53"),
  ("HTTPDNSD_SERVICE_HOST", "10.96.0.53"), ("HTTPDNSD_SERVICE_PORT_DNS", "53"),
  ("HTTPDNSD_NODE_PORT_9353_TCP", "tcp://10.96.0.53:9353"), ("HTTPDNS_LISTEN", "1"), ("HTTPDNSD_TEST_SEED", "1"),
]) func `variables for a service that is called as we are, and others' own, are left alone`(name: String, value: String)
{
  #expect(warnings("", environment: [name: value]).isEmpty)
}
