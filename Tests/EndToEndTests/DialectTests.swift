// DialectTests.swift -- each kind of provider, asked for what the built-in zone of the simulator has.

import DNSWire
import Foundation
import Testing

/// A service that speaks JSON, recognized by its URL.
private struct JSONService: CustomTestStringConvertible {
  let dialect: String
  let url: String
  var testDescription: String { dialect }

  static let all = [
    JSONService(dialect: "google", url: "https://dns.google/resolve"),
    JSONService(dialect: "cloudflare", url: "https://cloudflare-dns.com/dns-query"),
    JSONService(dialect: "doh.pub", url: "https://doh.pub/resolve"),
  ]
}

/// Questions whose answers are the same in every dialect, with the answer section's data.
private let questions: [(name: String, type: String, data: [String])] = [
  ("example.com", "A", ["192.0.2.1"]),
  ("www.example.com", "AAAA", ["2001:db8::1"]),
  ("alias2.example.com", "A", ["alias.example.com.", "www.example.com.", "192.0.2.1", "192.0.2.2"]),
  ("example.com", "MX", ["10 mx.example.com.", "20 mx2.example.com."]),
  ("_sip._tcp.example.com", "SRV", ["10 60 5060 sip.example.com."]),
  ("example.com", "CAA", ["0 issue \"ca.example.net\""]),
  ("opaque.example.com", "TYPE65534", ["\\# 4 c0000201"]),
  ("xn--fiqs8s.example.org", "A", ["203.0.113.86"]),
]

/// Asks all of them, and for a name and a type that are not there.
private func checkAnswers(of server: Address) throws {
  for (name, type, data) in questions {
    let reply = try ask(server, name, type)
    #expect(reply.code == .noError, "\(name) \(type): \(reply.errors)")
    #expect(sorted(reply.message.answers) == data, "\(name) \(type)")
  }
  for (name, type, code) in [
    ("nowhere.example.com", "A", ResponseCode.nxDomain), ("v4only.example.com", "AAAA", .noError),
  ] {
    let reply = try ask(server, name, type)
    #expect(reply.code == code)
    #expect(reply.message.answers.isEmpty)
    #expect(reply.soa.map(\.owner.text) == ["example.com."])
    // The zone says 60 s; cache.max_negative_ttl is 30 s.
    #expect(reply.soa.map(\.ttl) == [30])
  }
}

/// The data of an answer section: the chain as it stands, what follows in the order of its octets.
private func sorted(_ records: [ResourceRecord]) -> [String] {
  let chain = records.prefix { $0.type == .cname }
  return chain.map(\.text) + records.dropFirst(chain.count).map(\.text).sorted()
}

@Suite(.blocking) struct DialectTests {
  @Test(arguments: JSONService.all)
  fileprivate func `a provider of kind json answers in its service's dialect`(_ service: JSONService) throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let https = try #require(simulator.https)
      let provider = Settings.provider(
        "json", "url = \"\(service.url)\"\nservers = [\"\(https.address)\"]\nca_file = \"\(https.authority)\"")
      let daemon = try lab.daemon(Settings(provider).text)
      try checkAnswers(of: daemon.address)
      let requests = try simulator.requests
      #expect(requests.count == questions.count + 2)
      #expect(requests.allSatisfy { $0.dialect == service.dialect && $0.method == "GET" && $0.status == 200 })
      // Only Google is known to take padding.
      #expect(requests.allSatisfy { ($0.parameters["random_padding"] != nil) == (service.dialect == "google") })
    }
  }

  @Test func `a provider of kind alidns answers unsigned questions`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.alidns(simulator.http)).text)
      try checkAnswers(of: daemon.address)
      let requests = try simulator.requests
      #expect(requests.allSatisfy { $0.dialect == "alidns" && $0.path == "/resolve" && $0.verified == nil })
      #expect(requests.allSatisfy { $0.parameters["key"] == nil && $0.parameters["short"] == nil })
    }
  }

  @Test func `a provider of kind alidns signs its questions for an account`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(
        "--require-signature", "--account", "999999", "--access-key-id", "KEYID", "--access-key-secret", "KEYSECRET",
        https: true)
      let https = try #require(simulator.https)
      let secret = try lab.folder.write("KEYSECRET\n", to: "secret")
      func provider(_ file: String) -> String {
        Settings.provider(
          "alidns",
          """
          servers = ["\(https.address)"]
          ca_file = "\(https.authority)"
          account_id = "999999"
          access_key_id = "KEYID"
          access_key_secret_file = "\(file)"
          """)
      }
      let daemon = try lab.daemon(Settings(provider(secret)).text)
      try checkAnswers(of: daemon.address)
      #expect(try simulator.requests.allSatisfy { $0.verified == true && $0.transport == "https" })

      let wrong = try lab.folder.write("ANOTHER\n", to: "wrong")
      let stranger = try lab.daemon(Settings(provider(wrong)).text)
      let reply = try ask(stranger.address, "example.com")
      #expect(reply.code == .servFail)
      #expect(reply.errors == [0])
      try stranger.waitForLog("refused the credentials")
      #expect(try ask(stranger.address, "www.example.com").code == .servFail)
      stranger.end()
      let warnings = stranger.log.split(separator: "\n").filter { $0.contains(" WARNING provider alidns: ") }
      #expect(warnings.count == 1, "\(stranger.log)")
    }
  }

  @Test func `short answers have addresses only`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.alidns(simulator.http, "short = true")).text)
      let reply = try ask(daemon.address, "alias.example.com")
      #expect(reply.code == .noError)
      #expect(sorted(reply.message.answers) == ["192.0.2.1", "192.0.2.2"], "the chain is not told")
      #expect(reply.message.answers.allSatisfy { $0.owner.text == "alias.example.com." && $0.ttl == 60 })
      // An empty list can mean either: the answer that denies less.
      let empty = try ask(daemon.address, "nowhere.example.com")
      #expect(empty.code == .noError)
      #expect(empty.message.answers.isEmpty && empty.soa.count == 1)
      #expect(try simulator.requests.allSatisfy { $0.parameters["short"] == "1" })
    }
  }

  @Test(arguments: ["post", "get"])
  func `a provider of kind doh answers by either method`(_ method: String) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let provider = Settings.provider("doh", "url = \"http://\(simulator.http)/dns-query\"\nmethod = \"\(method)\"")
      let daemon = try lab.daemon(Settings(provider).text)
      try checkAnswers(of: daemon.address)
      let requests = try simulator.requests
      #expect(requests.allSatisfy { $0.dialect == "rfc8484" && $0.method == method.uppercased() })
      #expect(requests.allSatisfy { ($0.parameters["dns"] != nil) == (method == "get") })
    }
  }

  @Test func `the age of an RFC 8484 response is subtracted from its TTLs`() throws {
    try withLab { lab in
      let simulator = try lab.simulator("--age", "100")
      let daemon = try lab.daemon(Settings(Settings.doh(simulator.http)).text)
      #expect(try ask(daemon.address, "www.example.com").ttl == 200)
      #expect(try ask(daemon.address, "ttl-90.example").ttl ?? 0 == 0, "older than its TTL")
    }
  }

  @Test func `a client subnet is sent only if configured`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      // Family 1, /24, 198.51.100.0 (RFC 7871 section 6).
      let option: [UInt8] = [0, 8, 0, 7, 0, 1, 24, 0, 198, 51, 100]
      for (key, sent) in [
        ("", nil), ("client_subnet = \"192.0.2.0/24\"", "192.0.2.0/24"),
        ("client_subnet = \"from-client\"", "198.51.100.0/24"),
      ] as [(String, String?)] {
        let daemon = try lab.daemon(Settings(Settings.json(simulator.http, key)).text)
        var query = TestQuery("example.com")
        query.options = option
        #expect(try ask(daemon.address, query).data == ["192.0.2.1"])
        #expect(try simulator.requests.last?.parameters["edns_client_subnet"] == sent)
      }
      #expect(try simulator.count.transfers == 3)
    }
  }
}
