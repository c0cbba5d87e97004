// DoHRequestTests.swift -- what requests over HTTP ask, and the status of those that ask nothing.

import DNSWire
import Glibc
import TestSupport
import Testing

@testable import Frontend

/// A request of a test, and what it comes to.
private struct Case: CustomTestStringConvertible {
  var method = "GET"
  var target = "/dns-query?dns=\(Case.query)"
  var host = "dns.example.com"
  var type = ""
  var length: Int?
  var isToken: @Sendable (String) -> Bool = { $0.isEmpty }

  /// A query in base64url.
  static let query = Base64URL.encode(RawQuery().octets)

  init(_ change: (inout Case) -> Void = { _ in }) { change(&self) }

  static func post(_ change: (inout Case) -> Void = { _ in }) -> Case {
    Case {
      ($0.method, $0.target, $0.type, $0.length) = ("POST", "/dns-query", "application/dns-message", 40)
      change(&$0)
    }
  }

  var testDescription: String { "\(method) \(target.prefix(60)) \(host) \(type) \(length.map(String.init) ?? "-")" }

  /// `message`, `body`, `json` with the query string, or the status.
  func outcome(_ site: DoHSite) -> String {
    var octets = Array(target.utf8)
    do throws(DoHRefusal) {
      return try octets.withUnsafeMutableBufferPointer { target throws(DoHRefusal) in
        try request(target, site) { request in
          switch request {
          case .message(let message): message.elementsEqual(RawQuery().octets) ? "message" : "another message"
          case .body: "body"
          case .json(let query): "json \(String(decoding: query, as: UTF8.self))"
          }
        }
      }
    } catch { return "\(error.status)" }
  }

  func request<Value>(
    _ target: UnsafeMutableBufferPointer<UInt8>, _ site: DoHSite, _ use: (DoHRequest) -> Value
  ) throws(DoHRefusal) -> Value {
    let (method, host, type) = (Array(method.utf8), Array(host.utf8), Array(type.utf8))
    return try method.withUnsafeBufferPointer { method throws(DoHRefusal) in
      try host.withUnsafeBufferPointer { host throws(DoHRefusal) in
        try type.withUnsafeBufferPointer { type throws(DoHRefusal) in
          let head = DoHRequestHead(
            method: method, target: target, host: host, contentType: type, contentLength: length)
          return use(try DoHRequest.read(head, to: site) { isToken(String(decoding: $0, as: UTF8.self)) })
        }
      }
    }
  }
}

@Suite struct `Requests over HTTP` {
  private let site = DoHSite(
    path: "/dns-query", hasJSON: true, name: DomainName(text: "dns.example.com"),
    addresses: ["192.0.2.53", "2001:db8::53"].map { IPAddress(text: $0)! }, isPlain: false)

  @Test(arguments: [
    (Case(), "message"),
    (Case { $0.target = "/dns-query?ct=application/dns-message&dns=\(Case.query)&x=1" }, "message"),
    (Case { $0.target = "/dns-query?dns=\(Case.query)&dns=!" }, "message"),
    (Case { $0.type = "text/plain" }, "message"),
    (Case { $0.target = "/dns-query" }, "400"), (Case { $0.target = "/dns-query?" }, "400"),
    (Case { $0.target = "/dns-query?DNS=\(Case.query)" }, "400"), (Case { $0.target = "/dns-query?dns" }, "400"),
    (Case { $0.target = "/dns-query?dns=" }, "400"), (Case { $0.target = "/dns-query?dns=AAAAAAAAAAAAAAA" }, "400"),
    (Case { $0.target += "=" }, "400"), (Case { $0.target += "%3D" }, "400"), (Case { $0.target += "+" }, "400"),
    // A response.
    (Case { $0.target = "/dns-query?dns=" + Base64URL.encode(RawQuery { $0.flags |= 0x8000 }.octets) }, "400"),
    (Case { $0.target = "/dns-query?dns=" + String(repeating: "A", count: 2730) }, "another message"),
    (Case { $0.target = "/dns-query?dns=" + String(repeating: "A", count: 2732) }, "414"),
    (Case { $0.target = "/dns-query?dns=" + String(repeating: "!", count: 2732) }, "414"),
  ]) private func `a GET has its message in the first dns`(example: Case, outcome: String) {
    #expect(example.outcome(site) == outcome)
  }

  @Test(arguments: [
    (Case.post(), "body"), (Case.post { $0.type = "Application/DNS-Message ;charset=x" }, "body"),
    (Case.post { $0.target += "?dns=ignored" }, "body"), (Case.post { $0.length = 0 }, "body"),
    (Case.post { $0.length = 65_535 }, "body"), (Case.post { $0.length = 65_536 }, "413"),
    (Case.post { $0.length = nil }, "411"), (Case.post { $0.type = "" }, "415"),
    (Case.post { $0.type = "application/dns-messages" }, "415"),
    (Case.post { $0.type = ";application/dns-message" }, "415"),
    (Case.post { $0.type = "application/x-www-form-urlencoded" }, "415"),
  ]) private func `a POST has its message in its body`(example: Case, outcome: String) {
    #expect(example.outcome(site) == outcome)
  }

  @Test(arguments: ["HEAD", "OPTIONS", "PUT", "get", "GETS", "POSTS", ""])
  func `another method is refused with those that are allowed`(method: String) {
    #expect(Case { $0.method = method }.outcome(site) == "405")
    #expect(Case { ($0.method, $0.target) = (method, "/resolve?name=x") }.outcome(site) == "405")
    #expect(DoHRefusal.wrongMethod.field?.value == "GET, POST")
    #expect(DoHRefusal.wrongMethodOfJSON.field?.value == "GET")
  }

  @Test func `the JSON interface takes GET, and exists only where it is on`() {
    let example = Case { $0.target = "/resolve?name=x&type=1" }
    #expect(example.outcome(site) == "json name=x&type=1")
    #expect(Case { $0.target = "/resolve" }.outcome(site) == "json ")
    #expect(Case.post { $0.target = "/resolve?name=x" }.outcome(site) == "405")
    let without = DoHSite(path: "/dns-query", hasJSON: false, name: nil, addresses: [], isPlain: false)
    #expect(example.outcome(without) == "404")
  }

  @Test(arguments: [
    "/", "", "/dns-quer?dns=\(Case.query)", "/dns-queryx?dns=\(Case.query)", "/DNS-query?dns=\(Case.query)",
    "/dns-query/?dns=\(Case.query)", "/dns-query//?dns=\(Case.query)", "/dns-query/token?dns=\(Case.query)",
    "/resolve/",
    "/resolve/token?name=x", "//dns-query?dns=\(Case.query)", "?dns=\(Case.query)",
  ]) func `another path does not exist`(target: String) { #expect(Case { $0.target = target }.outcome(site) == "404") }

  @Test func `with tokens a path needs a valid one`() {
    func outcome(_ target: String) -> String {
      Case {
        $0.target = target
        $0.isToken = { $0 == "phone-6f" }
      }.outcome(site)
    }
    #expect(outcome("/dns-query/phone-6f?dns=\(Case.query)") == "message")
    #expect(outcome("/resolve/phone-6f?name=x") == "json name=x")
    for token in ["", "/", "/phone-6", "/phone-6f/", "/Phone-6f", "/phone-6f/x", "//phone-6f"] {
      #expect(outcome("/dns-query\(token)?dns=\(Case.query)") == "404", "\(token)")
    }
  }

  @Test(arguments: [
    ("dns.example.com", true), ("DNS.Example.COM:8443", true), ("dns.example.com.", true),
    ("dns.example.com.:443", true),
    ("192.0.2.53", true), ("192.0.2.53:443", true), ("[2001:db8::53]", true), ("[2001:DB8:0::0053]:853", true),
    ("dns.example.com:", true), ("", false), (":443", false), ("dns.example.com:http", false), ("example.com", false),
    ("x.dns.example.com", false), ("dns.example.comx", false), ("user@dns.example.com", false), ("192.0.2.54", false),
    ("[192.0.2.53]", false), ("2001:db8::53", false), ("[2001:db8::54]", false), ("[2001:db8::53", false),
    ("[2001:db8::53]x", false), ("localhost", false), ("[dns.example.com]", false), ("192.0.2.53\0", false),
    (String(repeating: "1", count: 300), false),
  ]) func `with a name a request names it or an address of the server`(host: String, isServed: Bool) {
    #expect(Case { $0.host = host }.outcome(site) == (isServed ? "message" : "421"))
  }

  @Test func `a wildcard stands for all addresses of its family, and a mapped address for its IPv4 one`() {
    let name = DomainName(text: "dns.example.com")
    func outcome(_ addresses: [String], _ host: String) -> String {
      Case { $0.host = host }.outcome(
        DoHSite(
          path: "/dns-query", hasJSON: false, name: name, addresses: addresses.map { IPAddress(text: $0)! },
          isPlain: false))
    }
    #expect(outcome(["0.0.0.0"], "192.0.2.1") == "message")
    #expect(outcome(["0.0.0.0"], "[2001:db8::1]") == "421")
    #expect(outcome(["::"], "[2001:db8::1]:443") == "message")
    #expect(outcome(["::"], "192.0.2.1") == "421")
    #expect(outcome(["192.0.2.1"], "[::ffff:192.0.2.1]") == "message")
    #expect(outcome([], "192.0.2.1") == "421")
  }

  @Test func `without a name only listeners without TLS look at the host`() {
    func outcome(_ host: String, isPlain: Bool) -> String {
      Case { $0.host = host }.outcome(
        DoHSite(path: "/dns-query", hasJSON: false, name: nil, addresses: [], isPlain: isPlain))
    }
    for host in ["anything.example", "", "127.0.0.1"] { #expect(outcome(host, isPlain: false) == "message") }
    for host in ["127.0.0.1:8053", "localhost", "LOCALHOST:8053", "[::1]:8053", "192.0.2.9"] {
      #expect(outcome(host, isPlain: true) == "message", "\(host)")
    }
    for host in ["", "evil.example", "localhost.evil.example", "[localhost]"] {
      #expect(outcome(host, isPlain: true) == "421", "\(host)")
    }
  }

  @Test func `of several mistakes the first in the order of checks decides`() {
    var example = Case {
      ($0.method, $0.target, $0.host, $0.type) = ("PUT", "/x/token", "evil.example", "text/plain")
      $0.length = nil
    }
    var outcomes = [example.outcome(site)]
    example.host = "dns.example.com"
    outcomes.append(example.outcome(site))
    example.target = "/dns-query/token"
    outcomes.append(example.outcome(site))
    example.target = "/dns-query"
    outcomes.append(example.outcome(site))
    example.method = "POST"
    outcomes.append(example.outcome(site))
    example.type = "application/dns-message"
    outcomes.append(example.outcome(site))
    example.length = 100_000
    outcomes.append(example.outcome(site))
    example.length = 5
    outcomes.append(example.outcome(site))
    #expect(outcomes == ["421", "404", "404", "405", "415", "411", "413", "body"])
  }

  @Test func `a body is a query if it has a header without QR`() {
    func isQuery(_ octets: [UInt8]) -> Bool {
      octets.withUnsafeBufferPointer { message in
        do throws(DoHRefusal) {
          try DoHRequest.check(message)
          return true
        } catch {
          #expect(error == .noMessage && error.status == 400)
          return false
        }
      }
    }
    #expect(isQuery(RawQuery().octets))
    #expect(isQuery([UInt8](repeating: 0, count: 12)))
    #expect(!isQuery([UInt8](repeating: 0, count: 11)))
    #expect(!isQuery([]))
    #expect(!isQuery(RawQuery { $0.flags |= 0x8000 }.octets))
  }

  @Test(.enabled(if: AllocationTrap.isAvailable)) func `reading a request allocates nothing`() throws {
    func copy(_ octets: some Collection<UInt8>) -> UnsafeMutableBufferPointer<UInt8> {
      let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: octets.count)
      _ = memory.initialize(from: octets)
      return memory
    }
    let original = copy("/dns-query?dns=\(Case.query)".utf8)
    let target = copy(original)
    let (method, host) = (copy("GET".utf8), copy("[2001:db8::53]:443".utf8))
    let length = copy([0])
    defer { for memory in [original, target, method, host, length] { memory.deallocate() } }
    let site = site
    let run = {
      for _ in 0..<10 {
        _ = target.update(fromContentsOf: original)
        let head = DoHRequestHead(
          method: UnsafeBufferPointer(method), target: target, host: UnsafeBufferPointer(host),
          contentType: UnsafeBufferPointer(start: nil, count: 0), contentLength: nil)
        if case .message(let message)? = try? DoHRequest.read(head, to: site, isKnown: { $0.isEmpty }) {
          length[0] = UInt8(message.count)
        }
      }
    }
    run()
    #expect(AllocationTrap.run(run) == .clean)
    #expect(Int(length[0]) == RawQuery().octets.count)
  }

  @Test func `each refusal has a status of HTTP and one line`() {
    let all: [DoHRefusal] = [
      .noMessage, .noParameter, .noBase64URL, .noForwardedClient, .badParameter("x"), .notAllowed, .notFound,
      .wrongMethod,
      .wrongMethodOfJSON, .noLength, .tooLarge, .targetTooLong, .wrongType, .misdirected, .tooManyQueries,
      .headTooLarge,
    ]
    #expect(
      all.map(\.status) == [400, 400, 400, 400, 400, 403, 404, 405, 405, 411, 413, 414, 415, 421, 429, 431])
    #expect(all.allSatisfy { !$0.text.isEmpty && !$0.text.contains("\n") })
    #expect(DoHRefusal.tooManyQueries.field?.name == "Retry-After" && DoHRefusal.tooManyQueries.field?.value == "1")
  }
}

@Suite struct `Cache-Control of an answer` {
  private func value(_ ttl: UInt32?) throws -> String {
    var header = Header()
    header.qr = true
    let name = try #require(DomainName(text: "www.example.com"))
    let records = ttl.map { [ResourceRecord(owner: name, type: .a, ttl: $0, rdata: [192, 0, 2, 1])] } ?? []
    let octets = try Message(
      id: 0, header: header, questions: [Message.Entry(Question(name: name, type: .a))], answers: records
    ).compose()
    return octets.withUnsafeBufferPointer { response in
      withUnsafeTemporaryAllocation(of: UInt8.self, capacity: CacheControl.longest) { output in
        output.initialize(repeating: 0)
        return String(decoding: output[..<CacheControl.write(for: response, into: output)], as: UTF8.self)
      }
    }
  }

  @Test func `it is max-age with the response's lifetime, or no-store`() throws {
    for ttl: UInt32 in [0, 1, 9, 10, 300, 86_400, 2_147_483_647] { #expect(try value(ttl) == "max-age=\(ttl)") }
    #expect(try value(nil) == "no-store")
  }
}
