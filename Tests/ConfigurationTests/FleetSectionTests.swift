// FleetSectionTests.swift -- `cache.redis` and the `[fleet]` section: URLs, limits, secrets, what goes together.

import Ciphers
import Configuration
import DNSWire
import TestSupport
import Testing

@Suite struct `The URL of a store` {
  @Test(arguments: [
    ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"), ("redis://127.0.0.1", "redis://127.0.0.1:6379/0"),
    ("REDIS://Store.Example:7000/3", "redis://store.example:7000/3"),
    ("rediss://[2001:db8::1]/", "rediss://[2001:db8::1]:6379/0"), ("unix:///run/redis.sock", "unix:///run/redis.sock"),
    ("unix:/run/redis.sock?db=2", "unix:///run/redis.sock?db=2"),
    ("redis://u:p%40ss%3A@127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
  ])
  func `is read, and shown without its password`(text: String, shown: String) throws {
    let url = try #require(StoreURL(text: text))
    #expect("\(url)" == shown)
    #expect(String(reflecting: url) == shown)
  }

  @Test func `has user, password, database and place`() throws {
    let url = try #require(StoreURL(text: "rediss://al%20i:p%40ss%3A@store.example:7000/12"))
    #expect(url.user == "al i" && url.password == Secret("p@ss:") && url.database == 12)
    #expect(url.place == .tcp(.name(DomainName(text: "store.example")!), port: 7000, isEncrypted: true))
    let plain = try #require(StoreURL(text: "redis://:secret@127.0.0.1"))
    #expect(plain.user.isEmpty && plain.password == Secret("secret") && plain.isLocal)
    #expect(try #require(StoreURL(text: "redis://user@192.0.2.1")).password == nil)
  }

  @Test(arguments: [
    "", "redis", "redis:", "redis:/x", "redis://", "redis://:6379", "redis://h:0", "redis://h:65536", "redis://h/x",
    "redis://h/-1", "redis://h/1000001", "redis://h/0/1", "redis://h#x", "http://h", "redis+sentinel://h:26379/x",
    "unix://", "unix:run", "unix:///p?x=1", "unix:///p?db=x", "redis://%zz@h", "redis://%f@h", "redis://u:%FF@h",
    "redis://a b",
  ])
  func `anything else is none`(text: String) { #expect(StoreURL(text: text) == nil) }
}

@Suite struct `The fleet section` {
  private let redis = "[cache]\nredis = \"redis://127.0.0.1\"\n[fleet]\n"

  @Test(arguments: [
    "namespace = \"\"", "namespace = \"a b\"", "namespace = \"a:\"", "timeout = \"0ms\"", "timeout = \"501ms\"",
    "connect_timeout = \"1ms\"", "wait = \"3s\"", "units = 1", "user = \"a b\"", "ca_file = \"relative\"",
    "secret = \"too short\"", "bootstrap = [\"name.example\"]", "client_key_file = \"/x\"",
    "client_certificate_file = \"/x\"",
  ])
  func `what is not allowed is one mistake, which names the key`(line: String) {
    let found = mistakes(redis + line)
    #expect(found.count == 1 && found[0].contains("fleet.\(line.prefix { $0 != " " })"), "\(found)")
  }

  @Test func `has its keys`() throws {
    let secret = String(repeating: "s", count: 32)
    let read = try configuration(
      """
      [cache]
      redis = "rediss://store.example"
      [fleet]
      namespace = "dns:a"
      site = "fra"
      user = "httpdnsd"
      password = "p"
      secret = "\(secret)"
      tls_name = "redis.example"
      bootstrap = ["192.0.2.53"]
      timeout = "5ms"
      connect_timeout = "1s"
      wait = "0ms"
      units = false
      """)
    let fleet = read.fleet
    #expect(fleet.namespace == "dns:a" && fleet.site == "fra" && fleet.user == "httpdnsd" && !fleet.units)
    #expect(fleet.password == Secret("p") && fleet.secret == Secret(secret) && fleet.tlsName == "redis.example")
    #expect(fleet.bootstrap == [Endpoint(text: "192.0.2.53:53")!])
    #expect([fleet.timeout, fleet.connectTimeout, fleet.wait] == [.milliseconds(5), .seconds(1), .zero])
    #expect(try configuration("").cache.redis == nil)
  }

  @Test func `what does not go together is refused`() {
    let store = "[cache]\nredis = \"redis://u:p@127.0.0.1\"\n[fleet]\n"
    #expect(mistakes(store + "user = \"v\"").first?.contains("fleet.user: \"v\" differs from the user") == true)
    #expect(mistakes(store + "user = \"u\"") == [])
    #expect(mistakes(store + "password = \"q\"").first?.contains("cache.redis has a password already") == true)
    let name = "[cache]\nredis = \"redis://store.example\"\n"
    #expect(mistakes(name) == [])
    let alone = mistakes("[localdns]\nservers = []\n" + name)
    #expect(alone.count == 1 && alone[0].contains("cache.redis: no resolver may look up store.example"), "\(alone)")
    #expect(mistakes("[localdns]\nservers = []\n\(name)[fleet]\nbootstrap = [\"192.0.2.53\"]") == [])
  }

  @Test func `what has no effect, or is a risk, is a warning`() {
    func warned(_ text: String) -> [String] { warnings(text) }
    #expect(warned("[fleet]\nsite = \"x\"").contains { $0.contains("fleet: has no effect: cache.redis is empty") })
    #expect(warned(redis + "tls_name = \"x\"").contains { $0.contains("fleet.tls_name: has no effect") })
    #expect(warned(redis + "bootstrap = [\"192.0.2.53\"]").contains { $0.contains("fleet.bootstrap: not used") })
    #expect(
      warned("[cache]\nenabled = false\nredis = \"redis://127.0.0.1\"").contains {
        $0.contains("cache.redis: has no effect: cache.enabled is false")
      })
    #expect(
      warned("[cache]\nredis = \"redis://:p@127.0.0.1\"").contains { $0.contains("use fleet.password_file instead") })
    let risk = "without fleet.secret_file whoever can write to the store decides where names lead"
    #expect(warned("[cache]\nredis = \"redis://192.0.2.1\"").contains { $0.contains(risk) })
    for place in ["redis://127.0.0.1", "redis://[::1]", "unix:///run/redis.sock"] {
      #expect(warned("[cache]\nredis = \"\(place)\"").allSatisfy { !$0.contains(risk) })
    }
  }
}
