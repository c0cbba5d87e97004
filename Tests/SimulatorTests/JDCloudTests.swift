// JDCloudTests.swift -- JD Cloud's dialect: signatures, forms of replies, refusals, prices.

import DNSWire
import HTTPMessage
import HTTPServer
import Testing

@testable import httpdns_simulator

/// A signed request.
private func resolve(
  _ names: String, _ type: String = "A", of service: Service = service(addressZone), t: String = "1700000600",
  key: String = "JdKey01", account: String = "123456"
) -> DialectReply {
  let signature = JDCloud.signature(Array(names.utf8), key, Array(t.utf8))
  return ask(JDCloud(), "/v1/\(account)/d?dn=\(names)&qt=\(type)&t=\(t)&s=\(signature)", of: service)
}

@Suite struct `JD Cloud's dialect` {
  @Test func `the signature is the published one`() {
    #expect(
      JDCloud.signature(Array("www.jdcloud.com".utf8), "testKey", Array("1544612446".utf8))
        == "fec6da1a46911f77a455908a124f4142")
  }

  @Test func `a reply has an element for each name, with blanks around the addresses`() throws {
    #expect(
      resolve("www.example.com,nope.example.com").text
        == #"{"ret_code":0,"msg":"Success","data":[{"domain":"www.example.com","ips":[" 192.0.2.1 "," 192.0.2.2 "],"ttl":120},"#
        + #"{"domain":"nope.example.com","ips":[],"ttl":60}]}"#)
    #expect(resolve("www.example.com", "AAAA").text.contains(#""ips":[" 2001:db8::1 "],"ttl":52"#))
    let bare = try service(addressZone).with("jdcloud-blanks=false")
    #expect(resolve("www.example.com", of: bare).text.contains(#"["192.0.2.1","192.0.2.2"]"#))
    #expect(resolve("www.example.com,nope.example.com").units == 2)
  }

  @Test func `wrong signatures and those out of time are refused`() throws {
    #expect(resolve("www.example.com", key: "Other").status == 401)
    #expect(resolve("www.example.com", account: "7").text.hasPrefix(#"{"ret_code":10003,"#))
    for time in ["1699999999", "1700086401"] {
      let reply = resolve("www.example.com", t: time)
      #expect(reply.status == 403 && reply.isVerified == false && reply.text.hasPrefix(#"{"ret_code":10004,"#))
    }
    for time in ["1700000000", "1700086400"] { #expect(resolve("www.example.com", t: time).status == 200) }
    let other = try service(addressZone).with("jdcloud-refusal-status=400")
    #expect(resolve("www.example.com", of: other, key: "Other").status == 400)
  }

  @Test func `a name that is not listed is the documented error`() throws {
    let reply = resolve("www.example.com,b.example", of: try service(addressZone).with("not-listed=b.example"))
    #expect(
      reply.text == #"{"ret_code":10015,"msg":"Query domain is not in access domain list","data":"b.example"}"#)
    #expect(reply.status == 403 && reply.isVerified == true && reply.questions.count == 2 && reply.units == 2)
  }

  @Test(arguments: ["dn=a", "dn=&qt=A", "dn=a..b&qt=A", "dn=a&qt=MX", "dn=a,b,c,d,e,f,g,h,i,j,k&qt=A"])
  func `a malformed request is 400`(query: String) {
    #expect(ask(JDCloud(), "/v1/123456/d?\(query)").status == 400)
  }

  @Test func `it is known by its path, and other methods are refused`() {
    for (path, isOurs) in [("/v1/1/d", true), ("/v1/d", false), ("/v2/d", false), ("/v1//d", false), ("/1/d", false)] {
      let request = HTTPServerRequest(method: .get, target: path, fields: [], body: [], peer: nil)
      #expect(JDCloud().claims(DialectRequest(request, now: 0)) == isOurs, "\(path)")
    }
    #expect(ask(JDCloud(), "/v1/1/d?dn=a", method: .post).status == 405)
  }
}
