// FaultTests.swift -- faults: their syntax, their targets, their effect on a reply; and the record.

import Ciphers
import DNSWire
import HTTPMessage
import HTTPServer
import Testing

@testable import httpdns_simulator

private func fault(_ text: String) throws(SimulatorError) -> Fault { try Fault(Parameters(query: text)) }

private let question = Question(name: name("www.example.com"), type: .a)

@Suite struct `A fault` {
  @Test func `all parameters are understood`() throws {
    let fault = try fault(
      "kind=status&code=429&retry-after=5&ms=20&count=3&probability=0.5&path=/resolve&name=A.example&type=AAAA"
        + "&dialect=google&octets=7")
    #expect(fault.kind == .status)
    #expect(fault.code == 429)
    #expect(fault.retryAfter == 5)
    #expect(fault.delay == .milliseconds(20))
    #expect(fault.remaining == 3)
    #expect(fault.probability == 0.5)
    #expect(fault.name == name("a.example"))
    #expect(fault.octets == 7)
  }

  @Test(arguments: [
    "", "kind=explode", "kind=delay&ms=-1", "kind=delay&speed=1", "kind=status&code=99", "kind=cut&count=0",
    "kind=cut&probability=2", "kind=cut&probability=nan", "kind=cut&name=a..b", "kind=cut&type=FOO",
    "kind=cut&dialect=mumble", "kind=cut&below=a..b", "kind=bogus&ede=70000", "kind=error&error=Unknown",
  ])
  func `a parameter that is not understood is refused`(text: String) {
    #expect(throws: SimulatorError.self) { try fault(text) }
  }

  @Test func `a body of the caller's choice takes the place of the reply`() throws {
    let reply = ask(Google(), "/resolve?name=www.example.com")
    let spoiled = reply.spoiled(by: try fault("kind=body&code=403&text=%7B%22a%22%3A1%7D"))
    #expect(spoiled.text == #"{"a":1}"# && spoiled.status == 403 && spoiled.contentType == "application/json")
    #expect(spoiled.units == 0 && spoiled.questions == reply.questions)
  }

  @Test func `a fault in a JSON body is the same as in a query`() throws {
    let json = try #require(bodyParameters(Array(#"{"kind":"delay","ms":20,"probability":0.5}"#.utf8)))
    #expect(try Fault(json) == fault("kind=delay&ms=20&probability=0.5"))
    #expect(bodyParameters(Array(#"{"kind":["delay"]}"#.utf8)) == nil)
    #expect(bodyParameters(Array(#"{"kind":"delay","#.utf8)) == nil)
  }

  @Test func `a fault hits a batch if one question has both its name and type`() throws {
    let batch = [question, Question(name: name("other.example.com"), type: .aaaa)]
    func hits(_ text: String) throws -> Bool {
      try fault(text).matches(path: "/", dialect: "emas", questions: batch)
    }
    #expect(try hits("kind=cut&name=other.example.com"))
    #expect(try hits("kind=cut&type=AAAA"))
    #expect(try hits("kind=cut&name=www.example.com&type=A"))
    #expect(try !hits("kind=cut&name=www.example.com&type=AAAA"))
  }

  @Test func `a fault hits the next N matching requests`() throws {
    var table = FaultTable([try fault("kind=cut&count=2&name=www.example.com&type=A&path=/res")])
    func hits(_ path: String, _ question: Question?) -> Bool {
      table.take(path: path, dialect: "google", questions: question.map { [$0] } ?? []) != nil
    }
    #expect(!hits("/dns-query", question))
    #expect(!hits("/resolve", Question(name: question.name, type: .aaaa)))
    #expect(!hits("/resolve", nil))
    #expect((0..<3).map { _ in hits("/resolve", question) } == [true, true, false])
    #expect(table.faults.isEmpty)
  }

  @Test func `a probability hits its share, and the same ones for the same seed`() throws {
    func hits(seed: UInt64) throws -> [Bool] {
      var table = FaultTable([try fault("kind=reset&probability=0.25")], seed: seed)
      return (0..<4_000).map { _ in table.take(path: "/", dialect: "google", questions: []) != nil }
    }
    let first = try hits(seed: 7)
    #expect((850...1_150).contains(first.count { $0 }))
    #expect(try hits(seed: 7) == first)
    #expect(try hits(seed: 8) != first)
  }

  @Test func `each fault changes the reply as documented`() throws {
    let reply = ask(Google(), "/resolve?name=www.example.com")
    #expect(reply.spoiled(by: try fault("kind=cut")).text == String(reply.text.prefix(reply.body.count / 2)))
    let refused = reply.spoiled(by: try fault("kind=status&code=429&retry-after=9"))
    #expect(refused.status == 429)
    #expect(refused.fields.map(\.value) == ["9"])
    let page = reply.spoiled(by: try fault("kind=html"))
    #expect(page.status == 200)
    #expect(page.contentType == "text/html")
    #expect(reply.spoiled(by: try fault("kind=big")).body.count == 10_000_000)
    #expect(reply.spoiled(by: try fault("kind=delay&ms=1")).body == reply.body)
  }

  @Test func `a distorted reply is about another name throughout`() {
    var transfer = DialectRequest(.init(target: "/resolve?name=www.example.com"), now: 0)
    transfer.distortion = .question
    let text = Google().reply(to: transfer, from: service()).text
    #expect(!text.contains("www.example.com"))
    #expect(text.contains("\"Question\":[{\"name\":\"wrong-question.example.net.\",\"type\":1}]"))
    #expect(text.contains("192.0.2.1"))
  }

  @Test func `a fault hits all names below one`() throws {
    func hits(_ text: String, _ asked: String) throws -> Bool {
      try fault(text).matches(path: "/", dialect: "google", questions: [Question(name: name(asked), type: .a)])
    }
    for asked in ["slow.example", "x.Slow.example", "a.b.slow.example"] {
      #expect(try hits("kind=stall&below=slow.example", asked))
    }
    #expect(try !hits("kind=stall&below=slow.example", "notslow.example"))
    #expect(try !hits("kind=stall&below=slow.example&type=AAAA", "x.slow.example"))
  }

  private func distorted(_ text: String, _ dialect: some Dialect, _ request: HTTPServerRequest) throws -> DialectReply {
    var transfer = DialectRequest(request, now: 0)
    transfer.distortion = try fault(text).distortion
    return dialect.reply(to: transfer, from: service())
  }

  @Test func `an answer is spoiled in JSON`() throws {
    func text(_ kind: String) throws -> String {
      let reply = try distorted("kind=\(kind)", Google(), .init(target: "/resolve?name=www.example.com"))
      #expect(reply.status == 200)
      return reply.text
    }
    #expect(try text("bad-rdata").contains("\"data\":\"192.0.2\""))
    #expect(try text("bad-name").contains("\"data\":\"a..example.\""))
    #expect(try text("loop").contains("\"data\":\"www.example.com.\""))
    #expect(try text("chain").split(separator: "\"type\":5").count == 41)
    #expect(try text("bogus").hasPrefix("{\"Status\":2,"))
    let garbled = ask(Google(), "/resolve?name=www.example.com").spoiled(by: try fault("kind=garble"))
    #expect(String(validating: garbled.body, as: UTF8.self) == nil)
  }

  @Test func `an answer is spoiled in a message`() throws {
    let query = Message(
      id: 0, header: Header(), questions: [Message.Entry(question)], answers: [], authorities: [], edns: EDNS())
    func reply(_ kind: String) throws -> [UInt8] {
      let request = HTTPServerRequest(
        method: .post, target: "/dns-query", fields: [HTTPField("Content-Type", "application/dns-message")],
        body: try query.compose())
      let reply = try distorted("kind=\(kind)", WireFormat(), request)
      #expect(reply.status == 200)
      return reply.body
    }
    let bogus = try Message.parse(reply("bogus&ede=6"))
    #expect(bogus.responseCode == .servFail)
    #expect(bogus.edns?.extendedErrors.map(\.code.rawValue) == [6])
    #expect(try Message.parse(reply("chain")).answers.count == 41)
    #expect(try Message.parse(reply("loop")).answers.map(\.type) == [.cname, .cname])
    for kind in ["bad-rdata", "bad-name"] {
      let octets = try reply(kind)
      #expect(octets.count > 40)
      #expect(try Message.parse(octets).unreadableRecordCount == 1)
    }
  }

  @Test(arguments: [
    "/d?dn=www.example.com,t.example.com&token=123456789", "/100000/resolve?host=www.example.com",
    "/v2/d?id=100000&dn=www.example.com", "/table",
  ])
  func `dialects of addresses distort their names, too`(target: String) throws {
    var transfer = DialectRequest(.init(target: target), now: 0)
    transfer.distortion = .question
    let reply = try #require(allDialects.first { $0.claims(transfer) }).reply(to: transfer, from: service())
    #expect(reply.text.contains("wrong-question.example.net"))
    #expect(reply.text.contains("192.0.2.1"))
    #expect(!reply.text.contains("www.example.com"))
    #expect(reply.questions.allSatisfy { $0.name.isAtOrBelow(name("example.com")) })
  }
}

@Suite struct `The record of requests` {
  private func entry(_ path: String, _ question: Question? = question) -> RecordedRequest {
    let reply = DialectReply(
      contentType: "", body: [], questions: question.map { [$0] } ?? [], isVerified: true, cipher: .aesCBC, units: 5)
    let request = HTTPServerRequest(target: "\(path)?name=a%20b&x", fields: [HTTPField("Host", "localhost")])
    return RecordedRequest(
      milliseconds: 1, transfer: DialectRequest(request, now: 0), reply: reply, dialect: "google", fault: .cut)
  }

  @Test func `the record of requests has the latest, and counts all`() {
    var record = RequestRecord(limit: 3)
    for number in 0..<5 { record.note(entry("/\(number)")) }
    #expect(record.requests.map(\.transfer.request.path) == ["/2", "/3", "/4"])
    #expect(record.transferCount == 5)
    #expect(record.questionCounts[question] == 5)
    record.clear()
    #expect(record.requests.isEmpty)
    #expect(record.transferCount == 0)
    #expect(record.limit == 3)
  }

  @Test func `a limit of nothing still counts`() {
    var record = RequestRecord(limit: 0)
    record.note(entry("/"))
    #expect(record.requests.isEmpty)
    #expect(record.transferCount == 1)
  }

  @Test func `the record of requests is shown as JSON`() {
    var record = RequestRecord(limit: 3)
    record.note(entry("/resolve"))
    #expect(
      String(decoding: record.requestsJSON, as: UTF8.self) == """
        [{"time":1,"transport":"http","method":"GET","path":"/resolve","host":"localhost",\
        "dialect":"google","name":"www.example.com.","type":"A","questions":["www.example.com. A"],\
        "verified":true,"cipher":"cbc","subnet":null,"status":200,"units":5,"fault":"cut",\
        "parameters":{"name":"a b","x":""}}]
        """)
    #expect(
      String(decoding: record.countJSON(connections: 2), as: UTF8.self)
        == #"{"transfers":1,"connections":2,"questions":{"www.example.com. A":1},"units":{"google":5}}"#)
  }
}
