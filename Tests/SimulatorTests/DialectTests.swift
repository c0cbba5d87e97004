// DialectTests.swift -- the JSON dialects and RFC 8484 against bodies and messages made elsewhere.

import DNSWire
import HTTPMessage
import HTTPServer
import Testing

@testable import httpdns_simulator

private let json = HTTPField("Accept", "application/dns-json")

@Suite struct `Google's dialect` {
  private let vectors = Vectors.all.google_responses

  @Test func `Google bodies are those of the vectors`() {
    let zone = vectorZone + "\nauthority. 1 A 192.0.2.1"
    let target = "/resolve?name=www.example.com&type=A&edns_client_subnet=203.0.113.0/24"
    #expect(ask(Google(), target, of: service(zone)).text == vectors.body("A with ECS"))
    let comment = ",\"Comment\":\"Response from 198.51.100.53.\"}"
    // The service validates DNSSEC, which the simulator does not: AD stays false.
    let nxdomain = vectors.body("NXDOMAIN").replacing("\"AD\":true", with: "\"AD\":false")
    #expect(ask(Google(), "/resolve?name=nope.example.com").text == nxdomain.dropLast() + comment)
    #expect(
      ask(Google(), "/resolve?name=example.com&type=16").text == vectors.body("TXT, current").dropLast() + comment)
  }

  @Test func `a prefix of no bits is not echoed, but recorded`() {
    let reply = ask(Google(), "/resolve?name=www.example.com&edns_client_subnet=0.0.0.0/0")
    #expect(!reply.text.contains("edns_client_subnet"))
    #expect(reply.subnet == "0.0.0.0/0")
  }

  @Test(arguments: [
    "/resolve", "/resolve?name=", "/resolve?name=a..b", "/resolve?name=a&type=0", "/resolve?name=a&type=FOO",
    "/resolve?name=a&cd=2", "/resolve?name=a&edns_client_subnet=1.2.3.4/33", "/resolve?name=a&ct=text/html",
  ])
  func `a wrong parameter gets 400 and no question`(target: String) {
    let reply = ask(Google(), target)
    #expect(reply.status == 400)
    #expect(reply.question == nil)
  }

  @Test func `the first of repeated parameters counts, escapes are decoded, types may be numbers or words`() {
    let reply = ask(Google(), "/resolve?name=%77ww.example.com.&type=aAaA&type=1&name=other")
    #expect(reply.question == Question(name: name("www.example.com"), type: .aaaa))
  }

  @Test func `a binary answer is given on demand`() {
    let reply = ask(Google(), "/resolve?name=www.example.com&ct=application/dns-message")
    #expect(reply.contentType == "application/dns-message")
    #expect((try? Message.parse(reply.body))?.answers.map(\.rdata) == [[192, 0, 2, 1]])
  }

  @Test func `several strings of TXT are one text without quotes`() {
    #expect(ask(Google(), "/resolve?name=t.example.com&type=TXT").text.contains("\"data\":\"helloworld\""))
  }
}

@Suite struct `Cloudflare's dialect` {
  private let vectors = Vectors.all.cloudflare_responses

  @Test func `Cloudflare bodies are those of the vectors`() {
    var old = ServiceOptions()
    old.cloudflareGenericForm = true
    #expect(ask(Cloudflare(), "/dns-query?name=www.example.com").text == vectors.body("A (names"))
    #expect(ask(Cloudflare(), "/dns-query?name=example.com&type=CAA").text == vectors.body("CAA new"))
    #expect(ask(Cloudflare(), "/dns-query?name=example.com&type=65").text == vectors.body("HTTPS new"))
    #expect(
      ask(Cloudflare(), "/dns-query?name=example.com&type=CAA", of: service(options: old)).text
        == vectors.body("CAA old"))
    #expect(
      ask(Cloudflare(), "/dns-query?name=example.com&type=65", of: service(options: old)).text
        == vectors.body("HTTPS old"))
    let refusal = ask(Cloudflare(), "/dns-query?name=example.com&cd=2")
    #expect(refusal.status == 400)
    #expect(refusal.text == vectors.body("invalid cd"))
  }

  @Test func `every string of TXT is quoted, and a failure is explained in a list`() {
    let text = ask(Cloudflare(), "/dns-query?name=t.example.com&type=TXT").text
    #expect(text == vectors.body("TXT quoted").replacing(",\"Comment\":[\"EDE(10): RRSIGs Missing\"]", with: ""))
    let failure = ask(Cloudflare(), "/dns-query?name=servfail.example").text
    #expect(failure.hasPrefix("{\"Status\":2,"))
    #expect(failure.hasSuffix(",\"Comment\":[\"EDE(22): No Reachable Authority\"]}"))
  }

  @Test func `names end with a dot on demand`() {
    var options = ServiceOptions()
    options.cloudflareFinalDot = true
    let text = ask(Cloudflare(), "/dns-query?name=www.example.com", of: service(options: options)).text
    #expect(text.contains("\"name\":\"www.example.com.\""))
  }
}

@Suite struct `AdGuard's dialect` {
  private func ask(_ target: String) -> DialectReply { SimulatorTests.ask(AdGuard(), target) }

  @Test func `sections come first, and a record has a class`() {
    let reply = ask("/resolve?name=www.example.com&type=A")
    #expect(
      reply.text
        == #"{"Question":[{"name":"www.example.com.","type":1}],"#
        + #""Answer":[{"name":"www.example.com.","data":"192.0.2.1","TTL":300,"type":1,"class":1}],"Extra":null,"#
        + #""TC":false,"RD":true,"RA":true,"AD":false,"CD":false,"Status":0}"#)
    #expect(reply.contentType == "application/x-javascript")
    #expect(reply.fields == [HTTPField("Cache-Control", "max-age=300.000000")])
  }

  @Test func `a denial has no SOA record, and max-age in its place`() {
    let reply = ask("/resolve?name=nope.example.com&type=28")
    #expect(reply.text.contains(#""Answer":null"#) && reply.text.hasSuffix(#""Status":3}"#))
    #expect(!reply.text.contains("Authority"))
    #expect(reply.fields == [HTTPField("Cache-Control", "max-age=900.000000")])
  }

  @Test func `it is known by its host, and wrong parameters are 400`() {
    for host in ["dns.adguard-dns.com", "dns.adguard-dns.com:8443", "dns.google"] {
      let request = HTTPServerRequest(
        method: .get, target: "/resolve?name=a", fields: [HTTPField("Host", host)], body: [], peer: nil)
      #expect(AdGuard().claims(DialectRequest(request, now: 0)) == (host != "dns.google"), "\(host)")
    }
    for target in ["/resolve", "/resolve?name=a..b", "/resolve?name=a&type=FOO"] { #expect(ask(target).status == 400) }
  }
}

@Suite struct `RFC 8484` {
  private let vector = Vectors.all.rfc8484
  private let zone = service("www.example.com. 128 A 192.0.2.1")

  @Test func `GET answers the vector's query with the vector's message`() {
    let reply = ask(WireFormat(), "/dns-query?dns=\(vector.dns_param)", of: zone)
    #expect(reply.contentType == vector.content_type)
    #expect(reply.fields == [HTTPField("Cache-Control", vector.cache_control)])
    #expect(Hexadecimal.encode(reply.body) == vector.response_hex)
  }

  @Test func `POST answers the same, and refuses other media types with 415`() {
    func post(_ type: String) -> DialectReply {
      let request = HTTPServerRequest(
        method: .post, target: "/dns-query", fields: [HTTPField("content-type", type)],
        body: octets(vector.query_hex))
      return WireFormat().reply(to: DialectRequest(request, now: 0), from: zone)
    }
    #expect(Hexadecimal.encode(post("application/dns-message").body) == vector.response_hex)
    #expect(post("text/plain").status == 415)
  }

  @Test func `max-age is the smallest TTL, or that of the SOA record, or absent`() throws {
    func freshness(_ owner: String, age: UInt32? = nil) throws -> [HTTPField] {
      let query = try Message.query(Question(name: name(owner), type: .a), id: 0).compose()
      var options = ServiceOptions()
      options.age = age
      let request = HTTPServerRequest(
        method: .post, target: "/dns-query", fields: [HTTPField("Content-Type", "application/dns-message")],
        body: query)
      return WireFormat().reply(to: DialectRequest(request, now: 0), from: service(options: options)).fields
    }
    #expect(try freshness("ttl-7.example", age: 3) == [.init("Cache-Control", "max-age=7"), .init("Age", "3")])
    #expect(try freshness("missing.example.com") == [.init("Cache-Control", "max-age=900")])
    #expect(try freshness("servfail.example") == [.init("Cache-Control", "max-age=0")])
  }

  @Test(arguments: ["/dns-query", "/dns-query?dns=", "/dns-query?dns=AAAB", "/dns-query?dns=AAA=", "/dns-query?dns=A"])
  func `an invalid query gets 400`(target: String) {
    #expect(ask(WireFormat(), target).status == 400)
  }

  @Test func `base64url is read strictly`() {
    #expect(Base64URL.decode("-_8") == [0xFB, 0xFF])
    #expect(Base64URL.decode("-_9") == nil)
    #expect(Base64URL.decode("+/8") == nil)
    #expect(Base64URL.decode("AAAAA") == nil)
  }
}

@Suite struct `Dialects are told apart` {
  private func dialect(_ target: String, _ fields: HTTPField...) -> String? {
    let transfer = DialectRequest(HTTPServerRequest(target: target, fields: fields), now: 0)
    return allDialects.first { $0.claims(transfer) }?.name
  }

  @Test func `dialects are distinguished by path, parameters, host and Accept`() {
    #expect(dialect("/resolve?name=a") == "google")
    #expect(dialect("/resolve?name=a&uid=1") == "alidns")
    #expect(dialect("/resolve?name=a", HTTPField("host", "dns.alidns.com")) == "alidns")
    #expect(dialect("/resolve?name=a", HTTPField("Host", "doh.pub:8443")) == "doh.pub")
    #expect(dialect("/dns-query?name=a", HTTPField("Host", "doh.pub"), json) == "doh.pub")
    #expect(dialect("/dns-query?dns=a", HTTPField("Host", "doh.pub")) == "rfc8484")
    #expect(dialect("/dns-query?name=a", json) == "cloudflare")
    #expect(dialect("/dns-query?dns=a") == "rfc8484")
    #expect(dialect("/d?dn=a") == "tencent")
    for path in ["/v2/d", "/1/d", "/1/sign_d", "/1/resolve", "/1/sign_resolve", "/1/ss"] {
      #expect(dialect(path) == "emas")
    }
    #expect(dialect("/table") == "table")
    for path in ["/other", "/1/other", "//d", "/1/2/d", "/1/d/"] { #expect(dialect(path) == nil) }
  }
}
