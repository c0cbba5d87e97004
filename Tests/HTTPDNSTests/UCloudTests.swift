// UCloudTests.swift -- UCloud HTTPDNS: the vectors, what is sent, what replies mean, and the list of nodes.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

/// The part of Data/provider_vectors_more.json that these tests read.
private struct UCloudVectors: Decodable {
  struct Request: Decodable {
    let `case`, auth_id, auth_secret, string_to_hash, url: String
    let parameters, headers: [String: String]
  }
  struct Body: Decodable {
    let `case`: String
    let http: Int
    let body: String
  }
  struct UCloud: Decodable {
    let vectors: [Request]
    let responses: [Body]
  }
  let ucloud: UCloud

  static let all = vectors(UCloudVectors.self, in: "provider_vectors_more.json").ucloud
}

let ucloud = UCloudDialect(account: .init(id: "abc-0001", secret: Secret("UcloudSecret01")), appID: "com.example.app")

@Suite struct UCloudTests {
  private let vectors = UCloudVectors.all
  private let www = "www.example.com"
  private let nodes = UCloudNodes(
    account: .init(id: "abc-0001", secret: Secret("UcloudSecret01")), appID: "com.example.app")

  /// A reply to a question about www.example.com.
  private func outcome(
    _ response: HTTPResponse, _ type: RecordType = .a
  ) -> Result<HTTPDNSAnswer, HTTPDNSFailure> {
    Result { () throws(HTTPDNSFailure) in try ucloud.answer(to: question(www, type), from: response) }
  }

  private func refusal(_ status: Int, _ code: String) -> HTTPResponse {
    json(#"{"status":\#(status),"code":"\#(code)","message":"x"}"#, status: status)
  }

  private func listed(_ body: String) -> Result<[ListedServer], HTTPDNSFailure> {
    Result { () throws(HTTPDNSFailure) in try nodes.list(from: json(body)).servers }
  }

  private func node(_ host: String, _ port: UInt16? = nil) -> ListedServer {
    ListedServer(IPAddress(text: host).map { .address($0) } ?? .name(DomainName(text: host)!), port: port)
  }

  @Test func `targets and signatures are the vectors' octet by octet`() throws {
    #expect(vectors.vectors.count == 5)
    for vector in vectors.vectors {
      #expect(
        "MD5 \(Hexadecimal.encode(Digest.md5(Array(vector.string_to_hash.utf8))))" == vector.headers["Authorization"])
      let time = try #require(vector.parameters["timestamp"].flatMap { Int64($0) })
      let resource = vector.url.contains("/service?") ? "service" : "resolve"
      let requests = UCloudRequest(
        account: .init(id: vector.auth_id, secret: Secret(vector.auth_secret)), appID: vector.parameters["app_id"])
      let values = vector.parameters.sorted { $0.key < $1.key }.map(\.value)
      #expect("MD5 \(requests.signature(of: values))" == vector.headers["Authorization"], "\(vector.case)")
      // Not sent.
      if vector.parameters["ip"] != nil { continue }
      let request = requests.get(
        resource, host: vector.parameters["host"], type: vector.parameters["type"], unixTime: time)
      #expect("http://httpdns.ucloud.cn\(request.target)" == vector.url, "\(vector.case)")
      #expect(request.fields.map(\.value) == [vector.headers["Authorization"]], "\(vector.case)")
      #expect(request.method == .get && request.body.isEmpty && request.fields.map(\.name) == ["Authorization"])
    }
    // The forms that are sent.
    let urls = [RecordType.a, .aaaa].map { ucloud.request(for: question(www, $0), unixTime: 1_700_000_000).target }
    #expect(
      urls + [nodes.request(unixTime: 1_700_000_000).target]
        == [0, 1, 3].map { String(vectors.vectors[$0].url.dropFirst("http://httpdns.ucloud.cn".count)) })
  }

  @Test func `white space around an address does not count, another control character does`() throws {
    let list = #"["\t192.0.2.1\n","\b192.0.2.2","192.0.2.3\u0001"]"#
    let reply = json(#"{"host":"www.example.com","ip_list":\#(list),"ttl":60}"#)
    #expect(try outcome(reply).get().answers == [a(www, 60, "192.0.2.1")])
  }

  @Test func `replies are read as the vectors mean them`() throws {
    let expected: [String: Result<HTTPDNSAnswer, HTTPDNSFailure>] = [
      "resolve": positive(a(www, 600, "192.0.2.1")),
      "bad signature or old timestamp": .failure(.authentication),
      "name not in the account's list": noData(), "no record": noData(),
      "upstream DNS failed (same code, other message)": noData(),
    ]
    #expect(vectors.responses.count == expected.count + 1)
    for vector in vectors.responses where vector.case != "service" {
      let result = try #require(expected[vector.case], "\(vector.case)")
      #expect(outcome(json(vector.body, status: vector.http)) == result, "\(vector.case)")
    }
    let service = try #require(vectors.responses.first { $0.case == "service" })
    #expect(listed(service.body) == .success([node("192.0.2.210"), node("192.0.2.211")]))
  }

  @Test func `a request has one name, one family and no client address`() {
    for subnet in [nil, "198.51.100.0/24", "2001:db8::/56"] {
      #expect(
        ucloud.request(for: question("WWW.Example.com.", .aaaa, subnet: subnet), unixTime: 7).target
          == "/abc-0001/resolve?timestamp=7&host=www.example.com&type=6&app_id=com.example.app")
    }
    let plain = UCloudDialect(account: .init(id: "a/b?c", secret: Secret("s")))
    let request = plain.request(for: question(www), unixTime: 7)
    #expect(request.target == "/a%2Fb%3Fc/resolve?timestamp=7&host=www.example.com&type=4")
    #expect(request.fields[0].value == "MD5 " + Hexadecimal.encode(Digest.md5(Array("www.example.com-7-4-s".utf8))))
    #expect(ucloud.billing.units(answers: 0) == 1 && ucloud.billing.isBilled && ucloud.billing.isEstimate)
    #expect("\(ucloud) \(nodes)" == "ucloud ucloud nodes")
    #expect(Mirror(reflecting: ucloud).children.isEmpty && Mirror(reflecting: nodes).children.isEmpty)
  }

  @Test func `addresses of plain names are served and nothing else`() {
    #expect(ucloud.serves(question(www)) && ucloud.serves(question("_a-1.example", .aaaa)))
    for type in [RecordType.txt, .https, .cname, RecordType(255)] { #expect(!ucloud.serves(question(www, type))) }
    for name in [".", "a,b.example", "a&b.example", "*.example"] { #expect(!ucloud.serves(question(name))) }
  }

  @Test(arguments: [
    (#"{"host":"www.example.com","ip_list":["192.0.2.1","192.0.2.2"],"ttl":7}"#, ["192.0.2.1", "192.0.2.2"]),
    (#"{"ip_list":[" 192.0.2.1 ","x",null,"2001:db8::1"],"ttl":"7"}"#, ["192.0.2.1"]),
    (#"{"ttl":7,"host":"WWW.example.com.","new":{},"ip_list":["192.0.2.1"]}"#, ["192.0.2.1"]),
    (#"{"host":"www.example.com","ip_list":[],"ttl":7}"#, []), (#"{"host":"www.example.com","ip_list":null}"#, []),
    (#"{"host":"www.example.com","ip_list":["2001:db8::1"],"ttl":7}"#, []), (#"{"ip_list":[]}"#, []),
  ])
  func `what counts are addresses of the asked name and family`(body: String, addresses: [String]) {
    let answer = HTTPDNSAnswer(responseCode: .noError, answers: addresses.map { a(www, 7, $0) })
    #expect(outcome(json(body)) == (addresses.isEmpty ? noData() : .success(answer)))
  }

  @Test(arguments: [429, 500, 503]) func `a code counts in no fault of the server`(status: Int) {
    for code in ["HOST_FORBIDDEN", "FAIL_TO_RESOLVE", "UNAUTHORIZED"] {
      #expect(outcome(refusal(status, code)) == .failure(.status(status)))
      #expect(ucloud.errorCode(in: refusal(status, code)) == code)
    }
  }

  @Test(arguments: [400, 401, 403, 404]) func `a code counts in any refusal`(status: Int) {
    for code in ["HOST_FORBIDDEN", "FAIL_TO_RESOLVE"] { #expect(outcome(refusal(status, code), .aaaa) == noData()) }
    #expect(outcome(refusal(status, "UNAUTHORIZED")) == .failure(.authentication))
    for other in [
      refusal(status, "OTHER"), json("{}", status: status), json("", status: status), json("<p>", status: status),
    ] {
      #expect(outcome(other) == .failure(.status(status)))
    }
    for code in ["UNAUTHORIZED", "OTHER"] { #expect(ucloud.errorCode(in: refusal(status, code)) == code) }
    for body in ["{}", "", #"{"code":"a\nb"}"#, #"{"code":7}"#] {
      #expect(ucloud.errorCode(in: json(body, status: status)) == nil)
    }
  }

  @Test func `a bare 404 is a wrong path, and other statuses say what they always say`() {
    #expect(HTTPDNSFailure.status(404).kind == .badPath)
    for status in [302, 405, 429, 500, 503] {
      #expect(outcome(json("{}", status: status)) == .failure(.status(status)))
    }
    var busy = json("", status: 429)
    busy.retryAfter = .seconds(5)
    #expect(outcome(busy) == .failure(.status(429, retryAfter: .seconds(5))))
    #expect(ucloud.learnsTimeInTheClear && ucloud.unixTime(in: refusal(401, "UNAUTHORIZED")) == nil)
  }

  @Test(arguments: [
    ("{}", HTTPDNSFailure.unreadable(.shape("ip_list"))), ("", .unreadable(.syntax)),
    ("[]", .unreadable(.shape("ip_list"))),
    (#"{"status":401,"code":"UNAUTHORIZED","message":"x"}"#, .unreadable(.shape("ip_list"))),
    (#"{"status":403,"code":"HOST_FORBIDDEN","message":"x"}"#, .unreadable(.shape("ip_list"))),
    (#"{"host":"www.example.com","ip_list":"192.0.2.1","ttl":1}"#, .unreadable(.shape("ip_list"))),
    (#"{"host":"www.example.com","status":401,"code":"UNAUTHORIZED"}"#, .unreadable(.shape("ip_list"))),
    (#"{"host":7,"ip_list":[],"ttl":1}"#, .unreadable(.shape("ip_list"))),
    (#"{"host":"www.example.com","ip_list":["x"],"ttl":1}"#, .unreadable(.rdata)),
    (#"{"host":"www.example.com","ip_list":["192.0.2.1"]}"#, .unreadable(.shape("ttl"))),
    (#"{"host":"b.example","ip_list":["192.0.2.1"],"ttl":1}"#, .wrongQuestion),
    (#"{"host":"www.example.com","ip_list":[],"ip_list":[]}"#, .unreadable(.syntax)),
    (#"{"host":"www.example.com","ip_list":[]}{}"#, .unreadable(.syntax)),
  ])
  func `a body without an answer is the failure`(body: String, expected: HTTPDNSFailure) {
    #expect(outcome(json(body)) == .failure(expected))
  }

  @Test(arguments: [
    (
      #"{"best_service_node":"http://192.0.2.1","service_node_list":["http://192.0.2.2/","http://192.0.2.1"]}"#,
      ["192.0.2.1", "192.0.2.2"]
    ),
    (#"{"service_node_list":["https://192.0.2.2:443","http://192.0.2.2:80"]}"#, ["192.0.2.2"]),
    (#"{"best_service_node":"http://[2001:db8::1]"}"#, ["2001:db8::1"]),
    (#"{"best_service_node":"http://node.example","service_node_list":null}"#, ["node.example"]),
    (
      #"{"best_service_node":7,"service_node_list":[null,"","x","ftp://192.0.2.1","http://a@b.example","http://192.0.2.3"]}"#,
      ["192.0.2.3"]
    ),
    (#"{"service_node_list":["http://192.0.2.1/path","http://192.0.2.1?q","http://192.0.2.4"]}"#, ["192.0.2.4"]),
  ])
  func `the best node comes first, each once, and what is no node is left out`(body: String, hosts: [String]) {
    #expect(listed(body) == .success(hosts.map { node($0) }))
  }

  @Test func `a node may have a port of its own, and no more than sixteen count`() throws {
    #expect(listed(#"{"best_service_node":"http://192.0.2.1:8080"}"#) == .success([node("192.0.2.1", 8080)]))
    let many = (1...20).map { "\"http://192.0.2.\($0)\"" }.joined(separator: ",")
    #expect(try listed("{\"service_node_list\":[\(many)]}").get().count == 16)
    #expect(try nodes.list(from: json(#"{"best_service_node":"http://192.0.2.1"}"#)).lifetime == .seconds(3600))
    #expect(nodes.keepsConfiguredServers && nodes.hasOwnHosts && !nodes.isAlwaysEncrypted)
  }

  @Test(arguments: [
    ("{}", 200, HTTPDNSFailure.unreadable(.noServers(.noError))),
    (#"{"service_node_list":[]}"#, 200, .unreadable(.noServers(.noError))),
    ("<p>", 200, .unreadable(.syntax)), (#"{"status":401,"code":"UNAUTHORIZED"}"#, 401, .authentication),
    (#"{"code":"UNAUTHORIZED"}"#, 200, .unreadable(.noServers(.noError))), ("", 404, .status(404)),
    ("", 500, .status(500)),
  ])
  func `without a node there is no list`(body: String, status: Int, expected: HTTPDNSFailure) {
    #expect(throws: expected) { try nodes.list(from: json(body, status: status)) }
  }
}
