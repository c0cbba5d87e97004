// TableTests.swift -- the self-built table, the settings, and requests that were damaged on the way.

import DNSWire
import HTTPMessage
import HTTPServer
import Testing

@testable import httpdns_simulator

private let zone = """
  $ORIGIN example.com.
  b     A 192.0.2.3
  a     A 192.0.2.1
  a     A 192.0.2.2
  a     AAAA 2001:db8::1
  *.w   A 192.0.2.4
  text  TXT "no addresses"
  """

private func table(_ settings: String = "", known: String? = nil) throws -> DialectReply {
  ask(
    DomainTable(), "/table", header: known.map { [HTTPField("If-None-Match", $0)] } ?? [],
    of: try service(zone).with(settings))
}

@Suite struct `The self-built table` {
  private let vectors = Vectors.all.table

  @Test func `the self-built table bodies are those of the vectors`() throws {
    #expect(try table().text == vectors.body)
    #expect(try table("table-enable=false").text == vectors.disabled)
    #expect(
      try table("table-ipv6=true&table-service=B").text.hasPrefix(
        #"{"service":"B","enable":1,"domainlist":[{"domain":"a.example.com","ips":["192.0.2.1","192.0.2.2","2001:db8::1"]}"#
      ))
  }

  @Test func `the table's entity tag gives 304 until something changes`() throws {
    let first = try table()
    let tag = try #require(first.fields.first { $0.name == "ETag" }?.value)
    for field in [tag, "W/\(tag)", "\"other\", \(tag)", "*"] {
      let again = try table(known: field)
      #expect(again.status == 304)
      #expect(again.body.isEmpty)
      #expect(again.fields == first.fields)
    }
    #expect(try table(known: "\"other\"").status == 200)
    #expect(try table("table-enable=false", known: tag).status == 200)
  }

  @Test func `the table may have fifty thousand names`() throws {
    let text = try table("table-domains=50000").text
    #expect(text.split(separator: "\"domain\":").count == 50_001)
    #expect(text.hasSuffix(#"{"domain":"n49999.bench.example","ips":["198.18.195.79"]}]}"#))
  }

  @Test func `the table is read-only`() {
    #expect(ask(DomainTable(), "/table", method: .post).status == 405)
    #expect(ask(DomainTable(), "/table", method: .head).status == 200)
  }
}

@Suite struct `Settings` {
  @Test(arguments: [
    ("unknown=1", "unknown is not known"), ("emas-age=-1", "\"-1\" is no value for emas-age: 0 to 2147483647"),
    ("tencent-empty=yes", "\"yes\" is no value for tencent-empty: true or false"),
    ("tencent-withhold=a", "\"a\" is no value for tencent-withhold: none, ipv4, ipv6, both"),
    ("not-listed=a..b", "\"a..b\" is no value for not-listed: domain names, with commas between them"),
  ])
  func `a mistake in the settings is reported with the allowed values`(text: String, reason: String) {
    #expect(throws: SimulatorError(description: reason)) { try service().with(text) }
  }

  @Test func `a mistake leaves all as it was`() throws {
    var options = ServiceOptions()
    #expect(throws: SimulatorError.self) { try options.take(Parameters(query: "emas-age=5&table-domains=x")) }
    #expect(options.emas.age == 0)
  }

  @Test func `the settings as shown are accepted`() throws {
    let changed = try service().with(
      "clock-offset=-7&not-listed=a.example.,b.example.&emas-service-ip=192.0.2.1:80,2001:db8::1&tencent-refusal=empty")
    let shown = try #require(flatObject(changed.options.settingsJSON))
    #expect(shown.pairs.map(\.name) == Setting.all.map(\.name))
    var options = ServiceOptions()
    try options.take(shown)
    #expect(options.settingsJSON == changed.options.settingsJSON)
    #expect(shown["emas-service-ip"] == "192.0.2.1:80,2001:db8::1")
  }
}

@Suite struct `Damaged requests` {
  @Test func `damaged requests of any content are answered`() throws {
    var random = SystemRandomNumberGenerator()
    let seed = UInt64.random(in: .min ... .max, using: &random)
    var dice = Dice(state: seed)
    let vectors = Vectors.all
    let paths =
      vectors.tencent_requests.map(\.path) + vectors.emas_v1_signatures.compactMap(\.path)
      + vectors.emas_v2_signatures.map(\.path) + vectors.alidns_keys.map(\.path)
      + ["/100000/ss?n=abcdef2345&t=1700000060&s=884e8b86d8d7c43db7af037839064c5c&region=cn", "/table?x=1"]
    let service = service()
    for path in paths {
      for _ in 0..<200 {
        let target = dice.damaged(path)
        let transfer = DialectRequest(HTTPServerRequest(target: target), now: 1_700_000_000)
        guard let dialect = allDialects.first(where: { $0.claims(transfer) }) else { continue }
        let reply = dialect.reply(to: transfer, from: service)
        #expect([200, 304, 400, 401, 403, 404, 500].contains(reply.status), "seed \(seed): \(target)")
        #expect(reply.units <= reply.questions.count * 5, "seed \(seed): \(target)")
      }
    }
  }
}

/// Seeded dice that change, drop, double and exchange octets.
private struct Dice {
  var state: UInt64

  mutating func throwOf(_ sides: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(state >> 33) % sides
  }

  mutating func damaged(_ text: String) -> String {
    var octets = Array(text.utf8)
    let special = Array("&=%;,./0aF\u{e9}- ".utf8)
    for _ in 0...throwOf(4) where octets.count > 1 {
      let place = 1 + throwOf(octets.count - 1)
      switch throwOf(5) {
      case 0: octets.remove(at: place)
      case 1: octets[place] = special[throwOf(special.count)]
      case 2: octets.insert(special[throwOf(special.count)], at: place)
      case 3: octets.removeSubrange(place...)
      default: octets += octets[place...]
      }
    }
    return String(decoding: octets, as: UTF8.self)
  }
}
