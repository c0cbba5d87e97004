// CacheFingerprintsTests.swift -- the texts of which the cache file has fingerprints: word for word.
//
// A change here throws away, at the upgrade, what every machine has kept.

import Configuration
import DNSWire
import EventLoop
import Logging
import MessageCache
import Persistence
import Refresh
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `The meaning of a number in the cache file` {
  private func preparation(_ text: String, names: String = "") throws -> Preparation {
    let configuration = try Configuration.parse(
      text: "\(text)\n[names]\nhosts_file = \"\"\n\(names)", fileName: "", environment: { _ in nil }
    ).configuration
    return try Preparation(configuration, ServiceNumbers(), .quiet)
  }

  private func meanings(_ text: String, names: String = "") throws -> CacheMeanings {
    CacheMeanings(try preparation(text, names: names))
  }

  @Test(
    arguments: [
      ("kind = \"alidns\"", "alidns unsigned short=false schedule=false"),
      ("kind = \"alidns\"\nshort = true", "alidns unsigned short=true schedule=false"),
      (
        "kind = \"alidns\"\naccount_id = \"999\"\naccess_key_id = \"KEY\"\naccess_key_secret = \"canary\"\nschedule = true",
        "alidns account=999 key=KEY short=false schedule=true"
      ),
      ("kind = \"tencent\"\ntoken = \"canary\"", "tencent https id=-"),
      ("kind = \"tencent\"\ntoken = \"canary\"\nid = \"7\"", "tencent https id=7"),
      ("kind = \"tencent\"\ncipher = \"aes\"\nid = \"7\"\nkey = \"canarycanarycana\"", "tencent aes id=7"),
      ("kind = \"tencent\"\ncipher = \"des\"\nid = \"7\"\nkey = \"canarycanary\"", "tencent des id=7"),
      (
        "kind = \"emas\"\naccount_id = \"139450\"",
        "emas v1 account=139450 signed=false cipher=none region=global schedule=true"
      ),
      (
        "kind = \"emas\"\naccount_id = \"139450\"\napi = \"v2\"\nsecret_key = \"ca0a\"\nregion = \"sg\"\nschedule = false\n"
          + "aes_secret_key = \"ca0aca0aca0aca0aca0aca0aca0aca0a\"\naes_mode = \"gcm\"",
        "emas v2 account=139450 signed=true cipher=gcm region=sg schedule=false"
      ),
      ("kind = \"baidu\"\naccount_id = \"139450\"\nsecret = \"canarycanary\"", "baidu account=139450"),
      ("kind = \"volcengine\"\naccount_id = \"7\"\nsecret_key = \"canarycanary\"", "volcengine account=7"),
      ("kind = \"jdcloud\"\naccount_id = \"7\"\nkey = \"canarycanary\"", "jdcloud account=7"),
      (
        "kind = \"ucloud\"\nauth_id = \"7\"\nauth_secret = \"canarycanary\"",
        "ucloud account=7 app=- schedule=true"
      ),
      (
        "kind = \"ucloud\"\nauth_id = \"7\"\nauth_secret = \"canarycanary\"\napp_id = \"a\"\nschedule = false",
        "ucloud account=7 app=a schedule=false"
      ),
      ("kind = \"text\"\nurl = \"http://192.0.2.1/d\"", "text dnspod url=http://192.0.2.1/d"),
      (
        "kind = \"text\"\nurl = \"http://192.0.2.1:8080/d\"\ndialect = \"114\"",
        "text 114 url=http://192.0.2.1:8080/d"
      ),
      ("kind = \"json\"\nurl = \"https://192.0.2.1/resolve\"", "json"),
      ("kind = \"doh\"\nurl = \"https://192.0.2.1/dns-query\"", "doh post"),
      ("kind = \"doh\"\nurl = \"https://192.0.2.1/dns-query\"\nmethod = \"get\"", "doh get"),
      (
        "kind = \"table\"\nurl = \"https://192.0.2.1:444/table\"\nhost = \"table.example\"",
        "table interval=300000000000ns ttl=60000000000ns host=table.example url=https://192.0.2.1:444/table"
      ),
    ])
  func `the fingerprint text of each kind of provider contains no secrets`(keys: String, meaning: String) throws {
    let sources = try meanings("[[provider]]\nname = \"p\"\n\(keys)\n").sources
    #expect(sources[EntrySource.provider(0).number] == "p \(meaning)")
    #expect(sources[EntrySource.localDNS.number] == "localdns")
    #expect(sources[EntrySource.unknown.number] == "nobody")
  }

  @Test func `the fingerprint text of a table names its file`() throws {
    let table = TemporaryFile("{}")
    let keys = "kind = \"table\"\nfile = \"\(table.path)\"\nttl = \"5s\""
    let sources = try meanings("[[provider]]\nname = \"p\"\n\(keys)\n").sources
    #expect(
      sources[EntrySource.provider(0).number] == "p table interval=300000000000ns ttl=5000000000ns file=\(table.path)")
  }

  private static let doh = "[[provider]]\nname = \"p\"\nkind = \"doh\"\nurl = \"https://192.0.2.1/dns-query\"\n"

  @Test func `the fingerprint text of a route contains what its answers depend on`() throws {
    let rules = """
      \(Self.doh)
      [[provider]]
      name = "q"
      kind = "json"
      url = "https://192.0.2.2/resolve"
      [localdns]
      servers = ["system", "192.0.2.53"]
      [[rule]]
      names = ["a.example"]
      use = "localdns"
      servers = ["[2001:db8::53]:54"]
      [[rule]]
      names = ["b.example"]
      use = "q"
      max_ttl = "60s"
      fallback = "never"

      """
    let routes = try meanings(rules).routes
    let local = "localdns=(system 192.0.2.53:53)"
    #expect(
      routes == [
        "providers=(p doh post) (q json) \(local) fallback=true network=false ttl=0-3600 negative=30 localdns=60",
        "providers= \(local) fallback=true network=true ttl=0-3600 negative=30 localdns=60",
        "providers= \(local) fallback=true network=false ttl=0-10 negative=10 localdns=60",
        "providers= localdns=() fallback=false network=false ttl=0-3600 negative=30 localdns=60",
        "providers=(p doh post) (q json) \(local) fallback=true network=false search=after-denial"
          + " ttl=0-3600 negative=30 localdns=60",
        "providers=(p doh post) (q json) \(local) fallback=true network=false search=first"
          + " ttl=0-3600 negative=30 localdns=60",
        "providers= localdns=([2001:db8::53]:54) fallback=true network=false ttl=0-3600 negative=30 localdns=60",
        "providers=(q json) \(local) fallback=false network=false ttl=0-60 negative=30 localdns=60",
      ])
    // Whether private addresses are refused counts where they are.
    let filtered = try meanings(rules, names: "rebind_protection = true\nrebind_allow = [\"*.c.example\"]").routes
    for number in [0, 4, 5, 7] { #expect(filtered[number] == "\(routes[number]) private=(*.c.example.)") }
    for number in [1, 6] { #expect(filtered[number] == routes[number]) }
  }

  @Test func `the cache file uses the fingerprints of the running daemon`() throws {
    let preparation = try preparation(Self.doh)
    let names = preparation.configuration.providers.map(\.meaning)
    for (route, text) in zip(preparation.plan.routes, CacheMeanings(preparation).routes) {
      #expect(text.hasPrefix("\(RouteMeaning(route, providers: names).source) ttl="))
    }
  }
}
