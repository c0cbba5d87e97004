// AliDNSTests.swift -- Alibaba's dialect: the shape of its bodies, its signature, its refusals.

import DNSWire
import Testing

@testable import httpdns_simulator

private let account = Account(
  identifier: "999999", accessKeyID: "TESTAKID00000001", accessKeySecret: "TESTSECRET0000000000000000000001")

private let zone = """
  $ORIGIN example.com.
  @      30  SOA ns1.example.com. hostmaster.example.com. 2024010101 3600 600 604800 60
  www    300 A 192.0.2.1
  www    300 A 192.0.2.2
  www    120 AAAA 2001:db8::1
  v4only 300 A 192.0.2.1
  t      300 TXT "hello world"
  """

@Suite struct `Alibaba's dialect` {
  private let vectors = Vectors.all
  private let signed = service(zone, accounts: [account])

  @Test func `AliDNS keys are those of the vectors`() {
    for vector in vectors.alidns_keys {
      let account = Account(
        identifier: vector.uid, accessKeyID: vector.access_key_id, accessKeySecret: vector.access_key_secret)
      #expect(account.aliDNSKey(ts: Array(vector.ts.utf8), name: Array(vector.name.utf8)) == vector.key)
    }
    #expect(!vectors.alidns_keys.isEmpty)
  }

  @Test func `every request of the vectors is taken as verified`() {
    for vector in vectors.alidns_keys {
      let reply = ask(AliDNS(), vector.path, of: signed)
      #expect(reply.status == 200)
      #expect(reply.isVerified == true)
    }
  }

  @Test func `the client settings of AliDNS are the vector's`() {
    let vector = vectors.alidns_conf
    for stream in vector.rc4_published_vectors {
      #expect(Hexadecimal.encode(rc4(Array(stream.plain.utf8), key: Array(stream.key.utf8))) == stream.hex)
    }
    let lists = AliDNSAccessLists(blockedZones: ["blocked.example.com"], blockedNames: ["exact.example.net"])
    let text = AliDNSConfiguration.lists(lists, version: 3, ttl: 3600)
    #expect(String(decoding: text, as: UTF8.self) == vector.inner_json)
    let account = Account(identifier: "1", accessKeyID: "a", accessKeySecret: vector.access_key_secret)
    #expect(String(decoding: AliDNSConfiguration.sealed(text, for: account), as: UTF8.self) == vector.outer_body)
  }

  @Test func `the client settings of AliDNS need the account`() {
    let conf = AliDNSConfiguration()
    let reply = ask(conf, "/conf?uid=999999&v=1&p=linux&ak=TESTAKID00000001&ev=10000", of: signed)
    #expect(reply.status == 200 && reply.text.hasPrefix(#"{"v":10000,"d":""#))
    #expect(ask(conf, "/conf?uid=999999&ak=other", of: signed).status == 401)
    #expect(ask(conf, "/conf?uid=1&ak=TESTAKID00000001", of: signed).status == 401)
  }

  @Test func `AliDNS bodies are those of the vectors`() {
    let bodies = vectors.alidns_responses
    func text(_ parameters: String, _ zone: String = zone) -> String {
      ask(AliDNS(), "/resolve?uid=1&\(parameters)", of: service(zone)).text
    }
    let chain = "alias.example.com. 600 CNAME www.example.com.\nwww.example.com. 60 A 192.0.2.1"
    #expect(text("name=www.example.com") == bodies.body("A, two addresses"))
    #expect(text("name=alias.example.com", chain) == bodies.body("CNAME chain"))
    #expect(text("name=www.example.com&type=28") == bodies.body("AAAA"))
    #expect(text("name=v4only.example.com&type=AAAA") == bodies.body("NODATA"))
    #expect(text("name=nope.example.com&type=1") == bodies.body("NXDOMAIN"))
    #expect(text("name=t.example.com&type=txt") == bodies.body("TXT is quoted"))
    #expect(text("name=www.example.com&short=1") == bodies.body("short=1"))
    #expect(text("name=nope.example.com&short=true") == bodies.body("short=1, nothing"))
  }

  private func signedTarget(
    uid: String = "999999", ak: String = "TESTAKID00000001", ts: String = "1700000000", key: String? = nil
  ) -> String {
    let right = "bac6e7c8c2a635b67bf4810a5cdb638e691f7fc501ce608a746e7092f14894c7"
    return "/resolve?name=www.example.com&type=1&uid=\(uid)&ts=\(ts)&key=\(key ?? right)&ak=\(ak)"
  }

  @Test(arguments: [0, 600, -600]) func `a signature holds within its window`(offset: Int64) {
    #expect(ask(AliDNS(), signedTarget(), of: signed, now: 1_700_000_000 + offset).status == 200)
  }

  @Test(arguments: [601, -601, -1_700_000_000]) func `an AliDNS signature outside of its time window gets 401`(
    offset: Int64
  ) {
    let reply = ask(AliDNS(), signedTarget(), of: signed, now: 1_700_000_000 + offset)
    #expect(reply.status == 401)
    #expect(reply.isVerified == false)
    #expect(reply.question != nil)
  }

  @Test func `a wrong or missing part of the signature is 401`() {
    #expect(ask(AliDNS(), signedTarget(uid: "1"), of: signed).status == 401)
    #expect(ask(AliDNS(), signedTarget(ak: "OTHER"), of: signed).status == 401)
    #expect(ask(AliDNS(), signedTarget(ts: "1700000001"), of: signed).status == 401)
    #expect(ask(AliDNS(), signedTarget(ts: "-9223372036854775808"), of: signed).status == 401)
    #expect(ask(AliDNS(), signedTarget(ts: "9223372036854775807"), of: signed).status == 401)
    #expect(ask(AliDNS(), signedTarget(key: String(repeating: "0", count: 64)), of: signed).status == 401)
    #expect(ask(AliDNS(), "/resolve?name=www.example.com&uid=999999&key=0", of: signed).status == 401)
  }

  @Test func `AliDNS answers unsigned requests, unless signatures are required`() {
    let target = "/resolve?name=www.example.com&uid=999999"
    #expect(ask(AliDNS(), target, of: signed).status == 200)
    #expect(ask(AliDNS(), target, of: signed).isVerified == nil)
    var strict = signed
    strict.options.requiresSignature = true
    #expect(ask(AliDNS(), target, of: strict).status == 401)
    #expect(ask(AliDNS(), signedTarget(), of: strict).status == 200)
  }

  @Test(arguments: [
    "/resolve?uid=1", "/resolve?uid=1&name=b%C3%BCcher.example", "/resolve?uid=1&name=a&type=70000",
    "/resolve?uid=1&name=a&edns_client_subnet=here",
  ])
  func `a wrong parameter is 400`(target: String) {
    #expect(ask(AliDNS(), target).status == 400)
  }

  @Test func `the subnet is noted, encoded or not`() {
    #expect(ask(AliDNS(), "/resolve?uid=1&name=a&edns_client_subnet=192.0.2.0/24").subnet == "192.0.2.0/24")
    #expect(ask(AliDNS(), "/resolve?uid=1&name=a&edns_client_subnet=192.0.2.0%2F24").subnet == "192.0.2.0/24")
  }

  @Test func `an account's answer is one unit, five over HTTPS; refusals and strangers are none`() {
    let target = "/resolve?name=www.example.com&uid=999999"
    #expect(ask(AliDNS(), target, of: signed).units == 1)
    #expect(ask(AliDNS(), target, of: signed, isSecure: true).units == 5)
    #expect(ask(AliDNS(), "\(target)&key=0", of: signed).units == 0)
    #expect(ask(AliDNS(), "/resolve?name=www.example.com", of: signed).units == 0)
  }

  @Test func `an account never shows its secret`() {
    var dumped = ""
    dump(account, to: &dumped)
    for text in ["\(account)", String(reflecting: account), dumped, "\(signed)"] {
      #expect(!text.contains("TESTSECRET"))
    }
  }
}
