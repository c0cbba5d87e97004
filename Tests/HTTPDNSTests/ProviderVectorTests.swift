// ProviderVectorTests.swift -- the vectors of Data/provider_vectors.json for the dialects that exist.

import Ciphers
import DNSWire
import HTTPMessage
import Testing

@testable import Configuration
@testable import HTTPDNS

/// The parts of the file that these tests read.
struct ProviderVectors: Decodable {
  struct Body: Decodable {
    let `case`: String
    let http: Int
    let body: String
  }
  struct Key: Decodable {
    let uid, access_key_id, access_key_secret, ts, name, type, key, path: String
  }
  struct AliDNS: Decodable {
    let key: [Key]
    let responses: [Body]
  }
  struct Message: Decodable {
    let query_hex, dns_param, response_hex, content_type: String
  }
  struct GenericRDATA: Decodable {
    let caa_hex, https_hex: String
  }
  struct DoH: Decodable {
    let rfc8484: Message
    let google_responses, cloudflare_responses: [Body]
    let rdata_generic: GenericRDATA
  }
  let alibaba_pdns: AliDNS
  let doh: DoH

  static let all = vectors(ProviderVectors.self, in: "provider_vectors.json")
}

/// What an answer must be for a vector of a body.
struct ExpectedAnswer: Sendable {
  var question: HTTPDNSQuestion
  var answers: [ResourceRecord] = []
  var authorities: [ResourceRecord] = []
  var code = ResponseCode.noError
  var isAuthenticated = false
}

@Suite struct ProviderVectorTests {
  let vectors = ProviderVectors.all

  @Test func `alidns keys are the published ones`() {
    #expect(vectors.alibaba_pdns.key.count == 7)
    for vector in vectors.alibaba_pdns.key {
      let credential = Configuration.AliDNSAccount(
        accountID: vector.uid, accessKeyID: vector.access_key_id, accessKeySecret: Secret(vector.access_key_secret))
      #expect(credential.key(name: vector.name, timestamp: vector.ts) == vector.key, "\(vector.name)")
    }
  }

  @Test func `alidns requests are the vectors' octet by octet`() throws {
    for vector in vectors.alibaba_pdns.key where vector.name == vector.name.lowercased() && !vector.name.hasSuffix(".")
    {
      let dialect = AliDNSDialect(
        account: Configuration.AliDNSAccount(
          accountID: vector.uid, accessKeyID: vector.access_key_id,
          accessKeySecret: Secret(vector.access_key_secret)),
        form: vector.path.hasSuffix("&short=1") ? .short : .full, isEncrypted: true)
      let subnet = vector.path.contains("edns_client_subnet") ? "192.0.2.0/24" : nil
      let type = try #require(RecordType(text: vector.type))
      let unixTime = try #require(Int64(vector.ts))
      let request = dialect.request(for: question(vector.name, type, subnet: subnet), unixTime: unixTime)
      #expect(request.target == vector.path)
      #expect(request.method == .get && request.body.isEmpty)
    }
  }

  @Test func `alidns replies are read as the vectors mean them`() throws {
    let www = "www.example.com"
    let expected: [String: ExpectedAnswer] = [
      "A, two addresses": ExpectedAnswer(
        question: question(www), answers: [a(www, 300, "192.0.2.1"), a(www, 300, "192.0.2.2")]),
      "CNAME chain then A": ExpectedAnswer(
        question: question("alias.example.com"),
        answers: [cname("alias.example.com", 600, www), a(www, 60, "192.0.2.1")]),
      "AAAA": ExpectedAnswer(question: question(www, .aaaa), answers: [a(www, 120, "2001:db8::1")]),
      "NODATA (Status 0, no Answer, SOA in Authority)": ExpectedAnswer(
        question: question("v4only.example.com", .aaaa), authorities: [soa(30, minimum: 60)]),
      "NXDOMAIN": ExpectedAnswer(
        question: question("nope.example.com"), authorities: [soa(30, minimum: 60)], code: .nxDomain),
      "TXT is quoted": ExpectedAnswer(
        question: question("t.example.com", .txt), answers: [txt("t.example.com", 300, "hello world")]),
      "string numbers (defensive; SDK accepts it)": ExpectedAnswer(
        question: question(www), answers: [a(www, 300, "192.0.2.1")]),
      "short=1": ExpectedAnswer(
        question: question(www), answers: [a(www, 60, "192.0.2.1"), a(www, 60, "192.0.2.2")]),
      "short=1, nothing found": ExpectedAnswer(question: question(www)),
      "server preference list (name=auto.sdk.alidns.com&type=SRV&uid=9999)": ExpectedAnswer(
        question: question("auto.sdk.alidns.com", .srv),
        answers: [
          (1, "192.0.2.53.ipv4."), (2, "2001-db8--53.ipv6."), (3, "dns.example.com.domain."),
        ].map { priority, target in
          ResourceRecord(
            owner: DomainName(text: "auto.sdk.alidns.com")!, type: .srv, ttl: 600,
            rdata: [0, priority, 0, 1, 1, 187] + DomainName(text: target)!.octets)
        }),
    ]
    #expect(vectors.alibaba_pdns.responses.count == expected.count)
    for vector in vectors.alibaba_pdns.responses {
      let dialect = vector.case.hasPrefix("short") ? shortAliDNS : alidns
      try check(vector, dialect, try #require(expected[vector.case]))
    }
  }

  @Test func `Google's replies are read as the vectors mean them`() throws {
    let apex = "example.com"
    let expected: [String: ExpectedAnswer] = [
      "A with ECS": ExpectedAnswer(
        question: question("www.example.com", subnet: "203.0.113.0/24"),
        answers: [a("www.example.com", 300, "192.0.2.1")]),
      "NXDOMAIN": ExpectedAnswer(
        question: question("nope.example.com"), authorities: [soa(900, minimum: 900)], code: .nxDomain,
        isAuthenticated: true),
      "TXT, current output (no quotes)": ExpectedAnswer(
        question: question(apex, .txt), answers: [txt(apex, 300, "v=spf1 -all")]),
      "TXT, older output (quotes)": ExpectedAnswer(
        question: question(apex, .txt), answers: [txt(apex, 59, "v=spf1 -all")]),
    ]
    #expect(vectors.doh.google_responses.count == expected.count)
    for vector in vectors.doh.google_responses {
      let answer = try check(vector, google, try #require(expected[vector.case]))
      #expect(answer?.scopePrefixLength == (vector.case == "A with ECS" ? 24 : nil))
    }
  }

  @Test func `Cloudflare's replies are read as the vectors mean them`() throws {
    let apex = DomainName(text: "example.com")!
    let caa = ResourceRecord(
      owner: apex, type: .caa, ttl: 300, rdata: try #require(Hexadecimal.decode(vectors.doh.rdata_generic.caa_hex)))
    let https = ResourceRecord(
      owner: apex, type: .https, ttl: 300,
      rdata: try #require(Hexadecimal.decode(vectors.doh.rdata_generic.https_hex)))
    let www = "www.example.com"
    let expected: [String: ExpectedAnswer] = [
      "A (names without trailing dot in the real service)": ExpectedAnswer(
        question: question(www), answers: [a(www, 300, "192.0.2.1")]),
      "TXT quoted, Comment is a list": ExpectedAnswer(
        question: question("t.example.com", .txt), answers: [txt("t.example.com", 300, "hello", "world")]),
      "CAA old generic form": ExpectedAnswer(question: question("example.com", .caa), answers: [caa]),
      "CAA new form": ExpectedAnswer(question: question("example.com", .caa), answers: [caa]),
      "HTTPS old generic form": ExpectedAnswer(question: question("example.com", .https), answers: [https]),
      "HTTPS new form": ExpectedAnswer(question: question("example.com", .https), answers: [https]),
      "invalid cd": ExpectedAnswer(question: question(www)),
    ]
    #expect(vectors.doh.cloudflare_responses.count == expected.count)
    for vector in vectors.doh.cloudflare_responses {
      try check(vector, cloudflare, try #require(expected[vector.case]))
    }
  }

  @Test func `the example of RFC 8484 is read`() throws {
    let vector = vectors.doh.rfc8484
    let query = try #require(Hexadecimal.decode(vector.query_hex))
    #expect(Base64URL.encode(query) == vector.dns_param)
    let response = HTTPResponse(
      status: 200, contentType: vector.content_type, maxAge: 128,
      body: try #require(Hexadecimal.decode(vector.response_hex)))
    let answer = try post.answer(to: question("www.example.com"), from: response)
    #expect(answer.answers == [a("www.example.com", 128, "192.0.2.1")])
    #expect(!answer.isNegative)
  }

  @discardableResult
  private func check(
    _ vector: ProviderVectors.Body, _ dialect: any Dialect, _ expected: ExpectedAnswer
  ) throws -> HTTPDNSAnswer? {
    let response = json(vector.body, status: vector.http)
    guard vector.http == 200 else {
      #expect(failure(of: response, to: expected.question, with: dialect) == .status(vector.http), "\(vector.case)")
      return nil
    }
    let answer = try dialect.answer(to: expected.question, from: response)
    #expect(answer.responseCode == expected.code, "\(vector.case)")
    #expect(answer.answers == expected.answers, "\(vector.case)")
    #expect(answer.authorities == expected.authorities, "\(vector.case)")
    #expect(answer.isAuthenticated == expected.isAuthenticated, "\(vector.case)")
    #expect(answer.isNegative == expected.answers.isEmpty, "\(vector.case)")
    #expect(answer.isEmptyAmbiguous == (vector.body == "[]"), "\(vector.case)")
    return answer
  }
}
