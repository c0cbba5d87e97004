// EMASErrorTests.swift -- error codes of EMAS: what failed, and what happens without one.

import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

@Suite struct EMASErrorTests {
  let asked = question("www.example.com")
  let good = #"{"host":"www.example.com","ips":["192.0.2.1"],"ttl":60}"#

  @Test(arguments: [
    ("MissingArgument", 400, HTTPDNSFailure.fault), ("TooManyHosts", 400, .fault),
    ("SdnsNotSupported", 400, .fault), ("ServiceLevelDeny", 403, .fault),
    ("InternalError", 500, .fault), ("InvalidHost", 400, .name), ("SignatureExpired", 403, .expired),
    ("InvalidSignature", 403, .authentication), ("InvalidDuration", 403, .expired),
    ("UnsignedInterfaceDisabled", 403, .unsigned), ("InvalidAccount", 403, .account),
    ("AccountNotExists", 403, .account), ("MethodNotAllowed", 405, .status(405)),
  ])
  func `an error code names the failure, in both versions and with any media type`(
    code: String, status: Int, expected: HTTPDNSFailure
  ) {
    for dialect in [emas, emasV2, emasV2Dialect(aes: .gcm)] as [any BatchDialect] {
      for contentType in ["application/json", "text/html", nil] {
        let response = json(#"{"code":"\#(code)"}"#, status: status, contentType: contentType)
        #expect(failure(of: response, to: asked, with: dialect) == expected)
        #expect(dialect.errorCode(in: response) == code)
      }
    }
  }

  @Test func `a batch with a name that the service calls invalid gives none of its names a verdict`() {
    let response = json(#"{"code":"InvalidHost"}"#, status: 400)
    for dialect in [emas, emasV2] as [any BatchDialect] {
      #expect(outcomes(batch(["a.example", "b.example"]), response, dialect) == [.failure(.name), .failure(.name)])
    }
  }

  @Test func `only documented codes are shown`() {
    for body in ["", "<html>", "{}", #"{"code":"Unheard of"}"#, #"{"code":7}"#, #"{"code":"success"}"#] {
      #expect(emas.errorCode(in: json(body, status: 403)) == nil)
    }
  }

  @Test func `a code counts before the status`() {
    for status in [200, 400, 401, 404, 429, 503] {
      let expired = json(#"{"code":"SignatureExpired"}"#, status: status)
      let overloaded = json(#"{"code":"InternalError","host":"x","ips":[]}"#, status: status)
      for dialect in [emas, emasV2] as [any BatchDialect] {
        #expect(failure(of: expired, to: asked, with: dialect) == .expired)
        #expect(failure(of: overloaded, to: asked, with: dialect) == .fault)
      }
    }
  }

  @Test(arguments: [301, 400, 401, 403, 404, 405, 429, 500, 503])
  func `without a known code there is only the status`(status: Int) {
    let expected = HTTPDNSFailure.status(status, retryAfter: .seconds(9))
    let huge = #"{"code":"InvalidHost","x":"\#(String(repeating: "x", count: 70_000))"}"#
    for body in [
      "", "<html>", "[]", "{}", #"{"code":"Unheard"}"#, #"{"code":7}"#, #"{"code":"invalidhost"}"#,
      #"{"code":"InvalidHost"} x"#, #"{"code":"success"}"#, good, huge,
    ] {
      for dialect in [emas, emasV2] as [any BatchDialect] {
        var response = json(body, status: status)
        response.retryAfter = .seconds(9)
        #expect(failure(of: response, to: asked, with: dialect) == expected, "\(body.prefix(40))")
      }
    }
  }

  @Test func `a code that is not known does not spoil an answer of version 1`() throws {
    let body = json(good.dropLast() + #","code":"Unheard"}"#)
    #expect(try emas.answer(to: asked, from: body).answers == [a("www.example.com", 60, "192.0.2.1")])
  }

  @Test func `HTML pages, large bodies and broken ones are refused`() {
    for dialect in [emas, emasV2] as [any BatchDialect] {
      #expect(
        failure(of: json(good, contentType: "text/html"), to: asked, with: dialect) == .unreadable(.mediaType))
      let large = json(good + String(repeating: " ", count: 65_537 - good.utf8.count))
      #expect(failure(of: large, to: asked, with: dialect) == .unreadable(.tooLarge))
      #expect(failure(of: json("{"), to: asked, with: dialect) == .unreadable(.syntax))
      #expect(failure(of: json(""), to: asked, with: dialect) == .unreadable(.syntax))
    }
    for contentType in [nil, "text/plain", "application/octet-stream", "application/json;charset=UTF-8"] {
      #expect(failure(of: json(good, contentType: contentType), to: asked, with: emas) == nil)
    }
  }
}
