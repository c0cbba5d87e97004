// BaiduTests.swift -- Baidu's dialect: signatures, forms of replies, refusals, prices.

import DNSWire
import HTTPMessage
import HTTPServer
import Testing

@testable import httpdns_simulator

private let zone = """
  $ORIGIN example.com.
  @      30  SOA ns1.example.com. hostmaster.example.com. 2024010101 3600 600 604800 60
  www    120 A 192.0.2.1
  www    120 A 192.0.2.2
  www    60  AAAA 2001:db8::1
  v4only 120 A 192.0.2.4
  """

/// A signed request; the signature is that of the document's published sample for these texts.
private func resolve(
  _ names: String, _ more: String = "&type=dual_stack", of service: Service = service(zone), t: String = "1700000300",
  secret: String = "BaiduSecret01", account: String = "100001", isSecure: Bool = true
) -> DialectReply {
  let sign = Baidu.signature(Array(names.utf8), secret, Array(t.utf8))
  return ask(
    Baidu(), "/v4/resolve?account_id=\(account)&dn=\(names)&sign=\(sign)&t=\(t)\(more)", of: service, isSecure: isSecure
  )
}

@Suite struct `Baidu's dialect` {
  @Test func `the signature is the published one`() {
    #expect(
      Baidu.signature(Array("www.baidu.com".utf8), "1234567890", Array("1513602734".utf8))
        == "9d4eac35c33b8fa1610476ff1532643d")
  }

  @Test func `a reply has each name with each family that was asked for`() {
    #expect(
      resolve("www.example.com").text
        == #"{"clientip":"198.51.100.7","data":{"www.example.com":{"#
        + #""ipv4":{"ip":["192.0.2.1","192.0.2.2"],"ttl":120,"msg":"ok"},"#
        + #""ipv6":{"ip":["2001:db8::1"],"ttl":60,"msg":"ok"}}},"msg":"ok","timestamp":1700000000}"#)
    #expect(!resolve("www.example.com", "&type=ipv4").text.contains("ipv6"))
    #expect(!resolve("www.example.com", "&type=ipv6").text.contains("ipv4"))
    #expect(!resolve("www.example.com", "").text.contains("ipv6"))
    let two = resolve("v4only.example.com,nope.example.com")
    #expect(
      two.text.contains(#""v4only.example.com":{"ipv4":{"ip":["192.0.2.4"],"ttl":120,"msg":"ok"},"ipv6":{"ip":[]"#))
    #expect(two.text.contains(#""nope.example.com":{"ipv4":{"ip":[],"ttl":60,"msg":"ok"}"#))
    #expect(two.questions.count == 4 && two.isVerified == true)
  }

  @Test func `a name costs 5 over https and 1 over http`() {
    #expect(resolve("www.example.com,v4only.example.com").units == 10)
    #expect(resolve("www.example.com", isSecure: false).units == 1)
    #expect(resolve("www.example.com", secret: "Other").units == 5)
  }

  @Test func `wrong signatures and old ones are refused, with the time`() throws {
    let wrong = resolve("www.example.com", secret: "Other")
    #expect(wrong.status == 401 && wrong.isVerified == false)
    #expect(wrong.text == #"{"msg":"SignatureError","timestamp":1700000000}"#)
    #expect(resolve("www.example.com", account: "7").status == 401)
    #expect(resolve("www.example.com", t: "soon").status == 401)
    let old = resolve("www.example.com", t: "1699999999")
    #expect(old.status == 403 && old.text == #"{"msg":"SignatureExpired","timestamp":1700000000}"#)
    #expect(resolve("www.example.com", t: "1700000000").status == 200)
    let other = try service(zone).with("baidu-expired-status=200&baidu-refusal-status=403")
    #expect(resolve("www.example.com", of: other, t: "1").status == 200)
    #expect(resolve("www.example.com", of: other, secret: "x").status == 403)
  }

  @Test func `a name that is not listed is empty, left out or refused`() throws {
    func reply(_ form: String) throws -> DialectReply {
      resolve(
        "www.example.com,v4only.example.com",
        of: try service(zone).with("not-listed=v4only.example.com&baidu-unlisted=\(form)"))
    }
    #expect(try reply("empty").text.contains(#""v4only.example.com":{"ipv4":{"ip":[]"#))
    #expect(try !reply("omitted").text.contains("v4only"))
    #expect(try reply("refused").status == 403 && reply("refused").isVerified == true)
  }

  @Test(arguments: [
    "dn=", "dn=a..b", "dn=a,b,c,d,e,f,g,h,i,j,k", "x=y", "dn=a&type=mx",
  ])
  func `a malformed request is 400`(query: String) {
    #expect(ask(Baidu(), "/v4/resolve?account_id=100001&\(query)").status == 400)
  }

  @Test func `other methods are refused, and the account never shows its secret`() {
    #expect(ask(Baidu(), "/v4/resolve?dn=a", method: .post).status == 405)
    var dumped = ""
    dump(service(), to: &dumped)
    #expect(!dumped.contains("BaiduSecret01") && !"\(service())".contains("BaiduSecret01"))
  }
}
