// FleetFingerprintsTests.swift -- which configurations share answers: the texts word for word, and what changes them.
//
// A change here makes two fleets of one until every daemon is upgraded.

import Configuration
import DNSWire
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Resolver

@Suite struct `The fingerprint of a route` {
  private func plan(_ text: String) throws -> (Configuration, [Route]) {
    let configuration = try Configuration.parse(
      text: "\(text)\n[names]\nhosts_file = \"\"\n", fileName: "", environment: { _ in nil }
    ).configuration
    return (configuration, try Preparation(configuration, ServiceNumbers(), .quiet).plan.routes)
  }

  private func fingerprint(_ text: String, redis: String = "redis://127.0.0.1", cache: String = "") throws -> [UInt8] {
    try plan("\(text)\n[cache]\nredis = \"\(redis)\"\n\(cache)").1[0].fleetFingerprint
  }

  private let provider = "[[provider]]\nkind = \"json\"\nurl = \"https://192.0.2.1/resolve\"\n"

  @Test func `its text has all that makes answers differ`() throws {
    let (configuration, routes) = try plan(provider)
    #expect(
      routes[0].fleetMeaning(configuration)
        == "providers=(json servers=192.0.2.1:443 name=192.0.2.1 path=/resolve subnet=none ad=false empty=true) "
        + "ttl=0-3600 negative=30 fallback=true private=all")
    // Names of the network, portals and probes belong to one network or to no provider.
    for route in routes[1...4] { #expect(route.fleetMeaning(configuration) == nil) }
  }

  @Test func `each of these is a fleet of its own`() throws {
    var all = [try fingerprint(provider)]
    for more in [
      "trust_ad = true", "client_subnet = \"from-client\"", "client_subnet = \"192.0.2.0/24\"",
      "url = \"https://192.0.2.2/resolve\"", "url = \"https://192.0.2.1/dns\"", "fallback_on_empty = false",
    ] {
      let text = more.hasPrefix("url") ? "[[provider]]\nkind = \"json\"\n\(more)\n" : provider + more + "\n"
      all.append(try fingerprint(text))
    }
    all.append(try fingerprint(provider + "[[provider]]\nkind = \"doh\"\nurl = \"https://192.0.2.3/q\"\n"))
    for cache in ["max_ttl = \"60s\"", "min_ttl = \"10s\"", "max_negative_ttl = \"60s\""] {
      all.append(try fingerprint(provider, cache: cache))
    }
    #expect(Set(all).count == all.count && all.allSatisfy { $0.count == 32 })
  }

  @Test func `what does not change answers keeps the fleet together`() throws {
    let one = try fingerprint(provider)
    for more in ["name = \"other\"", "timeout = \"1s\"", "units_per_day = 5", "requests_per_second = 3"] {
      #expect(try fingerprint(provider + more + "\n") == one, "\(more)")
    }
    #expect(try fingerprint(provider, redis: "unix:///run/redis") == one)
    #expect(try plan(provider).1[0].fleetFingerprint.isEmpty)
    #expect(try fingerprint(provider, cache: "per_network = true").isEmpty)
  }

  @Test func `an account is counted by its identity, and never has a colon`() throws {
    func account(_ text: String) throws -> String { try plan(text).0.providers[0].fleetAccount }
    let emas = "[[provider]]\nkind = \"emas\"\naccount_id = \"139450\"\n"
    #expect(try account(emas) == account(emas + "name = \"x\"\nunits_per_day = 7\n"))
    #expect(try account(emas) != account("[[provider]]\nkind = \"emas\"\naccount_id = \"139451\"\n"))
    for more in ["region = \"sg\"", "schedule = false", "secret_key = \"0123456789abcdef0123456789abcdef\""] {
      #expect(try account(emas) == account(emas + more + "\n"), "\(more)")
    }
    for (kind, id, key) in [
      ("baidu", "account_id", "secret"), ("volcengine", "account_id", "secret_key"), ("jdcloud", "account_id", "key"),
      ("ucloud", "auth_id", "auth_secret"),
    ] {
      let text = "[[provider]]\nkind = \"\(kind)\"\n\(id) = \"1\"\n\(key) = \"canary\"\n"
      #expect(try account(text) == account(text.replacing("canary", with: "other") + "units_per_day = 7\n"))
      #expect(try account(text) != account(text.replacing("\"1\"", with: "\"2\"")))
    }
    let doh = "[[provider]]\nkind = \"doh\"\nurl = \"https://192.0.2.1/dns-query\"\n"
    #expect(try account(doh) == account(doh + "method = \"get\"\n"))
    #expect(try account(doh) != account(doh.replacing("192.0.2.1", with: "192.0.2.2")))
    #expect(try account(emas).utf8.count == 22 && !account(emas).contains(":"))
  }
}
