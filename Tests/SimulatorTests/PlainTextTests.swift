// PlainTextTests.swift -- the dialect of plain text: both forms, and what is no question.

import DNSWire
import HTTPMessage
import Testing

@testable import httpdns_simulator

@Suite struct `The dialect of plain text` {
  private func get(_ query: String, of service: Service = service(addressZone)) -> DialectReply {
    ask(PlainText(), "/text?\(query)", of: service)
  }

  @Test func `a reply has one TTL or one for each address, as it was asked for`() {
    #expect(get("dn=www.example.com&ttl=1").text == "192.0.2.1;192.0.2.2,120")
    #expect(get("dn=www.example.com&type=a&ttl=y").text == "192.0.2.1,120;192.0.2.2,120")
    #expect(get("dn=www.example.com&ip=198.51.100.7&ttl=y&type=AAAA").text == "2001:db8::1,52")
    #expect(get("dn=www.example.com").text == "192.0.2.1;192.0.2.2")
    let reply = get("dn=WWW.example.com&ttl=1&ip=198.51.100.7")
    #expect(reply.subnet == "198.51.100.7" && reply.units == 0 && reply.isVerified == nil)
    #expect(reply.questions == [Question(name: name("www.example.com"), type: .a)])
  }

  @Test func `a name without addresses, and one that is not listed, have an empty reply`() throws {
    for query in ["dn=nope.example.com&ttl=1", "dn=nope.example.com&type=aaaa&ttl=y"] {
      let reply = get(query)
      #expect(reply.status == 200 && reply.body.isEmpty && reply.questions.count == 1)
    }
    let unlisted = try service(addressZone).with("not-listed=www.example.com")
    #expect(get("dn=www.example.com&ttl=1", of: unlisted).body.isEmpty)
  }

  @Test(arguments: ["", "dn=", "dn=a..b", "dn=a,b", "dn=a&type=28", "dn=a&type=MX"])
  func `a malformed request is 400`(query: String) {
    #expect(get(query).status == 400)
    #expect(ask(PlainText(), "/text?dn=a", method: .post).status == 405)
  }
}
