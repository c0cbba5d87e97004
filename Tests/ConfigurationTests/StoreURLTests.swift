// StoreURLTests.swift -- the URLs of `cache.redis`: every allowed form, and what is wrong with the others.

import Ciphers
import Configuration
import DNSWire
import Testing

typealias StoreURL = Configuration.StoreURL

private func host(_ text: String, _ port: UInt16 = 6379) -> Configuration.StoreEndpoint {
  .host(Host(text: text)!, port: port)
}

/// Whether the fault is the one that the text has.
private func fault(of text: String) -> StoreURL.Fault? {
  do throws(StoreURL.Fault) {
    _ = try StoreURL(text: text)
    return nil
  } catch { return error }
}

@Suite struct StoreURLTests {
  @Test(arguments: [
    ("redis://127.0.0.1", host("127.0.0.1"), 0), ("redis://127.0.0.1:6380", host("127.0.0.1", 6380), 0),
    ("redis://127.0.0.1/", host("127.0.0.1"), 0), ("redis://127.0.0.1:6379/15", host("127.0.0.1"), 15),
    ("redis://[::1]", host("::1"), 0), ("redis://[2001:db8::1]:1/0", host("2001:db8::1", 1), 0),
    ("redis://store.example:65535/1000000", host("store.example", 65535), 1_000_000),
    ("redis://store/007", host("store"), 7), ("REDIS://Store.Example", host("store.example"), 0),
    ("unix:///run/redis.sock", .socket(path: "/run/redis.sock"), 0),
    ("unix:/run/redis.sock", .socket(path: "/run/redis.sock"), 0),
    ("unix:///run/redis.sock?db=3", .socket(path: "/run/redis.sock"), 3),
    ("unix:/run/redis.sock?db=0", .socket(path: "/run/redis.sock"), 0),
    ("unix:///run/a%20b%3F@c", .socket(path: "/run/a b?@c"), 0),
    ("Unix:///s", .socket(path: "/s"), 0),
  ])
  func `a URL names a store and a database`(text: String, endpoint: Configuration.StoreEndpoint, database: Int) throws {
    let url = try StoreURL(text: text)
    #expect(url.endpoint == endpoint)
    #expect(url.database == database)
    #expect(url.user == nil && url.password == nil)
  }

  @Test func `the scheme decides about TLS, and the default port is the same`() throws {
    #expect(try StoreURL(text: "redis://store").scheme == .redis)
    #expect(try StoreURL(text: "rediss://store").scheme == .rediss)
    #expect(try StoreURL(text: "rediss://store").endpoint == host("store"))
    #expect(try StoreURL(text: "unix:///s").scheme == .unix)
  }

  @Test(arguments: [
    ("user:password@", "user", "password"), (":password@", nil, "password"), ("user@", "user", nil),
    ("user:@", "user", nil), (":@", nil, nil), ("@", nil, nil), (":pass:word@", nil, "pass:word"),
    ("u%40v:p%2F%3a%25@", "u@v", "p/:%"), ("%C3%BC:%F0%9F%94%91@", "ü", "🔑"), ("ü:ß@", "ü", "ß"),
    ("a!$&'()*+,;=b:c@", "a!$&'()*+,;=b", "c"),
  ])
  func `user and password are percent-decoded`(text: String, user: String?, password: String?) throws {
    for scheme in ["redis", "rediss"] {
      let url = try StoreURL(text: "\(scheme)://\(text)store:6379/2")
      #expect(url.user == user)
      #expect(url.password == password.map { Secret($0) })
      #expect(url.endpoint == host("store"))
      #expect(url.database == 2)
    }
  }

  @Test(
    arguments: [
      (
        StoreURL.Fault.scheme,
        [
          "", "redis", "127.0.0.1:6379", "store", "http://store", "redis+sentinel://store/name", "redis:store",
          "redis:/store", "redis :// store", "://store", "tcp://store", "redis+tls://store",
        ]
      ),
      (
        .credentials,
        [
          "redis://u:a@b@store", "redis://u:a/b@store", "redis://u:a?b@store", "redis://u:a#b@store",
          "redis://u:a b@store", "redis://u:%@store", "redis://u:%4@store", "redis://u:%zz@store", "redis://%4:x@store",
          "redis://u:%FF@store", "redis://u:%00@store", "redis://u:%0A@store", "redis://[u]:p@store",
        ]
      ),
      (
        .host,
        [
          "redis://", "redis:///0", "redis://:6379", "redis://::1", "redis://::1:6379", "redis://[::1", "redis://[]",
          "redis://[::1]6379", "redis://[127.0.0.1]", "redis://[store]", "redis://[[::1]]", "redis://a..b",
          "redis://1.2.3", "redis://1.2.3.256", "redis://a store", "redis://user@", "redis://[fe80::1%25eth0]",
          "redis://a,b:6379",
        ]
      ),
      (
        .port,
        [
          "redis://store:0", "redis://store:65536", "redis://store:", "redis://store:x", "redis://store:-1",
          "redis://store:+1", "redis://[::1]:0", "redis://[::1]:", "redis://store:1:2", "redis://user:password",
          "redis://store:99999999999999999999",
        ]
      ),
      (
        .database,
        [
          "redis://store/x", "redis://store/-1", "redis://store/+1", "redis://store/1000001", "redis://store/1/",
          "redis://store//", "redis://store/0/1", "redis://store/%30", "redis://store/٣",
          "redis://store/99999999999999999999", "unix:///s?db=", "unix:///s?db=x", "unix:///s?db=1000001",
          "unix:///s?db=1&db=2",
        ]
      ),
      (
        .query,
        [
          "redis://store#", "redis://store/0#x", "redis://store?db=1", "redis://store/0?timeout=1", "unix:///s#x",
          "unix:///s?", "unix:///s?password=x", "unix:///s?DB=1",
        ]
      ),
      (
        .path,
        [
          "unix:", "unix://", "unix:///", "unix:run/s", "unix://run/s", "unix://user:password@/s", "unix:////s",
          "unix:///s/", "unix:///%", "unix:///%00", "unix:///a%0Ab", "unix:///%FF",
          "unix:///" + String(repeating: "x", count: 107),
        ]
      ),
    ] as [(StoreURL.Fault, [String])])
  func `anything else is refused, with the reason`(expected: StoreURL.Fault, texts: [String]) {
    for text in texts { #expect(fault(of: text) == expected, "\(text)") }
  }

  @Test func `a socket's path has at most 107 octets, as the kernel needs it`() throws {
    let path = "/" + String(repeating: "x", count: 106)
    #expect(try StoreURL(text: "unix://\(path)").endpoint == .socket(path: path))
  }

  @Test(arguments: [
    ("redis://store", "redis://store:6379/0"), ("rediss://[::1]:1/2", "rediss://[::1]:1/2"),
    ("redis://:canary@store", "redis://…@store:6379/0"), ("redis://canary:canary@store", "redis://…@store:6379/0"),
    ("unix:/run/s", "unix:///run/s?db=0"),
  ])
  func `a description has neither user nor password`(text: String, description: String) throws {
    #expect(try StoreURL(text: text).description == description)
    #expect("\(try StoreURL(text: text))" == description)
  }

  @Test func `no dump of a URL shows the password`() throws {
    let url = try StoreURL(text: "redis://user:canary@store")
    var dumped = String(reflecting: url)
    dump(url, to: &dumped)
    #expect(!dumped.contains("canary"), "\(dumped)")
  }

  @Test func `an empty text means no store`() throws {
    #expect(try configuration("cache.redis = \"\"").cache.redis == nil)
    #expect(try configuration("").cache.redis == nil)
    #expect(
      try configuration("cache.redis = \"redis://127.0.0.1:6379/0\"").cache.redis
        == StoreURL(text: "redis://127.0.0.1"))
  }

  private static let allowed =
    "expected redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], the same with rediss:// (TLS), or "
    + "unix:///PATH[?db=DATABASE]"

  @Test(arguments: [
    ("http://10.0.0.1", "\"http://10.0.0.1\" has none of these schemes"),
    ("redis+sentinel://a:26379,b/name", "\"redis+sentinel://a:…\" has none of these schemes"),
    ("redis://10.0.0.1:0/1", "\"redis://10.0.0.1:0/1\" has a port that is not from 1 to 65535"),
    ("redis://10.0.0.1:65536", "\"redis://10.0.0.1:65536\" has a port that is not from 1 to 65535"),
    ("redis://10.0.0.1/a", "\"redis://10.0.0.1/a\" has a database that is not a number from 0 to 1000000"),
    ("redis://10.0.0.1#a", "\"redis://10.0.0.1#…\" has a query or fragment that is not allowed"),
    ("redis://::1", "\"redis://::1\" has no valid host"),
    ("unix:a", "\"unix:…\" has no absolute path of a socket with at most 107 octets"),
    (
      "redis://u:p@q@10.0.0.1",
      "\"redis://…@10.0.0.1\" has a user or password with characters that must be percent-encoded"
    ),
  ])
  func `a refused URL is one line that says what was found and what is allowed`(text: String, found: String) {
    #expect(mistakes("cache.redis = \"\(text)\"") == ["test.toml: cache.redis: \(found); \(StoreURLTests.allowed)"])
  }

  @Test(arguments: ["3", "true", "[\"redis://127.0.0.1\"]", "{ url = \"redis://127.0.0.1\" }", "\"redis://a\\nb\""])
  func `a value that is not one line of text is refused`(value: String) {
    #expect(mistakes("cache = { redis = \(value) }").map { $0.hasSuffix(StoreURLTests.allowed) } == [true])
  }

  @Test(arguments: [
    "http://user:canary@store", "redis+sentinel://:canary@store", "redis://user:canary@store:0",
    "redis://user:canary@store/x", "redis://user:canary@store#x", "redis://user:a@canary@store",
    "redis://user:a/canary@store", "redis://user:a#canary@store", "redis://user:%canary@store", "redis://user:canary",
    "redis://user:canary/0", "redis://:canary", "redis:user:canary", "redis:canary@store", "user:canary@store",
    "user:canary@store:6379", "unix://user:canary@/s", "unix:///s?password=canary", "user:canary@redis://store",
    "redis://store?password=canary", "redis://user:canary@[::1", "redis://user:canary@store:6379:1",
  ])
  func `no message shows the password`(text: String) {
    let found = messages("cache.redis = \"\(text)\"")
    #expect(found.count == 1)
    #expect(found.allSatisfy { $0.contains("cache.redis: \"") && !$0.contains("canary") }, "\(found)")
  }
}
