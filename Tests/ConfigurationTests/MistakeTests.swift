// MistakeTests.swift -- one line for each mistake: the position, what is wrong, what is expected.

import Configuration
import Testing

private let lines: [(text: String, line: String)] = [
  // A wrong type, a value out of range, an unknown word.
  ("listen.workers = \"many\"", "listen.workers: \"many\" is not valid; expected an integer from 0 to 256"),
  ("listen.workers = 257", "listen.workers: 257 is not valid; expected an integer from 0 to 256"),
  ("listen.max_udp_payload = 511", "listen.max_udp_payload: 511 is not valid; expected an integer from 512 to 4096"),
  ("cache.enabled = 1", "cache.enabled: 1 is not valid; expected true or false"),
  ("cache.enabled = 2026-01-01", "cache.enabled: a date or time is not valid; expected true or false"),
  ("refresh.at = nan", "refresh.at: nan is not valid; expected a number from 0.1 to 0.99"),
  ("refresh.at = 1", "refresh.at: 1 is not valid; expected a number from 0.1 to 0.99"),
  (
    "localdns.fallback = \"always\"",
    "localdns.fallback: \"always\" is not valid; expected one of \"on-failure\", \"never\""
  ),
  ("state_directory = \"var\"", "state_directory: \"var\" is not valid; expected a path that begins with \"/\""),
  (
    "state_directory = \"/a\\tb\"",
    "state_directory: \"/a\\u{9}b\" is not valid; expected a path that begins with \"/\""
  ),
  ("listen = 3", "listen: 3 is not a table; expected [listen]"),
  ("provider = 3", "provider: 3 is not an array of tables; expected [[provider]]"),
  ("provider = [3]", "provider[#1]: 3 is not a table; expected [[provider]]"),
  (
    "provider = [{ proxy = \"http://proxy.lan:3128\" }]",
    "provider[\"alidns\"].proxy: \"http://proxy.lan:3128\" has a name as its host; expected an address, because names of proxies "
      + "are not resolved"
  ),
  ("[rule]\nuse = \"refused\"", "rule: a table is not an array of tables; expected [[rule]]"),
  (
    "provider = []",
    "provider: an empty array is not enough; expected at least one [[provider]], or no such key for the default"
  ),
  // Every invalid element of a list has its own line.
  (
    "refresh.types = [\"A\", \"ANY\"]",
    "refresh.types[#2]: \"ANY\" is not valid; expected a record type, e.g. \"AAAA\" or \"TYPE65\", but no meta type"
  ),
  (
    "listen.addresses = [\"127.0.0.1:99999\"]",
    "listen.addresses[#1]: \"127.0.0.1:99999\" has port 99999, which is out of range; expected a port from 0 to 65535"
  ),
  (
    "web.address = \"[::1]:65536\"",
    "web.address: \"[::1]:65536\" has port 65536, which is out of range; expected a port from 0 to 65535"
  ),
  (
    "listen.addresses = [\"::1:53\"]",
    "listen.addresses[#1]: \"::1:53\" is not valid; expected an address with a port, e.g. \"127.0.0.1:53\" or "
      + "\"[::1]:53\""
  ),
  (
    "web.address = \"9353\"",
    "web.address: \"9353\" is not valid; expected an address with a port, e.g. \"127.0.0.1:9353\" or \"[::1]:9353\""
  ),
  (
    "web.address = \"nowhere:99999\"",
    "web.address: \"nowhere:99999\" is not valid; expected an address with a port, e.g. \"127.0.0.1:9353\" or "
      + "\"[::1]:9353\""
  ),
  (
    "localdns.servers = [\"10.0.0.1:99999\"]",
    "localdns.servers[#1]: \"10.0.0.1:99999\" is not valid; expected \"system\" or an address, optionally with a port "
      + "and after \"tcp://\", e.g. \"192.0.2.1\" or \"[2001:db8::1]:53\""
  ),
  (
    "localdns.servers = [\"tcp://fe80::1\"]",
    "localdns.servers[#1]: \"tcp://fe80::1\" is a link-local address without its interface; expected the interface "
      + "after it, e.g. \"fe80::1%eth0\""
  ),
  (
    "listen.addresses = [\"[fe80::1]:53\"]",
    "listen.addresses[#1]: \"[fe80::1]:53\" is a link-local address without its interface; expected the interface "
      + "after it, e.g. \"fe80::1%eth0\""
  ),
  (
    "names.rebind_allow = [\"*\"]",
    "names.rebind_allow[#1]: \"*\" is not valid; expected \"example.com\" (and below), \"*.example.com\" (below), "
      + "\"=example.com\" or \".\" (every name), in ASCII (xn--…)"
  ),
  (
    "names.rebind_prefixes = [\"10.0.0.0/33\"]",
    "names.rebind_prefixes[#1]: \"10.0.0.0/33\" is not valid; expected a prefix, e.g. \"203.0.113.0/24\" or "
      + "\"2001:db8::/32\""
  ),
  (
    "localdns.search_domains = \"never\"",
    "localdns.search_domains: \"never\" is not valid; expected one of \"after-denial\", \"first\", \"ignore\""
  ),
  (
    "listen.allow = [\"10.0.0.0/33\"]",
    "listen.allow[#1]: \"10.0.0.0/33\" is not valid; expected \"connected\" or a prefix, e.g. \"192.0.2.0/24\""
  ),
  (
    "listen.addresses = [\"127.0.0.1:53\", \"0.0.0.0:53\"]",
    "listen.addresses[#1]: 127.0.0.1:53 is already served by 0.0.0.0:53; remove one of them"
  ),
  (
    "listen.addresses = [\"0.0.0.0:53\", \"[::]:53\", \"[fe80::1%eth0]:53\"]",
    "listen.addresses[#3]: [fe80::1%eth0]:53 is already served by [::]:53; remove one of them"
  ),
  (
    "listen.addresses = [\"[::1]:53\", \"[0::1]:53\"]",
    "listen.addresses[#2]: \"[0::1]:53\" is listed twice; remove one"
  ),
  (
    "refresh.keep = [\"bücher.example\"]",
    "refresh.keep[#1]: \"bücher.example\" is not valid; expected a domain name in ASCII (xn--…)"
  ),
  // Unknown keys, some of them keys of another table.
  ("web.adress = \"\"", "web.adress: unknown key; did you mean address?"),
  ("log.colour = 1", "log.colour: unknown key; known keys are level, format, queries"),
  ("log.\"a\\nb\" = 1", "log.\"a\\u{A}b\": unknown key; known keys are level, format, queries"),
  ("listen.nonsense = 1", "listen.nonsense: unknown key; httpdnsd.toml(5) lists all keys"),
  ("addresses = [\"127.0.0.1:53\"]", "addresses: unknown key; did you mean listen.addresses?"),
  ("adresses = [\"127.0.0.1:53\"]", "adresses: unknown key; did you mean listen.addresses?"),
  ("cache.hosts_file = \"\"", "cache.hosts_file: unknown key; did you mean names.hosts_file?"),
  (
    "log.state_directory = \"/\"",
    "log.state_directory: unknown key; did you mean state_directory at the top of the file?"
  ),
  ("kind = \"json\"", "kind: unknown key; did you mean kind in [[provider]]?"),
  ("url = \"https://192.0.2.1/\"", "url: unknown key; did you mean url in [[provider]]?"),
  ("token_file = \"/x\"", "token_file: unknown key; did you mean token_file in [[provider]]?"),
  ("servers = [\"192.0.2.1\"]", "servers: unknown key; did you mean localdns.servers or servers in [[provider]]?"),
  // Durations.
  (
    "localdns.timeout = \"11s\"",
    "localdns.timeout: \"11s\" is not a duration from 100ms to 10s; expected e.g. \"1500ms\", \"3s\", \"10m\", \"2h\" "
      + "or \"1d\""
  ),
  (
    "cache.max_ttl = 60",
    "cache.max_ttl: 60 is not a duration in whole seconds from 0s to 7d; expected e.g. \"30s\", \"10m\", \"2h\" or "
      + "\"1d\""
  ),
  // Values that contradict each other.
  ("cache.min_ttl = \"2h\"", "cache.min_ttl: \"2h\" is above max_ttl; expected at most \"1h\""),
  (
    "localdns.servers = [\"127.0.0.1\"]",
    "localdns.servers: 127.0.0.1:53 is the daemon's own address; expected an address that is not in listen.addresses"
  ),
  (
    "listen.addresses = [\"0.0.0.0:53\"]\nlocaldns.servers = [\"127.0.0.1\"]",
    "localdns.servers: 127.0.0.1:53 is the daemon's own address; expected an address that is not in listen.addresses"
  ),
]

@Test(arguments: lines)
func `a mistake names its position, the problem and the allowed values`(text: String, line: String) {
  #expect(mistakes(text) == ["test.toml: \(line)"])
}

@Test(arguments: [
  ("a = \n", "test.toml:1:5: invalid key-value pair: expected value, saw '\\n'"),
  (
    "\na = 1\na = 2\n",
    "test.toml:3:5: invalid key-value pair: cannot redefine existing integer 'a'"
  ),
  ("a = AesKey\n", "test.toml:1:5: invalid value: could not determine value type; a text needs quotes"),
  ("a = 1a2b\n", "test.toml:1:6: invalid decimal integer: expected digit, saw 'a'; a text needs quotes"),
  ("a = fr\n", "test.toml:1:6: invalid boolean: expected 'false', saw 'fr'; a text needs quotes"),
  (
    "a = 192.0.2.1\n",
    "test.toml:1:10: invalid floating-point: expected decimal digit or exponent, saw '.'; a text needs quotes"
  ),
  ("[listen\n", "test.toml:1:8: invalid table header: expected ']', saw '\\n'"),
])
func `a text that is not TOML is refused with line and column`(text: String, line: String) {
  #expect(mistakes(text) == [line])
}

@Test func `one pass reports all mistakes`() {
  let found = mistakes(
    """
    cahce = 1
    [listen]
    workers = -1
    [[provider]]
    kind = "jsn"
    timeout = 2
    [[rule]]
    use = "missing"
    [log]
    level = "loud"
    """)
  let keys = found.map { String($0.split(separator: " ")[1]) }
  #expect(
    Set(keys) == [
      "cahce:", "listen.workers:", "provider[#1].kind:", "provider[#1].timeout:", "rule[#1].names:", "rule[#1].use:",
      "log.level:",
    ])
  #expect(keys.count == 7)
}

@Test func `permission for every client causes a warning`() {
  #expect(warnings("listen.allow = [\"::/0\"]").first?.contains("open resolver") == true)
}

@Test func `an IPv6 wildcard without an IPv4 address causes a warning that says what to add`() {
  let line = "test.toml: listen.addresses: [::]:53 serves no client over IPv4; add \"0.0.0.0:53\" for them"
  #expect(warnings("listen.addresses = [\"[::]:53\"]") == [line])
  #expect(warnings("listen.addresses = [\"[::]:53\", \"127.0.0.1:5353\"]") == [line])
  #expect(messages("listen.addresses = [\"0.0.0.0:53\", \"[::]:53\", \"127.0.0.1:5353\"]").isEmpty)
  #expect(messages("listen.addresses = [\"[::]:53\", \"192.0.2.1:53\"]").isEmpty)
}

@Test func `port 0 is valid only for listening`() throws {
  #expect(try configuration("listen.addresses = [\"[::1]:0\"]").listen.addresses.map(\.port) == [0])
  for text in ["localdns.servers = [\"192.0.2.1:0\"]", "provider = [{ servers = [\"192.0.2.1:0\"] }]"] {
    #expect(mistakes(text).count == 1, "\(text)")
  }
}

@Test func `the message about an unreadable configuration file names a remedy`() throws {
  func line(_ path: String) -> String? {
    do throws(Mistakes) {
      _ = try Configuration.load(path: path) { _ in nil }
      return nil
    } catch { return error.description }
  }
  #expect(
    line("/nonexistent/x.toml")
      == "/nonexistent/x.toml: no such file; create it (an empty one means the defaults) or give --config FILE")
  #expect(line("/tmp") == "/tmp: is a directory; expected a TOML file")
  #expect(line("/dev/zero") == "/dev/zero: is not a regular file; expected a TOML file")
  #expect(line("/dev/null") == nil)
}
