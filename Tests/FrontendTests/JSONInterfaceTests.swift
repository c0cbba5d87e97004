// JSONInterfaceTests.swift -- questions in query strings, and answers that the daemon's own JSON dialect reads without loss.

import DNSWire
import HTTPDNS
import HTTPMessage
import TestSupport
import Testing

@testable import Frontend

private func question(_ text: String) throws(DoHRefusal) -> JSONQuestion {
  let octets = Array(text.utf8)
  return try octets.withUnsafeBufferPointer { query throws(DoHRefusal) in try JSONQuestion(query) }
}

private func refusal(_ text: String) -> String? {
  do throws(DoHRefusal) {
    _ = try question(text)
    return nil
  } catch {
    return error.status == 400 ? error.text : "\(error.status)"
  }
}

@Suite struct `Questions of the JSON interface` {
  @Test func `a name is enough, and the type is A`() throws {
    let question = try question("name=www.Example.com")
    #expect(question.question == Question(name: DomainName(text: "www.example.com")!, type: .a))
    #expect(!question.dnssecOK && !question.checkingDisabled && question.clientSubnet == nil)
  }

  @Test(arguments: [("AAAA", 28), ("aaaa", 28), ("28", 28), ("TYPE65534", 65_534), ("0", 0), ("65535", 65_535)])
  func `a type is a number or a mnemonic`(text: String, type: Int) throws {
    #expect(try question("name=x.&type=\(text)").question.type == RecordType(UInt16(type)))
  }

  @Test func `all parameters reach the query`() throws {
    let octets = try question(
      "random_padding=abc&name=a%5C.b.example.&type=TXT&do=1&cd=true&edns_client_subnet=192.0.2.99/24&random_padding=x"
    ).message
    let query = try Message.parse(octets)
    #expect(query.id == 0 && !query.header.qr && query.header.rd && query.header.ad && query.header.cd)
    #expect(query.questions.map(\.question.name) == [DomainName(text: "a\\.b.example.")!])
    #expect(query.questions.map(\.question.type) == [.txt])
    #expect(query.edns?.dnssecOK == true)
    #expect(query.edns?.clientSubnet == ClientSubnet(IPPrefix(text: "192.0.2.0/24")!))
    var read = Query()
    #expect(QueryReader.read(octets.span, into: &read) == .query)
    #expect(!read.hasBrokenSubnet)
  }

  @Test(arguments: [
    ("192.0.2.1", "192.0.2.1/32"), ("2001:db8::1", "2001:db8::1/128"), ("2001:db8::1%2F56", "2001:db8::/56"),
    ("0.0.0.0/0", "0.0.0.0/0"),
  ]) func `a subnet is an address or a prefix`(text: String, prefix: String) throws {
    #expect(
      try question("name=x&edns_client_subnet=\(text)").clientSubnet
        == ClientSubnet(try #require(IPPrefix(text: prefix))))
  }

  @Test(arguments: [
    ("", "the parameter name is missing"), ("type=1", "the parameter name is missing"),
    ("name=x&name=x", "the parameter name is given twice"), ("name=a..b", "the parameter name is not a domain name"),
    ("name=", "the parameter name is not a domain name"), ("name=%zz", "the parameter name is not a domain name"),
    ("name=" + String(repeating: "a", count: 64), "the parameter name is not a domain name"),
    ("name=x&type=NOPE", "the parameter type is not a record type, as \"AAAA\" or 28"),
    ("name=x&type=65536", "the parameter type is not a record type, as \"AAAA\" or 28"),
    ("name=x&do=yes", "the parameter do is not 0 or 1"), ("name=x&cd", "the parameter cd is not 0 or 1"),
    ("name=x&edns_client_subnet=192.0.2.0/33", "the parameter edns_client_subnet is not an address or a prefix"),
  ]) func `a mistake is named`(text: String, reason: String) { #expect(refusal(text) == reason) }
}

@Suite struct `Answers of the JSON interface` {
  private func response(
    _ question: Question, _ code: ResponseCode = .noError, _ answers: [ResourceRecord] = [],
    _ authorities: [ResourceRecord] = [], edns: EDNS? = EDNS(), _ change: (inout Header) -> Void = { _ in }
  ) throws -> [UInt8] {
    var header = Header()
    (header.qr, header.rd, header.ra, header.rcode) = (true, true, true, UInt8(code.rawValue & 0xF))
    change(&header)
    return try Message(
      id: 0, header: header, questions: [Message.Entry(question)], answers: answers, authorities: authorities,
      edns: edns
    ).compose()
  }

  private let name = DomainName(text: "www.example.com")!

  @Test func `an answer has the members of Google's interface, and no empty section`() throws {
    let answers = [
      ResourceRecord(owner: name, type: .a, ttl: 300, rdata: [192, 0, 2, 1]),
      ResourceRecord(owner: DomainName(text: "b\\.\"c.example")!, type: .txt, ttl: 5, rdata: [3] + Array("a\"b".utf8)),
    ]
    #expect(
      JSONAnswer.text(of: try response(Question(name: name, type: .a), .noError, answers) { $0.ad = true })
        == #"{"Status":0,"TC":false,"RD":true,"RA":true,"AD":true,"CD":false,"#
        + #""Question":[{"name":"www.example.com.","type":1}],"#
        + #""Answer":[{"name":"www.example.com.","type":1,"TTL":300,"data":"192.0.2.1"},"#
        + #"{"name":"b\\.\\\"c.example.","type":16,"TTL":5,"data":"\"a\\\"b\""}]}"#)
    #expect(
      JSONAnswer.text(
        of: try response(Question(name: name, type: .a), .refused) {
          ($0.tc, $0.cd, $0.rd) = (true, true, false)
        })
        == #"{"Status":5,"TC":true,"RD":false,"RA":true,"AD":false,"CD":true,"#
        + #""Question":[{"name":"www.example.com.","type":1}]}"#)
    #expect(JSONAnswer.text(of: [1, 2, 3]) == #"{"Status":2}"#)
  }

  @Test func `the OPT record's scope and errors are members, and its part of the RCODE is in Status`() throws {
    var edns = EDNS()
    edns.extendedResponseCode = 1
    edns.options = [
      ClientSubnet(IPPrefix(text: "192.0.2.0/24")!, scope: 20).option,
      ExtendedErrorReport(code: .blocked, text: "why").option,
    ]
    let text = JSONAnswer.text(of: try response(Question(name: name, type: .a), .noError, edns: edns))
    #expect(text.hasPrefix(#"{"Status":16,"#))
    #expect(text.hasSuffix(#""edns_client_subnet":"192.0.2.0/20","extended_dns_errors":[{"info_code":15}]}"#))
  }

  /// What the daemon's JSON dialect reads of an answer.
  private func read(_ octets: [UInt8], _ question: HTTPDNSQuestion) throws -> HTTPDNSAnswer {
    try JSONDialect(flavour: .generic, path: "/resolve").answer(
      to: question,
      from: HTTPResponse(
        status: 200, contentType: "\(DoHMediaType.json)", body: Array(JSONAnswer.text(of: octets).utf8)))
  }

  /// The types and texts of the fuzzer's corpus.
  private var corpus: [(type: RecordType, rdata: [UInt8])] {
    FuzzCorpus.inputs(of: "RDATAText").compactMap { input in
      let words = String(decoding: input.octets, as: UTF8.self)
        .split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
      guard words.count == 2, let type = RecordType(text: String(words[0])), type != .opt, !type.isOnlyForQuestions,
        let rdata = RDATA.parse(text: String(words[1]), type: type)
      else { return nil }
      return (type, rdata)
    }
  }

  @Test func `the JSON dialect reads records of all types, their TTLs and AD without loss`() throws {
    let corpus = corpus
    #expect(Set(corpus.map(\.type)).count > 30)
    for (number, (type, rdata)) in corpus.enumerated() {
      let records = [ResourceRecord(owner: name, type: type, ttl: UInt32(number) * 1000, rdata: rdata)]
      var question = HTTPDNSQuestion(name: name, type: type)
      question.dnssecOK = true
      let octets = try response(Question(name: name, type: type), .noError, records) { $0.ad = true }
      // As a client over the wire reads it.
      let wire = try Message.parse(octets)
      let answer = try read(octets, question)
      #expect(answer.answers == wire.answers, "\(type)")
      #expect(answer.answers.map(\.rdata) == [rdata], "\(type)")
      #expect(answer.isAuthenticated && answer.responseCode == .noError && !answer.isNegative, "\(type)")
    }
  }

  @Test func `the JSON dialect reads chains, odd names and negative answers without loss`() throws {
    let odd = DomainName(octets: [5, 0, 46, 92, 34, 200] + name.octets)!
    let chain = [
      ResourceRecord(owner: name, type: .cname, ttl: 20, rdata: odd.octets),
      ResourceRecord(owner: odd, type: .a, ttl: 10, rdata: [192, 0, 2, 1]),
      ResourceRecord(owner: odd, type: .a, ttl: 10, rdata: [192, 0, 2, 2]),
    ]
    #expect(
      try read(response(Question(name: name, type: .a), .noError, chain), HTTPDNSQuestion(name: name, type: .a)).answers
        == chain)
    let soa = ResourceRecord(
      owner: DomainName(text: "example.com")!, type: .soa, ttl: 30,
      rdata: name.octets + odd.octets + words(0, 1, 0, 2, 0, 3, 0, 4, 0, 60))
    for code in [ResponseCode.noError, .nxDomain] {
      let answer = try read(
        response(Question(name: odd, type: .aaaa), code, [], [soa]), HTTPDNSQuestion(name: odd, type: .aaaa))
      #expect(answer.responseCode == code && answer.authorities == [soa] && answer.isNegative)
      #expect(answer.negativeTTL == 30 && !answer.isAuthenticated)
    }
  }

  @Test(arguments: [1, 2, 4, 5, 16, 23] as [UInt16]) func `the JSON dialect reads every RCODE`(code: UInt16) throws {
    var edns = EDNS()
    edns.extendedResponseCode = UInt8(code >> 4)
    edns.options = [ExtendedErrorReport(code: .prohibited).option]
    let octets = try response(Question(name: name, type: .a), ResponseCode(rawValue: code), edns: edns)
    let answer = try read(octets, HTTPDNSQuestion(name: name, type: .a))
    #expect(answer.responseCode.rawValue == code)
    #expect(answer.extendedError == .prohibited)
  }

  @Test func `the JSON dialect reads the scope of a subnet`() throws {
    let subnet = try #require(IPPrefix(text: "192.0.2.0/24"))
    var edns = EDNS()
    edns.options = [ClientSubnet(subnet, scope: 20).option]
    var question = HTTPDNSQuestion(name: name, type: .a)
    question.clientSubnet = subnet
    let records = [ResourceRecord(owner: name, type: .a, ttl: 10, rdata: [192, 0, 2, 1])]
    let octets = try response(Question(name: name, type: .a), .noError, records, edns: edns)
    #expect(try read(octets, question).scopePrefixLength == 20)
  }
}
