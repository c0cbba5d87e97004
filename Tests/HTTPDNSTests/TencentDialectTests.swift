// TencentDialectTests.swift -- what Tencent's dialect sends, the vectors of its replies, and what it never shows.

import Ciphers
import Configuration
import DNSWire
import HTTPDNS
import HTTPMessage
import Testing

@Suite struct TencentDialectTests {
  let www = "www.example.com"

  private func target(_ dialect: TencentDialect, _ batch: QuestionBatch) -> String {
    dialect.request(for: batch, unixTime: 1_700_000_000).target
  }

  private func parameters(_ target: String) -> [Substring] {
    target.drop { $0 != "?" }.dropFirst().split(separator: "&").sorted()
  }

  @Test func `requests are the vectors'`() throws {
    let vectors = TencentVectors.all.requests
    #expect(vectors.count == 5)
    for vector in vectors {
      switch vector.case {
      case "DES single A":
        // This vector is from a program that does not ask for the name; every other parameter is the same.
        let sent = parameters(target(Tencent.des, Tencent.batch([www])))
        #expect(sent.filter { $0 != "query=1" } == parameters(vector.path))
        #expect(sent.contains("query=1"))
      case "AES dual stack, batch, query":
        let batch = Tencent.batch(["a.example.com", "b.example.com"], [.a, .aaaa])
        #expect(target(Tencent.aes, batch) == vector.path)
      case "HTTPS token":
        #expect(target(Tencent.https, Tencent.batch([www])) == vector.path)
      default:
        // The expiry behind a name is for servers to read, and the free service is no more.
        #expect(["HTTPS token, newest iOS form with expiry", "D+ free (retired)"].contains(vector.case))
      }
    }
  }

  @Test func `a request is a GET without header fields and body`() {
    let request = Tencent.des.request(for: Tencent.batch([www]), unixTime: 0)
    #expect(request.method == .get && request.body.isEmpty && request.fields.isEmpty)
  }

  @Test func `the parameter type selects IPv6 or both families, and is absent for IPv4`() {
    func type(_ types: [RecordType]) -> [Substring] {
      parameters(target(Tencent.https, Tencent.batch([www], types))).filter { $0.hasPrefix("type=") }
    }
    #expect(type([.a]) == [])
    #expect(type([.aaaa]) == ["type=aaaa"])
    #expect(type([.a, .aaaa]) == ["type=addrs"])
  }

  @Test func `a subnet is its address in clear text, whatever protects the name`() {
    for dialect in [Tencent.https, Tencent.aes, Tencent.des] {
      let ipv4 = target(dialect, Tencent.batch([www], subnet: "203.0.113.77/24"))
      #expect(ipv4.hasSuffix("&ip=203.0.113.0"))
      #expect(target(dialect, Tencent.batch([www], subnet: "2001:db8:1:2::/56")).hasSuffix("&ip=2001:db8:1::"))
      for none in [nil, "0.0.0.0/0", "::/0"] {
        #expect(!parameters(target(dialect, Tencent.batch([www], subnet: none))).contains { $0.hasPrefix("ip=") })
      }
    }
  }

  @Test func `names go in lower case, without final dots, eight of them together`() throws {
    let names = (1...8).map { "N\($0).Example.COM." }
    let sent = (1...8).map { "n\($0).example.com" }.joined(separator: ",")
    #expect(Tencent.https.mostNames == 8)
    #expect(target(Tencent.https, Tencent.batch(names)).hasPrefix("/d?dn=\(sent)&token="))
    let encrypted = Hexadecimal.encode(Tencent.desCipher.encrypt(Array(sent.utf8), vector: []))
    #expect(target(Tencent.des, Tencent.batch(names)).hasPrefix("/d?dn=\(encrypted)&"))
  }

  @Test func `AES never has the same initialisation vector twice`() {
    let dialect = TencentDialect(account: .aes(id: "1", key: Secret("AesKey0123456789")))
    let sent = (0..<50).map { _ in target(dialect, Tencent.batch([www])).dropFirst(6).prefix(64) }
    #expect(Set(sent.map { $0.prefix(32) }).count == 50)
    for text in sent {
      let octets = Hexadecimal.decode(String(text))!
      #expect(Tencent.aesCipher.decrypt(octets[16...], vector: Array(octets[..<16])) == Array(www.utf8))
    }
  }

  @Test func `keys are cut and filled as the provider's programs do it`() {
    func dn(_ credential: Configuration.TencentAccount) -> Substring {
      target(TencentDialect(account: credential) { Array(0..<UInt8($0)) }, Tencent.batch([www]))
        .dropFirst(6).prefix { $0 != "&" }
    }
    func plain(_ cipher: BlockCipher, _ vector: [UInt8]) -> String {
      Hexadecimal.encode(vector + cipher.encrypt(Array(www.utf8), vector: vector))
    }
    let vector = Array<UInt8>(0..<16)
    #expect(dn(.des(id: "1", key: Secret("DesKey01 and more"))) == dn(.des(id: "1", key: Secret("DesKey01"))))
    #expect(
      dn(.des(id: "1", key: Secret("key")))
        == plain(BlockCipher(.desECB, key: Array("key".utf8) + [0, 0, 0, 0, 0]), []))
    #expect(
      dn(.aes(id: "1", key: Secret("key"))) == plain(BlockCipher(.aesCBC, key: Array("key0000000000000".utf8)), vector))
    #expect(
      dn(.aes(id: "1", key: Secret("AesKey0123456789xyz"))) == plain(Tencent.aesCipher, vector))
  }

  @Test func `a request says until when it is valid if it has to`() {
    let https = TencentDialect(account: .https(token: Secret("1"), id: nil), lifetime: 600)
    let sent = https.request(for: Tencent.batch([www, "b.example"]), unixTime: 1_700_000_000).target
    #expect(sent.hasPrefix("/d?dn=\(www),b.example;1700000600&token=1&"))
    let des = TencentDialect(account: .des(id: "1", key: Secret("DesKey01")), lifetime: 60)
    let plain = Tencent.desCipher.encrypt(Array("\(www);1700000060".utf8), vector: [])
    let target = des.request(for: Tencent.batch([www]), unixTime: 1_700_000_000).target
    #expect(target.hasPrefix("/d?dn=\(Hexadecimal.encode(plain))&"))
  }

  @Test func `a path of one's own is used, and values of the configuration cannot add parameters`() {
    let dialect = TencentDialect(account: .https(token: Secret("1&x=2"), id: "3&y"), path: "/own?z=1")
    #expect(
      target(dialect, Tencent.batch([www]))
        == "/own?z=1&dn=\(www)&token=1%26x%3D2&clientip=1&ttl=1&query=1&id=3%26y")
    let anonymous = TencentDialect(account: .https(token: Secret("1"), id: nil))
    #expect(!target(anonymous, Tencent.batch([www])).contains("id="))
  }

  @Test func `the Tencent dialect serves only addresses of plain names, with any flags`() {
    var asked = question(www, .a, dnssecOK: true)
    asked.checkingDisabled = true
    #expect(Tencent.https.serves(asked) && Tencent.des.serves(question("_a-b.example", .aaaa)))
    for type in [.cname, .txt, .https, .soa, RecordType(255), RecordType(0)] as [RecordType] {
      #expect(!Tencent.aes.serves(question(www, type)))
    }
    for name in [".", "a\\,b.example", "a\\.b.example", "a\\;b.example", "a\\010b.example", "a\\&b.example"] {
      #expect(!Tencent.https.serves(question(name)), "\(name)")
    }
  }

  @Test func `the price is an estimate, one unit for each transfer`() {
    for dialect in [Tencent.https, Tencent.aes, Tencent.des] {
      #expect(dialect.billing.isEstimate)
      #expect(dialect.billing.units(answers: 16) == 1)
    }
  }

  @Test func `replies are read as the vectors mean them, in clear text, AES and DES`() throws {
    let v4 = [a(www, 120, "192.0.2.1"), a(www, 120, "192.0.2.2")]
    let v6 = [a(www, 60, "2001:db8::1"), a(www, 60, "2001:db8::2")]
    let (both, one) = ([RecordType.a, .aaaa], [a(www, 120, "192.0.2.1")])
    let two = ["a.example.com", "b.example.com"]
    let expected: [String: (QuestionBatch, [[ResourceRecord]])] = [
      "A, no flags": (Tencent.batch([www]), [[a(www, 60, "192.0.2.1"), a(www, 60, "192.0.2.2")]]),
      "A, ttl=1": (Tencent.batch([www]), [v4]),
      "A, ttl=1&clientip=1": (Tencent.batch([www]), [v4]),
      "A, ttl=1&clientip=1&query=1": (Tencent.batch([www]), [v4]),
      "AAAA, ttl=1&clientip=1": (Tencent.batch([www], [.aaaa]), [v6]),
      "addrs, ttl=1&clientip=1": (Tencent.batch([www], both), [one, [v6[0]]]),
      "addrs, ttl=1&clientip=1&query=1": (Tencent.batch([www], both), [one, [v6[0]]]),
      "addrs, only IPv4 present, ttl=1&clientip=1&query=1": (
        Tencent.batch(["v4only.example.com"], both), [[a("v4only.example.com", 120, "192.0.2.1")], []]
      ),
      "addrs, nothing found, clientip=1&query=1": (Tencent.batch(["nope.example.com"], both), [[], []]),
      "A, nothing found, no query": (Tencent.batch([www]), [[]]),
      "batch, one name per line, ttl=1&clientip=1": (
        Tencent.batch(two),
        [[a(two[0], 120, "192.0.2.1")], [a(two[1], 60, "192.0.2.2"), a(two[1], 60, "192.0.2.3")]]
      ),
      "batch, client ip only on the last line (documentation sample form)": (
        Tencent.batch(two), [[a(two[0], 120, "192.0.2.1")], [a(two[1], 60, "192.0.2.2")]]
      ),
      "batch with an unknown name": (
        Tencent.batch([two[0], "nope.example.com"]), [[a(two[0], 120, "192.0.2.1")], []]
      ),
    ]
    let vectors = TencentVectors.all.response_plaintexts
    #expect(vectors.count == expected.count)
    for vector in vectors {
      let (batch, records) = try #require(expected[vector.case])
      for (dialect, body) in [
        (Tencent.https, vector.plain), (Tencent.des, vector.des_hex), (Tencent.aes, vector.aes_hex),
        (Tencent.des, vector.des_hex.uppercased()), (Tencent.https, vector.plain + "\n"),
        (Tencent.https, vector.plain.replacing("\n", with: "\r\n")),
      ] {
        let results = try dialect.answers(to: batch, from: Tencent.body(body))
        #expect(results.map(\.records) == records, "\(vector.case)")
        for result in results {
          #expect(result.isAmbiguouslyEmpty == result.records?.isEmpty)
          #expect(try result.get().isNegative == result.records?.isEmpty)
        }
      }
    }
  }

  @Test func `a question alone is asked and answered like a batch of one`() throws {
    let asked = question(www, .aaaa, dnssecOK: true, subnet: "192.0.2.0/24")
    #expect(
      Tencent.https.request(for: asked, unixTime: 0).target
        == target(Tencent.https, Tencent.batch([www], [.aaaa], subnet: "192.0.2.0/24")))
    let answer = try Tencent.https.answer(to: asked, from: Tencent.body("\(www).:2001:db8::1,9|192.0.2.0"))
    #expect(answer.answers == [a(www, 9, "2001:db8::1")])
    #expect(!answer.isAuthenticated && !answer.isEmptyAmbiguous && answer.scopePrefixLength == nil)
    #expect(failure(of: Tencent.body("other.example.:0|192.0.2.0"), to: asked, with: Tencent.https) == .wrongQuestion)
  }

  @Test func `no credential shows itself, and no name in a log`() {
    let credentials: [Configuration.TencentAccount] = [
      .https(token: Secret("canary-token"), id: "canary-id"), .aes(id: "canary-id", key: Secret("canary-key")),
      .des(id: "canary-id", key: Secret("canary-key")),
    ]
    for credential in credentials {
      let dialect = TencentDialect(account: credential)
      let request = dialect.request(for: Tencent.batch(["private.example.com"]), unixTime: 0)
      var shown = "\(dialect) \(String(reflecting: dialect)) \([dialect]) \(credential) \([credential]) \(request)"
      shown += String(reflecting: credential) + String(reflecting: request)
      dump(dialect, to: &shown)
      dump([credential], to: &shown)
      dump(request, to: &shown)
      #expect(shown.contains("tencent") && shown.contains("GET /d") && shown.contains("••••"))
      for hidden in ["canary", "private", "63616e617279"] { #expect(!shown.contains(hidden)) }
      #expect(request.target.contains("canary-key") == false)
    }
  }
}
