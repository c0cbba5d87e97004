// MessageDialectTests.swift -- RFC 8484: queries, and responses with ages, subnets and errors.

import Ciphers
import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

@Suite struct MessageDialectTests {
  let name = "www.example.com"

  private func sent(_ asked: HTTPDNSQuestion) throws -> Message {
    try Message.parse(post.request(for: asked, unixTime: 0).body)
  }

  /// A response to a question, changed by `change` before it is composed.
  private func response(
    to asked: HTTPDNSQuestion, _ change: (inout Message) -> Void = { _ in }
  ) throws -> HTTPResponse {
    var message = Message.query(Question(name: asked.name, type: asked.type), id: 0)
    message.header.qr = true
    change(&message)
    return HTTPResponse(
      status: 200, contentType: "application/dns-message", body: try message.compose())
  }

  @Test func `POST carries the message as its body, GET as a parameter`() throws {
    let asked = question(name)
    let posted = post.request(for: asked, unixTime: 0)
    #expect(posted.method == .post && posted.target == "/dns-query")
    #expect(
      posted.fields.map { "\($0.name): \($0.value)" }
        == ["Accept: application/dns-message", "Content-Type: application/dns-message"])
    let got = MessageDialect(method: .get, path: "/dns-query{?dns}").request(for: asked, unixTime: 0)
    #expect(got.method == .get && got.body.isEmpty)
    #expect(got.fields.map(\.name) == ["Accept"])
    let parameter = try #require(got.target.split(separator: "/dns-query?dns=").first)
    #expect(Base64URL.decode(String(parameter)) == posted.body)
  }

  @Test func `a query has ID 0, the name in lower case, RD, AD and an OPT record`() throws {
    var asked = question("WWW.example.com", .aaaa, dnssecOK: true, subnet: "192.0.2.0/24")
    asked.checkingDisabled = true
    let message = try sent(asked)
    #expect(message.id == 0 && message.header.rd && message.header.ad && message.header.cd && !message.header.qr)
    #expect(message.questions.map(\.question.name.text) == ["www.example.com."])
    #expect(message.questions.map(\.question.type) == [.aaaa])
    #expect(message.edns?.dnssecOK == true)
    #expect(message.edns?.clientSubnet == ClientSubnet(IPPrefix(text: "192.0.2.0/24")!))
    let plain = try sent(question(name))
    #expect(!plain.header.cd && plain.edns?.dnssecOK == false && plain.edns?.clientSubnet == nil)
  }

  @Test func `a query is padded to 128 octets for any name`() {
    for length in 1...63 {
      let body = post.request(for: question(String(repeating: "a", count: length)), unixTime: 0).body
      #expect(body.count == 128)
    }
  }

  @Test func `every octet may stand in a name`() throws {
    for octet in UInt8.min...UInt8.max {
      let asked = HTTPDNSQuestion(name: DomainName(unchecked: [1, octet, 0]), type: .a)
      #expect(try sent(asked).questions.first?.question.name == asked.name)
    }
  }

  @Test func `age is taken off the TTLs, and max-age ends them`() throws {
    let asked = question(name)
    var reply = try response(to: asked) {
      $0.answers = [a(name, 300, "192.0.2.1")]
    }
    func ttl() throws -> UInt32? { try post.answer(to: asked, from: reply).answers.first?.ttl }
    #expect(try ttl() == 300)
    reply.age = 100
    #expect(try ttl() == 200)
    reply.maxAge = 150
    #expect(try ttl() == 50)
    reply.maxAge = 100
    #expect(try ttl() == 0)
    reply.maxAge = nil
    reply.age = .max
    #expect(try ttl() == 0)
    reply.age = nil
    reply.maxAge = 20
    #expect(try ttl() == 20)
    // No age at all is for HTTP caches, and says nothing of the data.
    reply.maxAge = 0
    #expect(try ttl() == 300)
  }

  @Test func `a negative answer keeps its SOA record, aged`() throws {
    let asked = question("nope.example.com")
    var reply = try response(to: asked) {
      $0.header.rcode = 3
      $0.authorities = [soa(900, minimum: 600)]
    }
    reply.age = 400
    let answer = try post.answer(to: asked, from: reply)
    #expect(answer.responseCode == .nxDomain && answer.isNegative && !answer.isEmptyAmbiguous)
    #expect(answer.authorities == [soa(500, minimum: 600)])
    #expect(answer.negativeTTL == 500)
  }

  @Test func `an extended response code is read, and the first extended error is used`() throws {
    let asked = question(name)
    let reply = try response(to: asked) {
      var edns = EDNS(options: [
        ExtendedErrorReport(code: .networkError, text: "secret text").option,
        ExtendedErrorReport(code: .other).option,
      ])
      edns.extendedResponseCode = 1
      $0.edns = edns
    }
    let answer = try post.answer(to: asked, from: reply)
    #expect(answer == HTTPDNSAnswer(responseCode: .badVers, extendedError: .networkError))
  }

  @Test func `AD is passed on`() throws {
    let asked = question(name)
    #expect(try post.answer(to: asked, from: response(to: asked) { $0.header.ad = true }).isAuthenticated)
    #expect(try !post.answer(to: asked, from: response(to: asked)).isAuthenticated)
  }

  @Test func `a message that is not the response to the question is refused`() throws {
    let asked = question(name)
    let cases: [(HTTPDNSFailure, (inout Message) -> Void)] = [
      (.unreadable(.message), { $0.header.qr = false }), (.unreadable(.message), { $0.header.opcode = 5 }),
      (.truncated, { $0.header.tc = true }), (.wrongQuestion, { $0.questions = [] }),
      (.wrongQuestion, { $0.questions[0].question.name = DomainName(text: "other.example")! }),
      (.wrongQuestion, { $0.questions[0].question.type = .aaaa }),
      (.wrongQuestion, { $0.questions.append($0.questions[0]) }),
    ]
    for (expected, change) in cases {
      #expect(failure(of: try response(to: asked, change), to: asked, with: post) == expected)
    }
    let error = try response(to: asked) {
      $0.questions = []
      $0.header.rcode = 1
    }
    #expect(try post.answer(to: asked, from: error).responseCode == .formErr)
  }

  @Test func `invalid records of a zone and invalid messages are distinguished`() throws {
    let asked = question(name, .srv)
    let broken = ResourceRecord(owner: asked.name, type: .srv, ttl: 60, rdata: [0, 1])
    #expect(
      failure(of: try response(to: asked) { $0.answers = [broken] }, to: asked, with: post) == .unreadable(.rdata))
    // 3,000 names of a label and a pointer to 120 labels.
    var body: [UInt8] = [0, 0, 0x80, 0, 0, 1, 0x0B, 0xB9, 0, 0, 0, 0, 1, 97, 0, 0, 2, 0, 1]
    let long = [UInt8]((0..<120).flatMap { _ in [1, 98] as [UInt8] }) + [0]
    body += [0xC0, 12, 0, 2, 0, 1, 0, 0, 0, 1, 0, UInt8(long.count)] + long
    for _ in 0..<3000 { body += [0xC0, 12, 0, 2, 0, 1, 0, 0, 0, 1, 0, 4, 1, 97, 0xC0, 31] }
    let costly = HTTPResponse(status: 200, contentType: "application/dns-message", body: body)
    #expect(failure(of: costly, to: question("a", .ns), with: post) == .unreadable(.tooLarge))
  }

  @Test func `a subnet must come back as it was sent`() throws {
    let asked = question(name, subnet: "192.0.2.0/24")
    let same = try response(to: asked) {
      $0.edns = EDNS(options: [ClientSubnet(IPPrefix(text: "192.0.2.0/24")!, scope: 20).option])
    }
    #expect(try post.answer(to: asked, from: same).scopePrefixLength == 20)
    let other = try response(to: asked) {
      $0.edns = EDNS(options: [ClientSubnet(IPPrefix(text: "198.51.100.0/24")!, scope: 24).option])
    }
    #expect(failure(of: other, to: asked, with: post) == .wrongQuestion)
    #expect(try post.answer(to: asked, from: response(to: asked)).scopePrefixLength == nil)
  }

  @Test func `only whole DNS messages of the right media type are read`() throws {
    let asked = question(name)
    var reply = try response(to: asked) { $0.answers = [a(name, 300, "192.0.2.1")] }
    let whole = reply.body
    for length in 0..<whole.count {
      reply.body = Array(whole[..<length])
      #expect(failure(of: reply, to: asked, with: post) == .unreadable(.message))
    }
    reply.body = whole + [UInt8](repeating: 0, count: 65_535)
    #expect(failure(of: reply, to: asked, with: post) == .unreadable(.tooLarge))
    reply.body = whole
    for contentType in ["text/html", "application/json", nil] {
      reply.contentType = contentType
      #expect(failure(of: reply, to: asked, with: post) == .unreadable(.mediaType))
    }
    reply.contentType = "application/dns-message"
    reply.status = 206
    #expect(failure(of: reply, to: asked, with: post) == nil)
  }
}
