// MistakeTests.swift -- one line for each mistake: where, what was found, what is allowed.

import Configuration
import Testing

private let lines: [(text: String, line: String)] = [
  // A wrong type, a value out of range, a word that is none.
  ("listen.workers = \"many\"", "listen.workers: found \"many\"; allowed: an integer from 0 to 256"),
  ("listen.workers = 257", "listen.workers: found 257; allowed: an integer from 0 to 256"),
  ("listen.max_udp_payload = 511", "listen.max_udp_payload: found 511; allowed: an integer from 512 to 4096"),
  ("cache.enabled = 1", "cache.enabled: found 1; allowed: true or false"),
  ("cache.enabled = 2026-01-01", "cache.enabled: found a date or time; allowed: true or false"),
  ("refresh.at = nan", "refresh.at: found nan; allowed: a number from 0.1 to 0.99"),
  ("refresh.at = 1", "refresh.at: found 1; allowed: a number from 0.1 to 0.99"),
  ("localdns.fallback = \"always\"", "localdns.fallback: found \"always\"; allowed: one of \"on-failure\", \"never\""),
  ("state_directory = \"var\"", "state_directory: found \"var\"; allowed: a path that begins with \"/\""),
  ("state_directory = \"/a\\tb\"", "state_directory: found \"/a\\u{9}b\"; allowed: a path that begins with \"/\""),
  ("listen = 3", "listen: found 3; allowed: a table: [listen]"),
  ("provider = 3", "provider: found 3; allowed: an array of tables: [[provider]]"),
  ("provider = [3]", "provider[0]: found 3; allowed: a table: [[provider]]"),
  (
    "provider = [{ proxy = \"http://proxy.lan:3128\" }]",
    "provider[0].proxy: found \"http://proxy.lan:3128\"; allowed: an address as host, since names of proxies are not "
      + "looked up"
  ),
  ("[rule]\nuse = \"refused\"", "rule: found a table; allowed: an array of tables: [[rule]]"),
  ("provider = []", "provider: found an empty array; allowed: at least one [[provider]], or no key for the default"),
  // Lists: every wrong element has its own line.
  (
    "refresh.types = [\"A\", \"ANY\"]",
    "refresh.types[1]: found \"ANY\"; allowed: a record type such as \"AAAA\" or \"TYPE65\", not a meta type"
  ),
  (
    "listen.addresses = [\"::1:53\"]",
    "listen.addresses[0]: found \"::1:53\"; allowed: an address with a port, such as \"127.0.0.1:53\" or \"[::1]:53\""
  ),
  (
    "web.address = \"9353\"",
    "web.address: found \"9353\"; allowed: an address with a port, such as \"127.0.0.1:9353\" or \"[::1]:9353\""
  ),
  (
    "localdns.servers = [\"10.0.0.1:99999\"]",
    "localdns.servers[0]: found \"10.0.0.1:99999\"; allowed: \"system\", or an address with or without a port, such as "
      + "\"192.0.2.1\" or \"[2001:db8::1]:53\""
  ),
  (
    "names.rebind_allow = [\"*\"]",
    "names.rebind_allow[0]: found \"*\"; allowed: \"example.com\" (and below), \"*.example.com\" (below), "
      + "\"=example.com\" or \".\" (every name), in ASCII (xn--…)"
  ),
  (
    "names.rebind_prefixes = [\"10.0.0.0/33\"]",
    "names.rebind_prefixes[0]: found \"10.0.0.0/33\"; allowed: a prefix such as \"203.0.113.0/24\" or \"2001:db8::/32\""
  ),
  (
    "localdns.search_domains = \"never\"",
    "localdns.search_domains: found \"never\"; allowed: one of \"after-denial\", \"first\", \"ignore\""
  ),
  (
    "cache.redis = { url = \"redis://10.0.0.1:6379\" }",
    "cache.redis: found a table; allowed: its default; there is no second level of the cache in this version"
  ),
  (
    "cache.redis = \"redis\"",
    "cache.redis: found \"redis\"; allowed: its default; there is no second level of the cache in this version"
  ),
  (
    "listen.allow = [\"10.0.0.0/33\"]",
    "listen.allow[0]: found \"10.0.0.0/33\"; allowed: a prefix such as \"192.0.2.0/24\", or \"connected\""
  ),
  (
    "listen.addresses = [\"[::1]:53\", \"[0::1]:53\"]",
    "listen.addresses[1]: found \"[0::1]:53\" again; allowed: each only once"
  ),
  (
    "refresh.keep = [\"bücher.example\"]",
    "refresh.keep[0]: found \"bücher.example\"; allowed: a domain name in ASCII (xn--…)"
  ),
  // Keys that nobody knows.
  (
    "web.adress = \"\"", "web.adress: found an unknown key (did you mean \"address\"?); allowed: address"
  ),
  ("log.colour = 1", "log.colour: found an unknown key; allowed: level, format, queries"),
  ("log.\"a\\nb\" = 1", "log.\"a\\u{A}b\": found an unknown key; allowed: level, format, queries"),
  ("addresses = [\"127.0.0.1:53\"]", "addresses: a key outside of its table; it belongs below [listen]"),
  ("kind = \"json\"", "kind: a key outside of its table; it belongs below [[provider]]"),
  ("url = \"https://192.0.2.1/\"", "url: a key outside of its table; it belongs below [[provider]]"),
  (
    "servers = [\"192.0.2.1\"]", "servers: a key outside of its table; it belongs below [localdns] or [[provider]]"
  ),
  // Values that contradict each other.
  ("cache.min_ttl = \"2h\"", "cache.min_ttl: found \"2h\"; allowed: at most max_ttl, which is \"1h\""),
  (
    "localdns.servers = [\"127.0.0.1\"]",
    "localdns.servers: found our own 127.0.0.1:53; allowed: other addresses than in listen.addresses"
  ),
  (
    "listen.addresses = [\"0.0.0.0:53\"]\nlocaldns.servers = [\"127.0.0.9\"]",
    "localdns.servers: found our own 127.0.0.9:53; allowed: other addresses than in listen.addresses"
  ),
]

@Test(arguments: lines)
func `a mistake says where it is, what was found and what is allowed`(text: String, line: String) {
  #expect(mistakes(text) == ["test.toml: \(line)"])
}

@Test(arguments: [
  ("a = \n", "test.toml:1:5: found a broken key-value pair: expected value, saw '\\n'; allowed: TOML 1.0"),
  (
    "\na = 1\na = 2\n",
    "test.toml:3:5: found a broken key-value pair: cannot redefine existing integer 'a'; allowed: TOML 1.0"
  ),
  ("[listen\n", "test.toml:1:8: found a broken table header: expected ']', saw '\\n'; allowed: TOML 1.0"),
])
func `what is not TOML is refused with line and column`(text: String, line: String) {
  #expect(mistakes(text) == [line])
}

@Test func `all mistakes come in one go`() {
  let found = mistakes(
    """
    cahce = 1
    [listen]
    workers = -1
    [[provider]]
    kind = "jsn"
    timeout = 2
    [[rule]]
    use = "nobody"
    [log]
    level = "loud"
    """)
  let keys = found.map { String($0.split(separator: " ")[1]) }
  #expect(
    Set(keys) == [
      "cahce:", "listen.workers:", "provider[0].kind:", "provider[0].timeout:", "rule[0].names:", "rule[0].use:",
      "log.level:",
    ])
  #expect(keys.count == 7)
}

@Test func `who lets everyone ask is warned`() {
  #expect(warnings("listen.allow = [\"::/0\"]").first?.contains("open resolver") == true)
}

@Test func `port 0 is one that the kernel chooses, and only to listen on`() throws {
  #expect(try configuration("listen.addresses = [\"[::1]:0\"]").listen.addresses.map(\.port) == [0])
  for text in ["localdns.servers = [\"192.0.2.1:0\"]", "provider = [{ servers = [\"192.0.2.1:0\"] }]"] {
    #expect(mistakes(text).count == 1, "\(text)")
  }
}

@Test func `a configuration file that is not there or is none says what to do`() throws {
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
