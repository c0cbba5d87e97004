// TencentTests.swift -- Tencent's dialect: requests in each cipher, every form of reply, refusals.

import Ciphers
import DNSWire
import HTTPMessage
import HTTPServer
import Testing

@testable import httpdns_simulator

private let zone = """
  $ORIGIN example.com.
  @      30  SOA ns1.example.com. hostmaster.example.com. 2024010101 3600 600 604800 60
  www    120 A 192.0.2.1
  www    120 A 192.0.2.2
  six    60  AAAA 2001:db8::1
  six    60  AAAA 2001:db8::2
  v4only 120 A 192.0.2.1
  a      120 A 192.0.2.1
  b      60  A 192.0.2.2
  b      60  A 192.0.2.3
  both   120 A 192.0.2.1
  both   60  AAAA 2001:db8::1
  alias  30  CNAME www.example.com.
  """

private let des = BlockCipher(.desECB, padding: Array("DesKey01".utf8))
private let aes = BlockCipher(.aesCBC, padding: Array("AesKey0123456789".utf8))

private func token(
  _ names: String, _ parameters: String = "", of service: Service = service(zone), now: Int64 = 1_700_000_000
) -> DialectReply {
  ask(Tencent(), "/d?dn=\(names)&token=123456789&id=1234\(parameters)", of: service, now: now)
}

private func sealed(
  _ plain: String, _ cipher: BlockCipher = des, _ parameters: String = "", of service: Service = service(zone),
  now: Int64 = 1_700_000_000
) -> DialectReply {
  let algorithm = cipher.mode == .desECB ? "des" : "aes"
  let text = Hexadecimal.encode(cipher.seal(Array(plain.utf8)))
  return ask(Tencent(), "/d?dn=\(text)&id=1234&alg=\(algorithm)\(parameters)", of: service, now: now)
}

/// The text inside a reply; nil where it is not sealed with that key.
private func opened(_ reply: DialectReply, _ cipher: BlockCipher) -> String? {
  Hexadecimal.decode(reply.body).flatMap(cipher.open).map { String(decoding: $0, as: UTF8.self) }
}

@Suite struct `Tencent's dialect` {
  private let texts = Vectors.all.tencent_texts

  @Test func `every request of the vectors is understood, and its reply can be read`() throws {
    let service = try service(zone).with("tencent-free=true")
    let replies = Vectors.all.tencent_requests.map { ask(Tencent(), $0.path, of: service) }
    #expect(replies.map(\.status) == [200, 200, 200, 200, 200])
    #expect(replies.map(\.isVerified) == [true, true, true, true, nil])
    #expect(replies.map(\.cipher) == [.desECB, .aesCBC, nil, nil, nil])
    #expect(opened(replies[0], des) == "192.0.2.1;192.0.2.2,120|198.51.100.7")
    #expect(
      opened(replies[1], aes)
        == "a.example.com.:192.0.2.1,120-0|198.51.100.7\nb.example.com.:192.0.2.2;192.0.2.3,60-0|198.51.100.7")
    #expect(replies[2].text == "www.example.com.:192.0.2.1;192.0.2.2,120|198.51.100.7")
    #expect(replies[3].text == replies[2].text)
    #expect(replies[4].text == "192.0.2.1;192.0.2.2,120")
    #expect(replies[4].subnet == "203.0.113.9")
  }

  @Test func `texts are those of the vectors`() throws {
    let all = "&ttl=1&clientip=1"
    #expect(token("www.example.com").text == texts.body("A, no flags"))
    #expect(token("www.example.com", "&ttl=1").text == texts.body("A, ttl=1"))
    #expect(token("www.example.com", all).text == texts.body("A, ttl=1&clientip=1"))
    #expect(token("www.example.com", "\(all)&query=1").text == texts.body("A, ttl=1&clientip=1&query=1"))
    #expect(token("six.example.com", "\(all)&type=aaaa").text == texts.body("AAAA"))
    #expect(token("both.example.com", "\(all)&type=addrs").text == texts.body("addrs, ttl=1&clientip=1"))
    #expect(
      token("both.example.com", "\(all)&type=ADDRS&query=1").text
        == texts.body("addrs, ttl=1&clientip=1&query=1").replacing("www.", with: "both."))
    #expect(token("v4only.example.com", "\(all)&type=addrs&query=1").text == texts.body("addrs, only IPv4"))
    #expect(
      token("nope.example.com", "&clientip=1&type=addrs&query=1").text == texts.body("addrs, nothing found"))
    #expect(token("nope.example.com", all).text == texts.body("A, nothing found"))
    #expect(token("a.example.com,b.example.com", all).text == texts.body("batch, one name"))
    #expect(token("a.example.com,nope.example.com", all).text == texts.body("batch with an unknown name"))
    let last = try service(zone.replacing("b      60  A 192.0.2.3", with: "")).with("tencent-client=last")
    #expect(token("a.example.com,b.example.com", all, of: last).text == texts.body("batch, client ip only on the last"))
  }

  @Test(arguments: [des, aes]) func `encrypted replies are the same text, and no data is an empty body`(
    _ cipher: BlockCipher
  ) {
    let all = "&ttl=1&clientip=1"
    #expect(opened(sealed("www.example.com", cipher, all), cipher) == texts.body("A, ttl=1&clientip=1"))
    let nothing = sealed("nope.example.com", cipher, all)
    #expect(nothing.status == 200)
    #expect(nothing.body.isEmpty)
  }

  @Test func `a single name without addresses has no colon; a chain's smallest TTL counts`() {
    #expect(token("nope.example.com", "&query=1&clientip=1").text == "nope.example.com|198.51.100.7")
    #expect(token("nope.example.com", "&type=addrs&clientip=1").text == "0-0|198.51.100.7")
    #expect(token("six.example.com", "&type=addrs&ttl=1").text == "0-2001:db8::1;2001:db8::2,60")
    #expect(token("alias.example.com", "&ttl=1").text == "192.0.2.1;192.0.2.2,30")
  }

  @Test func `the client's address may be in the clear, sealed, or unusable`() {
    func client(_ ip: String) -> String { token("a.example.com", "&clientip=1&ip=\(ip)").text }
    #expect(client("203.0.113.9") == "192.0.2.1|203.0.113.9")
    #expect(client("2001:db8::9") == "192.0.2.1|2001:db8::9")
    #expect(client("") == "192.0.2.1|198.51.100.7")
    let reply = sealed(
      "a.example.com", aes, "&clientip=1&ip=\(Hexadecimal.encode(aes.seal(Array("203.0.113.9".utf8))))")
    #expect(opened(reply, aes) == "192.0.2.1|203.0.113.9")
    #expect(reply.subnet == "203.0.113.9")
  }

  @Test func `settings change the replies`() throws {
    func reply(_ settings: String, _ parameters: String = "&type=addrs") throws -> String {
      token("both.example.com", parameters, of: try service(zone).with(settings)).text
    }
    #expect(try reply("tencent-newline=true") == "192.0.2.1-2001:db8::1\n")
    #expect(try reply("tencent-empty=true") == "")
    #expect(try reply("tencent-withhold=ipv4") == "0-2001:db8::1")
    #expect(try reply("tencent-withhold=ipv6") == "192.0.2.1-0")
    #expect(try reply("tencent-withhold=both") == "0-0")
    #expect(try reply("not-listed=both.example.com", "") == "")
    let newline = sealed("a.example.com", des, of: try service(zone).with("tencent-newline=true"))
    #expect(newline.text.hasSuffix("\n"))
    #expect(newline.text.dropLast() == Hexadecimal.encode(des.seal(Array("192.0.2.1".utf8))))
  }

  @Test(arguments: [des, aes, nil]) func `an expiry is checked if it is sent`(_ cipher: BlockCipher?) {
    func status(_ names: String) -> Int { (cipher.map { sealed(names, $0) } ?? token(names)).status }
    #expect(status("www.example.com;1700000600") == 200)
    #expect(status("www.example.com;1700000000") == 200)
    #expect(status("www.example.com;1699999999") == 401)
    #expect(status("www.example.com;") == 401)
    #expect(status("www.example.com;soon") == 401)
    #expect(status("www.example.com;99999999999999999999") == 401)
  }

  @Test func `wrong credentials are 401, or an empty body on demand`() throws {
    let empty = try service(zone).with("tencent-refusal=empty")
    let name = Hexadecimal.encode(des.seal(Array("www.example.com".utf8)))
    let other = Hexadecimal.encode(
      BlockCipher(.desECB, padding: Array("OtherKey".utf8)).seal(Array("www.example.com".utf8)))
    // What decryption with another key may leave.
    let noise = Hexadecimal.encode(des.seal([0x9F, 0x03, 0xE7]))
    for target in [
      "/d?dn=www.example.com&token=1", "/d?dn=\(name)&id=1", "/d?dn=\(other)&id=1234", "/d?dn=\(noise)&id=1234",
      "/d?dn=\(name)&id=1234&alg=aes",
      "/d?dn=\(name.dropLast())&id=1234", "/d?dn=www.example.com&id=1234", "/d?dn=www.example.com",
    ] {
      #expect(ask(Tencent(), target, of: service(zone)).status == 401, "\(target)")
      #expect(ask(Tencent(), target, of: service(zone)).isVerified == false)
      #expect(ask(Tencent(), target, of: empty).status == 200)
      #expect(ask(Tencent(), target, of: empty).body.isEmpty)
    }
  }

  @Test(arguments: [
    "/d?token=123456789", "/d?dn=&token=123456789", "/d?dn=a..b&token=123456789", "/d?dn=a,&token=123456789",
    "/d?dn=a&token=123456789&type=mx", "/d?dn=a,b,c,d,e,f,g,h,i&token=123456789", "/d?dn=a&id=1234&alg=rot13",
  ])
  func `a malformed request is 400`(target: String) {
    #expect(ask(Tencent(), target).status == 400)
  }

  @Test func `a form may be posted, and other methods are 501`() {
    let posted = ask(
      Tencent(), "/d", method: .post, body: "dn=www.example.com&token=123456789&ttl=1", of: service(zone))
    #expect(posted.text == "192.0.2.1;192.0.2.2,120")
    #expect(ask(Tencent(), "/d?dn=www.example.com&token=123456789", method: .put).status == 501)
    #expect(ask(Tencent(), "/d?dn=www.example.com&token=123456789", method: .head).status == 501)
  }

  @Test func `the record has questions, cipher and units`() {
    let reply = sealed("a.example.com,b.example.com", aes, "&type=addrs")
    #expect(
      reply.questions.map { "\($0.name) \($0.type)" } == [
        "a.example.com. A", "a.example.com. AAAA", "b.example.com. A", "b.example.com. AAAA",
      ])
    #expect(reply.cipher == .aesCBC)
    #expect(reply.units == 4)
    #expect(token("a.example.com", now: 2_000_000_000).units == 1)
  }

  @Test func `the account never shows its keys`() {
    var dumped = ""
    dump(TencentAccount(), to: &dumped)
    for text in ["\(TencentAccount())", String(reflecting: TencentAccount()), dumped, "\(service())"] {
      #expect(!text.contains("DesKey") && !text.contains("AesKey") && !text.contains("123456789"))
    }
  }
}
