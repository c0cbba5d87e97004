// VolcengineTests.swift -- Volcengine's dialect: signatures, forms of replies, refusals, prices.

import DNSWire
import HTTPMessage
import HTTPServer
import Testing

@testable import httpdns_simulator

private let zone = """
  $ORIGIN example.com.
  @      30  SOA ns1.example.com. hostmaster.example.com. 2024010101 3600 600 604800 60
  www    120 A 192.0.2.1
  www    52  AAAA 2001:db8::1
  v4only 120 A 192.0.2.4
  """

/// A signed request.
private func resolve(
  _ names: String, _ more: String = "&type=0", of service: Service = service(zone), timestamp: String = "1700000600000",
  secret: String = "VolcSecret01", account: String = "2100000001", isSecure: Bool = true
) -> DialectReply {
  let query = "domain=\(names)&account_id=\(account)&timestamp=\(timestamp)\(more)"
  let sign = Volcengine.signature(Parameters(query: query), secret)
  return ask(Volcengine(), "/resolve?\(query)&sign=\(sign)", of: service, isSecure: isSecure)
}

@Suite struct `Volcengine's dialect` {
  @Test func `the signature is the published one`() {
    let query = "domain=www.a.com,www.b.com&account_id=1023&timestamp=1566808387000"
    #expect(
      Volcengine.signature(Parameters(query: query), "QlgAuFMwNUwN") == "4b00a808d49a334991b7e50d324a9287")
  }

  @Test func `one name is an object with the addresses of both families`() {
    #expect(
      resolve("www.example.com").text
        == #"{"cip":"198.51.100.7","host":"www.example.com","ips":["2001:db8::1","192.0.2.1"],"ttl":52}"#)
    #expect(resolve("www.example.com", "&type=1").text.contains(#""ips":["192.0.2.1"],"ttl":120"#))
    #expect(resolve("www.example.com", "&type=2").text.contains(#""ips":["2001:db8::1"],"ttl":52"#))
    #expect(resolve("nope.example.com").text.contains(#""ips":[],"ttl":60"#))
    #expect(resolve("www.example.com", "&ip=203.0.113.9&type=0").subnet == "203.0.113.9")
  }

  @Test func `several names are a list, in an object or alone`() throws {
    let list =
      #"[{"host":"v4only.example.com","ips":["192.0.2.4"],"ttl":120},{"host":"nope.example.com","ips":[],"ttl":60}]"#
    #expect(
      resolve("v4only.example.com,nope.example.com").text == #"{"cip":"198.51.100.7","dns":\#(list)}"#)
    let array = try service(zone).with("volcengine-list=array")
    #expect(resolve("v4only.example.com,nope.example.com", of: array).text == list)
    #expect(resolve("v4only.example.com,nope.example.com").units == 10)
    #expect(resolve("v4only.example.com", isSecure: false).units == 1)
  }

  @Test func `a wrong signature, an old one and a name that is not listed are all 403`() throws {
    for reply in [
      resolve("www.example.com", secret: "Other"), resolve("www.example.com", account: "7"),
      resolve("www.example.com", timestamp: "1699999999999"), resolve("www.example.com", timestamp: "soon"),
    ] {
      #expect(reply.status == 403 && reply.isVerified == false && reply.questions.count == 2)
    }
    #expect(resolve("www.example.com", timestamp: "1700000000000").status == 200)
    let listed = try service(zone).with("not-listed=v4only.example.com")
    let refused = resolve("www.example.com,v4only.example.com", of: listed)
    #expect(refused.status == 403 && refused.isVerified == true && refused.text == "Forbidden")
    let empty = try listed.with("volcengine-unlisted=true")
    #expect(resolve("v4only.example.com", of: empty).text.contains(#""ips":[]"#))
  }

  @Test(arguments: ["domain=", "domain=a..b", "domain=a,b,c,d,e,f,g,h,i,j,k", "domain=a&type=28"])
  func `a malformed request is 400`(query: String) {
    #expect(ask(Volcengine(), "/resolve?account_id=2100000001&\(query)").status == 400)
  }

  @Test func `it is known by its parameters, and other methods are refused`() {
    func claims(_ target: String) -> Bool {
      let request = HTTPServerRequest(method: .get, target: target, fields: [], body: [], peer: nil)
      return Volcengine().claims(DialectRequest(request, now: 0))
    }
    #expect(claims("/resolve?domain=a&account_id=1") && !claims("/resolve?name=a") && !claims("/resolve?domain=a"))
    #expect(ask(Volcengine(), "/resolve?domain=a&account_id=1", method: .post).status == 405)
  }
}
