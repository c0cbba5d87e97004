// EnvironmentTests.swift -- environment variables that override keys.

import Configuration
import DNSWire
import Testing

@Test func `variables override the file's keys`() throws {
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
  // The file's other keys are unchanged.
  #expect(read.listen.workers == 3)
}

@Test func `variables need no keys in the file`() throws {
  let read = try configuration("", environment: ["HTTPDNSD_LISTEN": "127.0.0.1:5300", "HTTPDNSD_LOG_LEVEL": "error"])
  #expect(read.listen.addresses.map(\.description) == ["127.0.0.1:5300"])
  #expect(read.log.level == .error)
  #expect(read.providers == Configuration().providers)
}

@Test(arguments: ["", " ", "\t\n"]) func `a blank variable has no effect`(blank: String) throws {
  let names = ["HTTPDNSD_LISTEN", "HTTPDNSD_ALLOW", "HTTPDNSD_PROVIDER", "HTTPDNSD_LOG_LEVEL"]
  let environment = Dictionary(uniqueKeysWithValues: names.map { ($0, blank) })
  #expect(try configuration("", environment: environment) == Configuration())
  #expect(Configuration.path(given: nil) { _ in blank } == "/etc/httpdnsd/httpdnsd.toml")
}

@Test(arguments: [
  ("alidns", ["alidns"]), ("json", ["json"]), ("doh json", ["doh", "json"]),
  ("doh+https://one.example/q,doh+https://two.example/q,doh", ["doh", "doh-2", "doh-3"]),
  ("table+https://192.0.2.1/table.json", ["table"]), ("text+http://192.0.2.1/d", ["text"]),
])
func `a provider is a kind, or a kind and a URL`(text: String, names: [String]) throws {
  #expect(try configuration("", environment: ["HTTPDNSD_PROVIDER": text]).providers.map(\.name) == names)
}

@Test(arguments: [
  (
    "HTTPDNSD_LISTEN", "0.0.0.0:53 127.0.0.1",
    "HTTPDNSD_LISTEN[#2]: \"127.0.0.1\" is not valid; expected an address with a port, e.g. \"127.0.0.1:53\" or "
      + "\"[::1]:53\""
  ),
  ("HTTPDNSD_LISTEN", "[::]:53,[0::0]:53", "HTTPDNSD_LISTEN[#2]: \"[0::0]:53\" is listed twice; remove one"),
  (
    "HTTPDNSD_ALLOW", "all",
    "HTTPDNSD_ALLOW[#1]: \"all\" is not valid; expected \"connected\" or a prefix, e.g. \"192.0.2.0/24\""
  ),
  (
    "HTTPDNSD_LOG_LEVEL", "loud",
    "HTTPDNSD_LOG_LEVEL: \"loud\" is not valid; expected one of \"trace\", \"debug\", \"info\", \"notice\", \"warning\", "
      + "\"error\", \"critical\""
  ),
  (
    "HTTPDNSD_PROVIDER", "tencent",
    "HTTPDNSD_PROVIDER[#1]: \"tencent\" is not valid; expected alidns, json, doh, json+URL, doh+URL, "
      + "text+URL or table+URL; providers with an account need a file"
  ),
  (
    "HTTPDNSD_PROVIDER", "alidns+https://192.0.2.1/resolve",
    "HTTPDNSD_PROVIDER[#1]: \"alidns+https://192.0.2.1/resolve\" is not valid; expected alidns, json, doh, json+URL, doh+URL, "
      + "text+URL or table+URL; providers with an account need a file"
  ),
  (
    "HTTPDNSD_PROVIDER", "json+ftp://192.0.2.1/resolve",
    "HTTPDNSD_PROVIDER[\"json\"].url: \"ftp://192.0.2.1/resolve\" is not valid; expected a URL without user, "
      + "query and fragment, e.g. \"https://dns.example/path\""
  ),
])
func `a mistake in a variable names the variable`(variable: String, text: String, line: String) {
  #expect(mistakes("", environment: [variable: text]) == ["environment: \(line)"])
}

@Test func `one pass reports the mistakes of file and environment`() {
  let found = mistakes(
    "listen.workers = -1\nlog.level = \"loud\"",
    environment: ["HTTPDNSD_LISTEN": "nowhere", "HTTPDNSD_ALLOW": "nowhere", "HTTPDNSD_LOG_LEVEL": "info"])
  let places = found.map { $0.split(separator: ": ").prefix(2).joined(separator: ": ") }
  #expect(
    Set(places) == [
      "environment: HTTPDNSD_LISTEN[#1]", "environment: HTTPDNSD_ALLOW[#1]", "test.toml: listen.workers",
    ])
}

@Test func `a URL with a name that nothing can resolve names the ways out`() {
  let found = mistakes(
    "localdns.servers = []", environment: ["HTTPDNSD_PROVIDER": "doh+https://dns.example/dns-query"])
  #expect(
    found == [
      "environment: HTTPDNSD_PROVIDER[\"doh\"].url: the URL's host is a name and nothing can resolve it; use an address "
        + "in the URL, or set bootstrap or localdns.servers"
    ])
}

@Test func `an overridden key causes a warning unless it has the same value`() {
  #expect(
    warnings("log.level = \"error\"", environment: ["HTTPDNSD_LOG_LEVEL": "info"])
      == ["environment: HTTPDNSD_LOG_LEVEL: overrides log.level in test.toml"])
  #expect(
    warnings("[[provider]]\nkind = \"alidns\"", environment: ["HTTPDNSD_PROVIDER": "doh+https://192.0.2.1/dns-query"])
      .contains { $0.hasSuffix(": overrides every [[provider]] in test.toml") })
  #expect(warnings("log.level = \"info\"", environment: ["HTTPDNSD_LOG_LEVEL": "info"]).isEmpty)
  #expect(warnings("", environment: ["HTTPDNSD_LOG_LEVEL": "info"]).isEmpty)
}

@Test func `permission for every client in a variable causes a warning`() {
  let lines = warnings("", environment: ["HTTPDNSD_ALLOW": "0.0.0.0/0"])
  #expect(lines.count == 1 && lines[0].hasPrefix("environment: HTTPDNSD_ALLOW: 0.0.0.0/0 allows every client"))
}

@Test func `a password in a variable's URL is not repeated`() {
  let lines = mistakes("", environment: ["HTTPDNSD_PROVIDER": "json+https://user:canary@192.0.2.1/"])
  #expect(lines.count == 1 && !lines[0].contains("canary"), "\(lines)")
}

@Test func `a warning about the file names the file where the variable is invalid`() {
  let text = "[[provider]]\nkind = \"tencent\"\ntoken = \"4711\""
  let environment = ["HTTPDNSD_PROVIDER": "tencent"]
  let lines = mistakes(text, environment: environment)
  #expect(lines.map { $0.hasPrefix("environment: HTTPDNSD_PROVIDER[#1]: ") } == [true], "\(lines)")
  let warned = warnings(text, environment: environment)
  #expect(
    warned.map { $0.hasPrefix("test.toml: provider[\"tencent\"].token: everyone who can read") } == [true], "\(warned)")
}

@Test func `a section that is not a table is a mistake in the file`() {
  #expect(
    mistakes("listen = 3", environment: ["HTTPDNSD_LISTEN": "127.0.0.1:53"])
      == ["test.toml: listen: 3 is not a table; expected [listen]"])
}

@Test func `the command line overrides the variable, which overrides the default path`() {
  let environment = ["HTTPDNSD_CONFIG": "/srv/httpdnsd.toml"]
  #expect(Configuration.path(given: "mine.toml") { environment[$0] } == "mine.toml")
  #expect(Configuration.path(given: nil) { environment[$0] } == "/srv/httpdnsd.toml")
  #expect(Configuration.path(given: nil) { _ in nil } == "/etc/httpdnsd/httpdnsd.toml")
}

@Test func `the listening addresses can be read without the secrets`() throws {
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
]) func `an unknown variable causes a warning that suggests the intended one`(name: String, hint: String) {
  let lines = warnings("", environment: [name: "secret-5353", "PATH": "/bin"])
  #expect(lines == ["environment: \(name): unknown variable; \(hint)"])
}

@Test(arguments: [
  ("HTTPDNSD_PORT", "tcp://10.96.0.53:53"), ("HTTPDNSD_PORT_53_UDP_ADDR", "10.96.0.53"),
  ("HTTPDNSD_SERVICE_HOST", "10.96.0.53"), ("HTTPDNSD_SERVICE_PORT_DNS", "53"),
  ("HTTPDNSD_NODE_PORT_9353_TCP", "tcp://10.96.0.53:9353"), ("HTTPDNS_LISTEN", "1"), ("HTTPDNSD_TEST_SEED", "1"),
]) func `a variable of another program, or for a service named httpdnsd, causes no warning`(name: String, value: String)
{
  #expect(warnings("", environment: [name: value]).isEmpty)
}
