// EMASVectorTests.swift -- the vectors of Data/provider_vectors.json for EMAS and for self-built tables.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

@Suite struct EMASVectorTests {
  let vectors = EMASVectors.all.emas
  let www = "www.example.com"

  @Test func `signatures and targets of version 1 are the vectors' octet by octet`() {
    #expect(vectors.v1_sign.vectors.count == 3)
    for vector in vectors.v1_sign.vectors {
      let secret = Secret(vector.secret)
      #expect(nameSignature(of: vector.host, secret, expiry: vector.t) == vector.s)
      let dialect = EMASDialect(accountID: "100000", secretKey: secret, isEncrypted: true)
      let names = vector.host.split(separator: ",").map(String.init)
      let request = dialect.request(
        for: batch(names, [.a, .aaaa], subnet: "203.0.113.9/32"), unixTime: Int64(vector.t)! - 600)
      #expect(request.target == vector.path)
      #expect(request.method == .get && request.body.isEmpty && request.fields.isEmpty)
    }
  }

  @Test func `published signatures of version 1 are met`() {
    #expect(vectors.v1_sign.published.count == 2)
    for vector in vectors.v1_sign.published {
      let parts = vector.string.split(separator: "-").map(String.init)
      #expect(nameSignature(of: parts[0], Secret(parts[1]), expiry: parts[2]) == vector.s)
    }
  }

  @Test func `signatures of version 2 are the vectors'`() throws {
    #expect(vectors.v2_sign.vectors.count == 6)
    for vector in vectors.v2_sign.vectors {
      let signed =
        vector.params
        ?? ["enc": vector.enc_hex!, "exp": "1700000600", "id": "100000", "m": vector.path.mode, "v": "1.0"]
      let parameters = signed.map { (name: $0.key, value: $0.value) }
      let key = try #require(Hexadecimal.decode(vector.secret_key_hex))
      #expect(EMASv2Query.signedText(of: parameters) == Array(vector.string_to_sign.utf8), "\(vector.case)")
      #expect(EMASv2Query.signature(of: parameters, key: HMACSHA256(key: key)) == vector.s, "\(vector.case)")
    }
  }

  @Test func `plain requests of version 2 are the vector's octet by octet`() throws {
    let vector = try #require(vectors.v2_sign.vectors.first { $0.case == "plain, one name" })
    let request = emasV2.request(for: batch([www], [.a, .aaaa]), unixTime: 1_700_000_000)
    #expect(request.target == vector.path)
  }

  @Test func `encrypted requests of version 2 are the vectors'`() throws {
    for (name, mode) in [("encrypted m=1", Configuration.AESMode.cbc), ("encrypted m=2", .gcm)] {
      let vector = try #require(vectors.v2_sign.vectors.first { $0.case == name })
      #expect(vector.aes_secret_key_hex.map { Secret($0) } == emasAESKey)
      let request = emasV2Dialect(aes: mode).request(for: batch([www], [.a, .aaaa]), unixTime: 1_700_000_000)
      #expect(parameters(request.target) == parameters(vector.path), "\(name)")
      #expect(request.target.hasPrefix("/v2/d?"))
    }
  }

  @Test func `replies of version 1 are read as the vectors mean them`() throws {
    let both = batch(["www.example.com"], [.a, .aaaa])
    let v4 = a(www, 57, "192.0.2.1")
    let expected: [String: (QuestionBatch, [Result<HTTPDNSAnswer, HTTPDNSFailure>])] = [
      "/d or /sign_d, query=4": (batch([www]), [positive(v4, a(www, 57, "192.0.2.2"))]),
      "query=4,6": (both, [positive(v4), positive(a(www, 57, "2001:db8::1"))]),
      "no record": (batch(["nope.example.com"]), [noData()]),
      "with extra (HTML-escaped JSON text)": (batch([www]), [positive(v4)]),
      "/resolve batch, query=4,6": (
        batch(["a.example.com", "b.example.com"], [.a, .aaaa]),
        [
          positive(a("a.example.com", 57, "192.0.2.1")), positive(a("a.example.com", 57, "2001:db8::1")), noData(),
          .failure(.wrongQuestion),
        ]
      ),
      "signature expired": (batch([www]), [.failure(.expired)]),
      "bad signature": (batch([www]), [.failure(.authentication)]),
      "unsigned path disabled": (batch([www]), [.failure(.unsigned)]),
      "missing host": (batch([www]), [.failure(.fault)]),
      "more than five hosts": (batch([www]), [.failure(.fault)]),
      "POST": (batch([www]), [.failure(.status(405))]),
    ]
    #expect(vectors.v1_responses.count == expected.count)
    for vector in vectors.v1_responses {
      let (batch, results) = try #require(expected[vector.case])
      #expect(outcomes(batch, json(vector.body, status: vector.http)) == results, "\(vector.case)")
    }
  }

  @Test func `replies of version 2 are read as the vectors mean them`() throws {
    let both = batch(["www.example.com"], [.a, .aaaa])
    let full = [positive(a(www, 60, "192.0.2.1"), a(www, 60, "192.0.2.2")), positive(a(www, 60, "2001:db8::1"))]
    let expected: [String: (EMASv2Dialect, QuestionBatch, [Result<HTTPDNSAnswer, HTTPDNSFailure>])] = [
      "plain": (emasV2, both, full),
      "AES-CBC": (emasV2Dialect(aes: .cbc), both, full),
      "AES-GCM": (emasV2Dialect(aes: .gcm), both, full),
      "no record": (
        emasV2, batch(["v4only.example.com"], [.a, .aaaa]),
        [positive(a("v4only.example.com", 60, "192.0.2.1")), noData(isAmbiguous: false)]
      ),
      "unknown name": (emasV2, batch(["nope.example.com"]), [noData()]),
      "bad account": (emasV2, batch([www]), [.failure(.account)]),
    ]
    #expect(vectors.v2_responses.count == expected.count)
    for vector in vectors.v2_responses {
      let (dialect, batch, results) = try #require(expected[vector.case])
      #expect(vector.aes_secret_key_hex.map { Secret($0) } ?? emasAESKey == emasAESKey)
      #expect(outcomes(batch, json(vector.body, status: vector.http), dialect) == results, "\(vector.case)")
    }
  }

  @Test func `the schedule's reply is read as the vector means it`() throws {
    let listed = try EMASSchedule(accountID: "100000").servers(from: json(vectors.ss_response.body))
    let servers = ["192.0.2.11", "192.0.2.12", "2001:db8::11"].map { ListedServer(.address(IPAddress(text: $0)!)) }
    #expect(listed == servers)
  }

  @Test func `self-built tables are read as the vectors mean them`() throws {
    let vectors = EMASVectors.all.selfbuilt
    let table = try AddressTable(json(vectors.body))
    #expect(table.isEnabled && table.count == 2)
    let first = table.answer(to: question("a.example.com"), ttl: 30)
    #expect(
      first?.answers == [a("a.example.com", 30, "192.0.2.1"), a("a.example.com", 30, "192.0.2.2")])
    #expect(table.answer(to: question("b.example.com"), ttl: 30)?.answers == [a("b.example.com", 30, "192.0.2.3")])
    let disabled = try AddressTable(json(vectors.disabled_body))
    #expect(!disabled.isEnabled && disabled.count == 0)
  }
}

extension String {
  /// The value of `m` in a request target.
  fileprivate var mode: String { String(parameters(self).first { $0.hasPrefix("m=") }!.dropFirst(2)) }
}
