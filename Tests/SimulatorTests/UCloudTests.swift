// UCloudTests.swift -- UCloud's dialect: signatures, forms of replies, refusals, nodes.

import DNSWire
import EventLoop
import HTTPMessage
import HTTPServer
import Testing

@testable import httpdns_simulator

/// A signed request.
private func get(
  _ resource: String, _ query: String, of service: Service = service(addressZone), timestamp: String = "1700000000",
  secret: String = "UcloudSecret01", account: String = "abc-0001", isSecure: Bool = false
) -> DialectReply {
  let query = "timestamp=\(timestamp)\(query.isEmpty ? "" : "&")\(query)"
  let signature = UCloud.signature(Parameters(query: query), secret)
  return ask(
    UCloud(), "/\(account)/\(resource)?\(query)", header: [HTTPField("Authorization", "MD5 \(signature)")], of: service,
    isSecure: isSecure)
}

@Suite struct `UCloud's dialect` {
  @Test func `the signature is that of the document's rule`() {
    // printf %s a1-b1-c1-Secret | md5sum
    #expect(UCloud.signature(Parameters(query: "b=b1&c=c1&a=a1"), "Secret") == "0067fc0e0243fde41944572c7fb1091b")
  }

  @Test func `a reply has the addresses of one family`() {
    #expect(
      get("resolve", "host=www.example.com").text
        == #"{"host":"www.example.com","client_ip":"198.51.100.7","ip_list":["192.0.2.1","192.0.2.2"],"ttl":120}"#)
    #expect(get("resolve", "host=www.example.com&type=6").text.contains(#""ip_list":["2001:db8::1"],"ttl":52"#))
    let reply = get("resolve", "host=WWW.example.com&type=4")
    #expect(reply.units == 1 && reply.isVerified == true && reply.questions.count == 1 && reply.status == 200)
  }

  @Test(arguments: ["resolve", "service"]) func `wrong signatures and those out of time are refused`(resource: String) {
    let query = resource == "resolve" ? "host=www.example.com" : ""
    let refusals = [
      get(resource, query, secret: "Other"), get(resource, query, account: "x"),
      get(resource, query, timestamp: "1699999939"), get(resource, query, timestamp: "1700000061"),
      get(resource, query, timestamp: "now"),
    ]
    for reply in refusals {
      #expect(reply.text == #"{"status":401,"code":"UNAUTHORIZED","message":"request is unauthorized"}"#)
      #expect(reply.status == 401 && reply.isVerified == false)
    }
    for time in ["1699999940", "1700000060"] { #expect(get(resource, query, timestamp: time).status == 200) }
    #expect(ask(UCloud(), "/abc-0001/\(resource)?timestamp=1700000000&\(query)").status == 401)
  }

  @Test func `an application's account wants the application named`() throws {
    let service = try service(addressZone).with("ucloud-app=com.example.app")
    for resource in ["resolve", "service"] {
      let host = resource == "resolve" ? "host=www.example.com&" : ""
      #expect(get(resource, "\(host)app_id=com.example.app", of: service).status == 200)
      #expect(get(resource, "\(host)app_id=other", of: service).status == 401)
      #expect(get(resource, String(host.dropLast()), of: service).status == 401)
    }
  }

  @Test func `the document's errors for names have their statuses and words`() throws {
    let unlisted = get("resolve", "host=b.example", of: try service(addressZone).with("not-listed=b.example"))
    #expect(unlisted.text == #"{"status":403,"code":"HOST_FORBIDDEN","message":"host resolving is forbidden"}"#)
    #expect(unlisted.status == 403 && unlisted.isVerified == true && unlisted.units == 1)
    let missing = get("resolve", "host=nope.example.com&type=6")
    #expect(missing.text == #"{"status":404,"code":"FAIL_TO_RESOLVE","message":"record cannot be found"}"#)
    #expect(missing.status == 404 && missing.units == 1)
    let failing = try service(addressZone).with("ucloud-failing=true")
    #expect(get("resolve", "host=nope.example.com", of: failing).text.contains("fail to resolve the host"))
  }

  @Test func `the list has the simulator's addresses or chosen ones, the first as the best`() throws {
    var service = service(addressZone)
    service.plainAddresses = [SocketAddress(text: "127.0.0.1:8053")!]
    service.secureAddresses = [SocketAddress(text: "127.0.0.1:8443")!]
    #expect(
      get("service", "", of: service).text
        == #"{"auth_id":"abc-0001","client_ip":"198.51.100.7","best_service_node":"http://127.0.0.1:8053","#
        + #""service_node_list":["http://127.0.0.1:8053"]}"#)
    #expect(get("service", "", of: service, isSecure: true).text.contains(#"["https://127.0.0.1:8443"]"#))
    let chosen = try service.with("ucloud-nodes=192.0.2.1,2001:db8::1,[2001:db8::2]:80")
    #expect(
      get("service", "", of: chosen).text.contains(
        #"["http://192.0.2.1","http://[2001:db8::1]","http://[2001:db8::2]:80"]"#))
    #expect(get("service", "", of: service).units == 0 && get("service", "", of: service).questions.isEmpty)
  }

  @Test(arguments: ["", "host=", "host=a..b", "host=a,b", "host=a&type=28", "host=a&type=A"])
  func `a malformed request is 400`(query: String) {
    #expect(get("resolve", query).status == 400)
  }

  @Test func `it is known by path and time, and other methods are refused`() {
    for (target, isOurs) in [
      ("/a/resolve?timestamp=1", true), ("/a/service?timestamp=1", true), ("/a/resolve?host=b", false),
      ("/resolve?timestamp=1", false), ("//resolve?timestamp=1", false), ("/a/ss?timestamp=1", false),
    ] {
      let request = HTTPServerRequest(method: .get, target: target, fields: [], body: [], peer: nil)
      #expect(UCloud().claims(DialectRequest(request, now: 0)) == isOurs, "\(target)")
    }
    #expect(ask(UCloud(), "/a/resolve?timestamp=1", method: .post).status == 405)
  }
}
