// TencentReplyTests.swift -- Tencent's replies rule by rule: emptiness, batches, numbers, hexadecimal text.

import Ciphers
import DNSWire
import HTTPDNS
import HTTPMessage
import Testing

@Suite struct TencentReplyTests {
  let www = "www.example.com"
  let both: [RecordType] = [.a, .aaaa]

  private func one(_ text: String, _ type: RecordType = .a) throws -> Result<HTTPDNSAnswer, HTTPDNSFailure> {
    try Tencent.read(text, to: Tencent.batch([www], [type]))[0]
  }

  private func whole(_ response: HTTPResponse, _ dialect: TencentDialect = Tencent.https) -> HTTPDNSFailure? {
    failure(of: response, to: question(www), with: dialect)
  }

  @Test(arguments: [
    "", "\n", " \r\n\t", "0", "0|198.51.100.7", "0,60|198.51.100.7", "|198.51.100.7", ",60|198.51.100.7", ";,60",
    "www.example.com|198.51.100.7", "www.example.com.|198.51.100.7", "WWW.example.com", "www.example.com.:",
    "www.example.com.:0", "www.example.com.:|198.51.100.7", "www.example.com.:0|2001:db8::7",
    "www.example.com.:,60|", "www.example.com:0",
  ])
  func `an empty reply is at most NODATA, for one family or both`(text: String) throws {
    #expect(try one(text).isAmbiguouslyEmpty)
    #expect(try one(text, .aaaa).isAmbiguouslyEmpty)
    // With both families a TTL belongs to one of them.
    guard !text.contains(",") && !text.contains(";") else { return }
    let results = try Tencent.read(text, to: Tencent.batch([www], both))
    #expect(results.count == 2 && results.allSatisfy(\.isAmbiguouslyEmpty))
  }

  @Test(arguments: ["0-0", "-", "0-", "-0", "0,60-0,60", ",60-0", "0-0|198.51.100.7", "www.example.com.:0-0|192.0.2.7"])
  func `two empty families are two times NODATA`(text: String) throws {
    let results = try Tencent.read(text, to: Tencent.batch([www], both))
    #expect(results.count == 2 && results.allSatisfy(\.isAmbiguouslyEmpty))
  }

  @Test func `an empty body answers no name of a batch`() throws {
    let results = try Tencent.read("", to: Tencent.batch(["a.example", "b.example"], both))
    #expect(results.count == 4 && results.allSatisfy(\.isAmbiguouslyEmpty))
  }

  @Test func `one family counts although the other is empty or unreadable`() throws {
    let v4 = [a(www, 20, "192.0.2.1")]
    let v6 = [a(www, 30, "2001:db8::1")]
    let batch = Tencent.batch([www], both)
    #expect(try Tencent.read("192.0.2.1,20-0|192.0.2.7", to: batch).map(\.records) == [v4, []])
    #expect(try Tencent.read("0-2001:db8::1,30|192.0.2.7", to: batch).map(\.records) == [[], v6])
    #expect(try Tencent.read("-2001:db8::1,30", to: batch).map(\.records) == [[], v6])
    let broken = try Tencent.read("192.0.2.256,20-2001:db8::1,30", to: batch)
    #expect(broken[0].refusal == .unreadable(.rdata) && broken[1].records == v6)
    let number = try Tencent.read("192.0.2.1,20-2001:db8::1,x", to: batch)
    #expect(number[0].records == v4 && number[1].refusal == .unreadable(.number))
  }

  @Test func `families in another order, in another number or unasked are refused`() throws {
    let swapped = try Tencent.read("2001:db8::1,30-192.0.2.1,20", to: Tencent.batch([www], both))
    #expect(swapped.map(\.refusal) == [.unreadable(.rdata), .unreadable(.rdata)])
    for text in ["192.0.2.1,20", "192.0.2.1,20-0-0", "2001:db8::1,20|192.0.2.1", "192.0.2.1,-1-0"] {
      let results = try Tencent.read(text, to: Tencent.batch([www], both))
      #expect(results.map(\.refusal) == [.unreadable(.syntax), .unreadable(.syntax)], "\(text)")
    }
    #expect(try one("192.0.2.1,20-2001:db8::1,30").refusal == .unreadable(.number))
    #expect(try one("0-0").refusal == .unreadable(.rdata))
  }

  @Test(arguments: [
    "2001:db8::1,60", "192.0.2.256", "192.0.2", "192.0.2.1 ;192.0.2", ";;,60", "0;0", "192.0.2.1:53", "00",
    "www.example.net", "localhost", "é",
    "192.0.2.1\u{0}", "::ffff:192.0.2.1",
  ])
  func `a text that is not an address of the family is refused`(text: String) throws {
    #expect(try one(text).refusal == .unreadable(.rdata))
    #expect(try one("www.example.com.:\(text)|198.51.100.7").refusal == .unreadable(.rdata))
  }

  @Test(arguments: [
    "192.0.2.1;2001:db8::1", "192.0.2.9 ;192.0.2.1", "192.0.2.1;;", ";192.0.2.1", "0;192.0.2.1", "192.0.2.1;0",
  ])
  func `what is no address leaves its neighbours`(text: String) throws {
    #expect(try one("\(text),60").records == [a(www, 60, "192.0.2.1")])
    #expect(try one("www.example.com.:\(text)|198.51.100.7").records == [a(www, 60, "192.0.2.1")])
  }

  @Test func `an IPv4 address is refused for AAAA, an embedded one is accepted`() throws {
    #expect(try one("192.0.2.1,60", .aaaa).refusal == .unreadable(.rdata))
    #expect(try one("::ffff:192.0.2.1,60", .aaaa).records == [a(www, 60, "::ffff:192.0.2.1")])
    #expect(try one("www.example.com.:64:ff9b::192.0.2.1,60", .aaaa).records == [a(www, 60, "64:ff9b::192.0.2.1")])
    #expect(try one("2001:DB8::A;2001:db8::b,60", .aaaa).records?.count == 2)
  }

  @Test func `one semicolon too many is borne, and an address counts once`() throws {
    let expected = [a(www, 9, "192.0.2.1"), a(www, 9, "192.0.2.2")]
    #expect(try one("192.0.2.1;192.0.2.2;,9|198.51.100.7").records == expected)
    #expect(try one("192.0.2.1;192.0.2.2;192.0.2.1,9|198.51.100.7").records == expected)
    #expect(try one("192.0.2.1;").records == [a(www, 60, "192.0.2.1")])
  }

  @Test(arguments: [
    ("", 60), (",", 60), (",0", 0), (",1", 1), (",2147483647", 2_147_483_647), (",2147483648", 2_147_483_647),
    (",99999999999999999999", 2_147_483_647), (",-1", 0), (",1.5", 1), (",060", 60),
  ])
  func `a missing TTL is a minute, and one out of range is brought into it`(text: String, ttl: UInt32) throws {
    #expect(try one("192.0.2.1\(text)|198.51.100.7").records == [a(www, ttl, "192.0.2.1")])
    #expect(try one("www.example.com.:192.0.2.1\(text)").records == [a(www, ttl, "192.0.2.1")])
  }

  @Test(arguments: ["-", "+1", "1.", "1e3", " 60", "60,60", "0x10", "٣"])
  func `a TTL that is not a number is refused`(text: String) throws {
    #expect(try one("192.0.2.1,\(text)|198.51.100.7").refusal == .unreadable(.number))
    // An empty answer that is malformed is refused as well.
    #expect(try one("0,\(text)").refusal == .unreadable(.number))
  }

  @Test func `the lines of a batch come in any order, in any case, among others`() throws {
    let batch = Tencent.batch(["a.example.com", "B.example.com", "c.example.com"])
    let results = try Tencent.read(
      """
      C.EXAMPLE.COM.:192.0.2.3,30

      evil.example.com.:203.0.113.66,9999|198.51.100.7
      b.example.com:192.0.2.2,20|198.51.100.7\r
      xa.example.com.:203.0.113.66,9999|198.51.100.7
        a.Example.com.:192.0.2.1,10|198.51.100.7
      """, to: batch)
    #expect(
      results.map(\.records) == [
        [a("a.example.com", 10, "192.0.2.1")], [a("b.example.com", 20, "192.0.2.2")],
        [a("c.example.com", 30, "192.0.2.3")],
      ])
    // The owner is spelled as it was asked for.
    #expect(results[1].records?[0].owner.octets == batch.names[1].octets)
  }

  @Test func `a name without a line is not answered, the others are`() throws {
    let results = try Tencent.read(
      "b.example.:192.0.2.2,20|192.0.2.7\nc.example.|192.0.2.7",
      to: Tencent.batch(["a.example", "b.example", "c.example"], both))
    #expect(results[0].refusal == .wrongQuestion && results[1].refusal == .wrongQuestion)
    #expect(results[2].refusal == .unreadable(.syntax))
    #expect(results[4].isAmbiguouslyEmpty && results[5].isAmbiguouslyEmpty)
  }

  @Test func `an unreadable line is one name's own`() throws {
    let results = try Tencent.read(
      "a.example.:192.0.2.999,20|192.0.2.7\nb.example.:192.0.2.2,20|192.0.2.7",
      to: Tencent.batch(["a.example", "b.example"]))
    #expect(results[0].refusal == .unreadable(.rdata))
    #expect(results[1].records == [a("b.example", 20, "192.0.2.2")])
  }

  @Test func `a name with two lines is refused`() throws {
    for second in ["a.example.:192.0.2.2,20", "a.example.:0", "a.example.|192.0.2.7", "A.example:192.0.2.1,20"] {
      let results = try Tencent.read(
        "a.example.:192.0.2.1,20\n\(second)\nb.example.:0", to: Tencent.batch(["a.example", "b.example"]))
      #expect(results[0].refusal == .unreadable(.syntax), "\(second)")
      #expect(results[1].isAmbiguouslyEmpty)
    }
  }

  @Test func `a line without a name answers only a single question`() throws {
    let two = try Tencent.read("192.0.2.1,20\nb.example.:192.0.2.2,20", to: Tencent.batch(["a.example", "b.example"]))
    #expect(two[0].refusal == .unreadable(.syntax) && two[1].records == [a("b.example", 20, "192.0.2.2")])
    #expect(try one("192.0.2.1,20\n192.0.2.2,20").refusal == .unreadable(.syntax))
    #expect(try one("other.example.:192.0.2.9,20").refusal == .wrongQuestion)
    #expect(try one("other.example.:192.0.2.9,20\nwww.example.com.:192.0.2.1,20").records == [a(www, 20, "192.0.2.1")])
  }

  @Test func `the beginning of an IPv6 address is not taken for a name`() throws {
    let batch = Tencent.batch(["2001"], [.aaaa])
    #expect(try Tencent.read("2001:db8::1,60", to: batch)[0].records == [a("2001", 60, "2001:db8::1")])
    #expect(try Tencent.read("2001.:2001:db8::1,60", to: batch)[0].records == [a("2001", 60, "2001:db8::1")])
  }

  @Test(arguments: [
    "<!DOCTYPE html><html><head><title>Log in</title></head></html>", "<html>\n<body>\nLog in\n</body>\n</html>\n",
    "<p>", "\r\n <html>",
  ])
  func `a page is recognised with every cipher and any media type`(text: String) {
    for dialect in [Tencent.https, Tencent.des, Tencent.aes] {
      for type in [nil, "text/html", "text/plain"] {
        let page = HTTPResponse(status: 200, contentType: type, body: Array(text.utf8))
        #expect(whole(page, dialect) == .unreadable(.page))
      }
    }
  }

  @Test(arguments: ["Bad Request", "{\"Status\":0}", "\u{feff}192.0.2.1"])
  func `a text for people is refused from every cipher`(text: String) {
    let refusal = whole(Tencent.body(text))
    #expect(refusal == .unreadable(.rdata) || refusal == .unreadable(.syntax))
    #expect(whole(Tencent.body(text), Tencent.des) == .unreadable(.syntax))
    #expect(whole(Tencent.body(text), Tencent.aes) == .unreadable(.syntax))
  }

  @Test func `white space and what is not hexadecimal are cut off behind the digits`() throws {
    let reply = TencentVectors.all.response_plaintexts[2]
    let expected = [a(www, 120, "192.0.2.1"), a(www, 120, "192.0.2.2")]
    for tail in ["", "\n", "\r\n", " \n\n", "}", "\u{0}", "zz\n", "\n|"] {
      for (dialect, hex) in [(Tencent.des, reply.des_hex), (Tencent.aes, reply.aes_hex)] {
        #expect(try dialect.answer(to: question(www), from: Tencent.body(hex + tail)).answers == expected)
        #expect(try dialect.answer(to: question(www), from: Tencent.body("\n" + hex + tail)).answers == expected)
      }
    }
  }

  @Test func `hexadecimal text that is odd, broken, cut or of another key is refused`() {
    let reply = TencentVectors.all.response_plaintexts[3]
    for (dialect, hex) in [(Tencent.des, reply.des_hex), (Tencent.aes, reply.aes_hex)] {
      #expect(whole(Tencent.body(hex), dialect) == nil)
      for broken in [
        hex + "0", String(hex.dropLast()), "x" + hex, hex.prefix(10) + "\n" + hex.dropFirst(10), "zz", "0",
      ] {
        #expect(whole(Tencent.body(String(broken)), dialect) == .unreadable(.syntax))
      }
      for length in 1..<hex.count {
        #expect(whole(Tencent.body(String(hex.prefix(length))), dialect) == .unreadable(.syntax), "\(length)")
      }
      #expect(whole(Tencent.body(reply.plain), dialect) == .unreadable(.syntax))
    }
    // An initialisation vector with nothing behind it.
    #expect(whole(Tencent.body(String(reply.aes_hex.prefix(32))), Tencent.aes) == .unreadable(.syntax))
    for vector in TencentVectors.all.response_plaintexts where !vector.plain.isEmpty {
      let other = TencentDialect(account: .des(id: "1", key: Secret("OtherKey")))
      #expect(whole(Tencent.body(vector.des_hex), other) == .unreadable(.syntax), "\(vector.case)")
    }
  }

  @Test func `an encrypted nothing is nothing`() throws {
    for nothing in ["", " \r\n"] {
      let text = Hexadecimal.encode(Tencent.desCipher.encrypt(Array(nothing.utf8), vector: []))
      let results = try Tencent.des.answers(to: Tencent.batch([www]), from: Tencent.body(text))
      #expect(results[0].isAmbiguouslyEmpty)
    }
  }

  @Test func `a body of 64 KiB is read, a larger one is not`() {
    let body = "192.0.2.1,60"
    let padding = String(repeating: "\n", count: 65_536 - body.utf8.count)
    #expect(whole(Tencent.body(body + padding)) == nil)
    #expect(whole(Tencent.body(body + padding + "\n")) == .unreadable(.tooLarge))
  }

  @Test func `a media type does not matter, a status does`() {
    for type in [nil, "text/html", "text/plain; charset=utf-8", "application/octet-stream"] {
      #expect(whole(HTTPResponse(status: 200, contentType: type, body: Array("192.0.2.1,60".utf8))) == nil)
    }
    for status in [401, 403, 404, 429, 400, 501, 500, 302, 204] {
      #expect(whole(Tencent.body("192.0.2.1,60", status: status)) == .status(status))
    }
  }

  @Test func `the reason of text that cannot be read does not speak of JSON`() {
    #expect(whole(Tencent.body("c0ffee"), Tencent.aes) == .unreadable(.syntax))
    #expect("\(HTTPDNSFailure.unreadable(.syntax))" == "unreadable: not in the form of the service, or cut off")
  }
}
