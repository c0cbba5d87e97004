// TransferCheckTests.swift -- statuses, media types and bodies that carry no answer.

import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

@Suite struct TransferCheckTests {
  let asked = question("www.example.com")
  let good = #"{"Status":0,"Question":{"name":"www.example.com.","type":1}}"#

  @Test(arguments: [
    (301, HTTPDNSFailure.Kind.server), (302, .server), (400, .badParameter), (401, .authentication),
    (403, .authentication), (404, .badPath), (405, .badParameter), (408, .server), (413, .badParameter),
    (414, .badParameter), (415, .badParameter), (421, .server), (429, .quota), (500, .server), (501, .badParameter),
    (502, .server), (503, .server), (101, .server), (0, .server),
  ])
  func `a status without an answer is the failure`(status: Int, kind: HTTPDNSFailure.Kind) {
    let expected = HTTPDNSFailure.status(status, retryAfter: .seconds(7))
    #expect(expected.kind == kind)
    #expect(expected.isRefusal == (kind != .server))
    #expect(!expected.isOfAccount)
    for (dialect, contentType) in [(google, "application/json"), (alidns, nil), (post, "application/dns-message")]
      as [(any Dialect, String?)]
    {
      var response = json(good, status: status, contentType: contentType)
      response.retryAfter = .seconds(7)
      #expect(failure(of: response, to: asked, with: dialect) == expected)
    }
  }

  @Test(arguments: [
    ("application/json", true), ("Application/JSON; charset=UTF-8", true), ("application/dns-json", true),
    (" application/json ;charset=utf-8", true), ("application/x-javascript", true), ("text/html", false),
    ("text/html; charset=utf-8", false), ("application/jsonp", false), ("application/jso", false),
    ("application/json evil", false), ("application/dns-message", false), ("", false), (";application/json", false),
  ])
  func `only the media types of JSON are read`(contentType: String, isAccepted: Bool) {
    let expected: HTTPDNSFailure? = isAccepted ? nil : .unreadable(.mediaType)
    #expect(failure(of: json(good, contentType: contentType), to: asked) == expected)
    #expect(failure(of: json(good, contentType: contentType), to: asked, with: alidns) == expected)
  }

  @Test(arguments: [
    ("text/html; charset=utf-8", "media type text/html"), (nil, "no media type"), ("a\u{7}b", "another media type"),
    (String(repeating: "a", count: 65), "another media type"),
  ])
  func `the message about another media type shows it unless it is odd`(contentType: String?, found: String) {
    #expect(
      HTTPDNSFailure.wrongMediaType(of: json(good, contentType: contentType))
        == "unreadable: \(found); is it the page of a portal?")
  }

  @Test func `alidns may leave the media type out, others may not`() {
    #expect(failure(of: json(good, contentType: nil), to: asked, with: alidns) == nil)
    #expect(failure(of: json(good, contentType: "text/plain"), to: asked, with: alidns) == nil)
    #expect(failure(of: json(good, contentType: nil), to: asked) == .unreadable(.mediaType))
    #expect(failure(of: json(good, contentType: "text/plain"), to: asked) == .unreadable(.mediaType))
  }

  @Test func `a body above 64 KiB is refused, one of that size is not; of the JSON dialect it is 500 KiB`() {
    for (dialect, limit) in [(alidns, 65_536), (google, 512_000)] as [(any Dialect, Int)] {
      let padding = String(repeating: " ", count: limit - good.utf8.count)
      #expect(failure(of: json(good + padding), to: asked, with: dialect) == nil)
      #expect(failure(of: json(good + padding + " "), to: asked, with: dialect) == .unreadable(.tooLarge))
    }
    #expect(failure(of: json(String(repeating: "[", count: 10_000_000)), to: asked) == .unreadable(.tooLarge))
  }

  @Test func `sixteen levels are read, seventeen are not, and brackets in strings do not count`() {
    func nested(_ levels: Int, _ innermost: String) -> HTTPResponse {
      let more = String(repeating: "[", count: levels - 1) + innermost + String(repeating: "]", count: levels - 1)
      return json(good.dropLast() + #","more":"# + more + "}")
    }
    for innermost in ["", "1", "true,false"] {
      #expect(failure(of: nested(16, innermost), to: asked) == nil)
      #expect(failure(of: nested(17, innermost), to: asked) == .unreadable(.nesting))
    }
    for innermost in ["{}", #"{"a":1}"#] {
      #expect(failure(of: nested(15, innermost), to: asked) == nil)
      #expect(failure(of: nested(16, innermost), to: asked) == .unreadable(.nesting))
    }
    let quoted = good.dropLast() + #","Comment":"\"\\\"\#(String(repeating: "[{", count: 40))"}"#
    #expect(failure(of: json(String(quoted)), to: asked) == nil)
    let deep = String(repeating: "[", count: 30_000) + String(repeating: "]", count: 30_000)
    #expect(failure(of: json(deep), to: asked) == .unreadable(.nesting))
    #expect(failure(of: json(String(repeating: "[", count: 60_000)), to: asked) == .unreadable(.syntax))
  }

  @Test(arguments: [
    "", " ", "<html><body>Log in</body></html>", #"{"Status":0"#, #"{"Status":0}}"#, #"{"Status":0} x"#,
    #"{"Status":0,"Status":3}"#, #"{"Status":0,"a":{"b":1,"b":2}}"#, #"{"Status":99999999999999999999}"#,
    #"{"Status":0,"x":1e999}"#, #"{"Status":0,"x":"\u0000"}"#, "{\"Status\":0,\"x\":\"\u{0}\"}", "\u{0}",
    #"{"Status":0,"x":"\ud800"}"#, #"{"Status":0,"x":"\udc00"}"#, #"{"Status":0,"x":"\ud83d\u0041"}"#,
    #"{"Status":0,"x":"\ud83d\n"}"#, #"{"Status":0,"x":"\ud83d\ud83d\ude00"}"#,
    #"{"Status":0,"x":"\\\udfff"}"#,
    #"{"Status":0,"\u0000":1}"#, #"{"Status":0,"x":"\u00g0"}"#, #"{"Status":0,"\u0053tatus":0}"#,
    #"{"Status":0,"":1,"":2}"#, #"{"Status":0,"a":[[{"b":1,"c":2,"b":3}]]}"#, #"{"Status":0} {}"#, #"{"Status":0,}"#,
    #"{"Status":0,"x":[1,]}"#, #"{"Status":0,"x":18446744073709551616}"#, "{'Status':0}", #"{"Status":00}"#,
    #"{"Status":NaN}"#, "\"", "\\", "0", "null",
    #""text""#,
  ])
  func `a body that is not strict JSON is refused`(body: String) {
    #expect(failure(of: json(body), to: asked) == .unreadable(.syntax))
  }

  @Test func `escapes that stand for characters are read`() {
    let name = #"{"Status":0,"Question":{"name":"\u0077ww\u002eexample.com","type":1},"x":"\\u0000\ud83d\ude00\/"}"#
    #expect(failure(of: json(name), to: asked) == nil)
  }

  @Test func `the 256 members of an object all count, and more are refused`() {
    func members(_ names: [String]) -> HTTPResponse {
      json(good.dropLast() + #","more":{"# + names.map { "\"\($0)\":0" }.joined(separator: ",") + "}}")
    }
    let names = (0..<256).map { "name\($0)" }
    #expect(failure(of: members(names), to: asked) == nil)
    #expect(failure(of: members(names + ["name256"]), to: asked) == .unreadable(.syntax))
    for index in names.indices.dropLast() {
      #expect(failure(of: members(Array(names.dropLast()) + [names[index]]), to: asked) == .unreadable(.syntax))
    }
  }

  @Test func `a text that is read while another is open does not disturb it`() throws {
    let text = { (number: Int) in
      Array(#"{"number":\#(number),"text":"\#(String(repeating: "x", count: number))"}"#.utf8)
    }
    for _ in 0..<2 {
      try withJSON(text(40_000)) { outer throws(HTTPDNSFailure) in
        for number in [1, 60_000, 2] {
          try withJSON(text(number)) { inner throws(HTTPDNSFailure) in
            #expect(inner["number"]?.number(upTo: .max) == UInt32(number))
            #expect(inner["text"]?.octets?.count == number)
          }
        }
        #expect(outer["number"]?.number(upTo: .max) == 40_000)
        #expect(outer["text"]?.octets?.count == 40_000)
      }
    }
  }

  @Test func `invalid UTF-8 is refused`() {
    for octets in [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xc3]] as [[UInt8]] {
      var response = json(good)
      response.body = Array(#"{"Status":0,"x":""#.utf8) + octets + Array(#""}"#.utf8)
      #expect(failure(of: response, to: asked) == .unreadable(.syntax))
    }
  }

  @Test(arguments: [
    ("[]", "Status"), ("{}", "Status"), (#"{"Status":null}"#, "Status"), (#"{"status":0}"#, "Status"),
    (#"{"Status":0,"Question":"x"}"#, "Question.name"),
    (#"{"Status":0,"Question":{"name":1,"type":1}}"#, "Question.name"),
    (#"{"Status":0,"Question":{"name":"www.example.com"}}"#, "Question.type"),
  ])
  func `a JSON body of another shape is refused, and the failure names the member`(body: String, member: String) {
    #expect(failure(of: json(body), to: asked) == .unreadable(.shape(member)))
  }

  @Test(arguments: [
    (#""Answer":{}"#, "Answer"), (#""Answer":[1]"#, "Answer[].type"), (#""Answer":[{"type":1}]"#, "Answer[].name"),
    (#""Answer":[{"type":1,"name":"www.example.com"}]"#, "Answer[].data"),
    (#""Answer":"x""#, "Answer"), (#""Authority":7"#, "Authority"),
  ])
  func `sections of another shape are refused`(section: String, member: String) {
    #expect(failure(of: json(good.dropLast() + "," + section + "}"), to: asked) == .unreadable(.shape(member)))
  }

  @Test func `data needs no question beside it, and a denial does`() {
    let data = #""Answer":[{"name":"www.example.com","type":1,"TTL":60,"data":"192.0.2.1"}]"#
    #expect(failure(of: json(#"{"Status":0,\#(data)}"#), to: asked, with: alidns) == nil)
    #expect(failure(of: json(#"{"Status":0}"#), to: asked, with: alidns) == .wrongQuestion)
    #expect(failure(of: json(#"{"Status":3,"Answer":[]}"#), to: asked, with: alidns) == .wrongQuestion)
  }

  @Test(arguments: [
    ("InvalidAccessKeyId.NotFound", HTTPDNSFailure.authentication), ("InvalidAccessKeyId.Inactive", .authentication),
    ("SignatureDoesNotMatch", .authentication), ("InvalidTimeStamp.Expired", .expired), ("Forbidden.RAM", .account),
    ("Throttling.User", .quota),
  ])
  func `a refusal in Alibaba's own form counts, whatever the status`(code: String, failure: HTTPDNSFailure) {
    let body = #"{"code":"\#(code)","message":"x","requestId":"y"}"#
    for status in [200, 400, 403, 503] {
      for dialect in [alidns, shortAliDNS] {
        #expect(HTTPDNSTests.failure(of: json(body, status: status), to: asked, with: dialect) == failure)
      }
    }
    #expect(alidns.errorCode(in: json(body)) == code.split(separator: ".").first.map(String.init))
    // In an answer the member is not known.
    #expect(HTTPDNSTests.failure(of: json(String(good.dropLast() + "," + body.dropFirst())), to: asked) == nil)
  }

  @Test func `a code of Alibaba's that is not known concerns the question`() {
    let body = #"{"code":"InvalidDomainName.\u0007","message":"x"}"#
    #expect(failure(of: json(body), to: asked, with: alidns) == .name)
    #expect(failure(of: json(body, status: 400), to: asked, with: alidns) == .status(400))
    #expect(alidns.errorCode(in: json(body)) == nil)
  }

  @Test func `a byte order mark before JSON is skipped`() {
    #expect(failure(of: json("\u{FEFF}" + good), to: asked) == nil)
    #expect(failure(of: json("\u{FEFF}\u{FEFF}" + good), to: asked) == .unreadable(.syntax))
    #expect(failure(of: json("\u{FEFF}"), to: asked) == .unreadable(.syntax))
  }

  @Test func `null means a missing member, and unknown members are ignored`() {
    let body = good.dropLast() + #","Answer":null,"Comment":["a","b"],"uid":7,"Additional":"x","AD":"true"}"#
    #expect(failure(of: json(String(body)), to: asked) == nil)
    let comment = good.dropLast() + #","Comment":"Response from 192.0.2.53."}"#
    #expect(failure(of: json(String(comment)), to: asked) == nil)
  }

  @Test(arguments: ["..", "a..b", ".example.com", #"a\\300.b"#, String(repeating: "a", count: 64)])
  func `invalid names are refused`(name: String) {
    let response = reply("www.example.com", answer: [record(name, 1, "192.0.2.1")])
    #expect(failure(of: response, to: asked) == .unreadable(.name))
  }

  @Test func `a short reply holds addresses of the asked family and nothing else`() throws {
    for body in [#"["2001:db8::1"]"#, #"["192.0.2.01"]"#, #"[" 192.0.2.1"]"#, "[1]"] {
      #expect(failure(of: json(body), to: asked, with: shortAliDNS) == .unreadable(.rdata))
    }
    let answer = try shortAliDNS.answer(to: asked, from: json(#"[7,"192.0.2.1","x"]"#))
    #expect(answer.answers.map(\.rdata) == [[192, 0, 2, 1]])
    #expect(failure(of: json(#"["192.0.2.1"]"#), to: asked, with: alidns) == .unreadable(.shape("Status")))
    #expect(try shortAliDNS.answer(to: asked, from: json("[]")).isEmptyAmbiguous)
    #expect(failure(of: json(good), to: asked, with: shortAliDNS) == nil)
  }

  @Test func `no failure shows what the provider wrote`() {
    let failures: [HTTPDNSFailure] = [
      .authentication, .status(404), .quota, .fault, .status(500),
      .unreadable(.shape("Status")),
      .wrongQuestion, .truncated, .unsupported,
    ]
    #expect(Set(failures.map(\.description)).count == failures.count)
  }
}
