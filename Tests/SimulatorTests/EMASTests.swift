// EMASTests.swift -- EMAS's dialect: v1, v2 and the scheduling call, signed and sealed, with every refusal.

import Ciphers
import DNSWire
import HTTPMessage
import HTTPServer
import Testing

@testable import httpdns_simulator

private let zone = """
  $ORIGIN example.com.
  @      30  SOA ns1.example.com. hostmaster.example.com. 2024010101 3600 600 604800 60
  www    60  A 192.0.2.1
  www    60  A 192.0.2.2
  www    60  AAAA 2001:db8::1
  v4only 60  A 192.0.2.1
  a      60  A 192.0.2.1
  a      60  AAAA 2001:db8::1
  b      60  TXT "no addresses"
  """

private let aesKey = octets("00112233445566778899aabbccddeeff")

/// A service whose secret is v2's of the vectors, or another one.
private func emas(_ settings: String = "", secret: String? = nil) throws -> Service {
  var service = try service(zone).with(settings)
  if let secret { service.emas.secret = secret }
  return service
}

private func ask(
  _ target: String, of service: Service, method: HTTPMethod = .get, now: Int64 = 1_700_000_000,
  isSecure: Bool = false
) -> DialectReply {
  ask(EMAS(), target, method: method, of: service, now: now, isSecure: isSecure)
}

private func code(_ reply: DialectReply) -> String {
  EMASError.allCases.first { "{\"code\":\"\($0.rawValue)\"}" == reply.text && $0.status == reply.status }?.rawValue
    ?? "\(reply.status) \(reply.text)"
}

/// A request of v2 with a right signature.
private func signed(_ parameters: String, of service: Service) -> String {
  "/v2/d?\(parameters)&s=\(service.emas.version2Signature(Parameters(query: parameters))!)"
}

@Suite struct `EMAS v1` {
  private let vectors = Vectors.all

  @Test func `EMAS v1 signatures are those of the vectors`() throws {
    for vector in vectors.emas_v1_signatures {
      let service = try emas(secret: vector.secret)
      #expect(
        service.emas.version1Signature(host: Array(vector.host.utf8), expiry: Array(vector.t.utf8)) == vector.s)
      guard let path = vector.path else { continue }
      let reply = ask(path, of: service)
      #expect(reply.status == 200)
      #expect(reply.isVerified == true)
      #expect(reply.subnet == "203.0.113.9")
    }
    #expect(vectors.emas_v1_signatures.count == 5)
  }

  @Test func `EMAS v1 bodies are those of the vectors`() throws {
    let service = try emas("emas-age=3")
    let bodies = vectors.emas_v1_responses
    func text(_ call: String) -> String { ask("/100000/\(call)&ip=203.0.113.9", of: service).text }
    #expect(text("d?host=www.example.com") == bodies.body("/d or /sign_d, query=4"))
    #expect(
      text("d?host=www.example.com&query=4,6")
        == bodies.body("query=4,6").replacing("\"ips\":[\"192.0.2.1\"]", with: "\"ips\":[\"192.0.2.1\",\"192.0.2.2\"]"))
    #expect(text("d?host=nope.example.com&query=4") == bodies.body("no record"))
    #expect(
      text("d?host=www.example.com&sdns-k=v")
        == bodies.body("with extra").replacing("\"ips\":[\"192.0.2.1\"]", with: "\"ips\":[\"192.0.2.1\",\"192.0.2.2\"]")
    )
    // The vector leaves out that b has no IPv6 address either.
    let batch = text("resolve?host=a.example.com,b.example.com&query=4,6")
    #expect(batch.hasPrefix(bodies.body("/resolve batch").dropLast(2)))
    #expect(batch.contains("\"ips\":[],\"type\":28,"))
  }

  @Test func `IPv6 alone is in ipsv6, and in a batch it is in ips`() throws {
    let service = try emas()
    #expect(
      ask("/100000/d?host=www.example.com&query=6", of: service).text
        == #"{"ipsv6":["2001:db8::1"],"host":"www.example.com","client_ip":"198.51.100.7","ips":[],"ttl":60,"#
        + #""origin_ttl":60}"#)
    #expect(
      ask("/100000/resolve?host=www.example.com&query=6", of: service).text
        == #"{"dns":[{"host":"www.example.com","client_ip":"198.51.100.7","ips":["2001:db8::1"],"type":28,"ttl":60,"#
        + #""origin_ttl":60}]}"#)
  }

  @Test func `a batch may be of many clients instead of many names`() throws {
    let service = try emas()
    let reply = ask("/100000/resolve?host=www.example.com&ip=203.0.113.9,203.0.113.10", of: service)
    #expect(reply.text.contains(#""client_ip":"203.0.113.10""#))
    #expect(reply.units == 2)
    let both = ask("/100000/resolve?host=a.example.com,b.example.com&ip=203.0.113.9,203.0.113.10", of: service)
    #expect(code(both) == "TooManyHosts")
  }

  @Test(arguments: [
    ("/100000/d", "MissingArgument"), ("/100000/sign_d?host=a.example.com&t=1700000600", "MissingArgument"),
    ("/100000/d?host=a&query=5", "MissingArgument"), ("/100000/resolve?host=a,b,c,d,e,f", "TooManyHosts"),
    ("/100000/d?host=a,b", "InvalidHost"), ("/100000/d?host=a..b", "InvalidHost"),
    ("/100000/resolve?host=a,,b", "InvalidHost"), ("/100000/d?host=b%C3%BCcher.example", "InvalidHost"),
    ("/100001/d?host=a", "AccountNotExists"), ("/none/d?host=a", "InvalidAccount"),
    ("/100000/sign_d?host=www.example.com&t=1700000600&s=0", "InvalidSignature"),
    ("/100000/sign_d?host=www.example.com&t=soon&s=0", "InvalidDuration"),
  ])
  func `a mistake has its code`(target: String, expected: String) throws {
    #expect(code(ask(target, of: try emas())) == expected)
  }

  @Test func `a signature holds until its expiry, which is at most a day ahead`() throws {
    let vector = vectors.emas_v1_signatures[0]
    let service = try emas(secret: vector.secret)
    let path = try #require(vector.path)
    #expect(ask(path, of: service, now: 1_700_000_600).status == 200)
    #expect(code(ask(path, of: service, now: 1_700_000_601)) == "SignatureExpired")
    #expect(ask(path, of: service, now: 1_700_000_600 - 86_400).status == 200)
    #expect(code(ask(path, of: service, now: 1_700_000_599 - 86_400)) == "InvalidDuration")
    #expect(code(ask(path, of: try emas(secret: "Other"))) == "InvalidSignature")
    #expect(ask(path, of: try emas(secret: "Other")).isVerified == false)
    #expect(code(ask(path.replacing("www.", with: "a."), of: service)) == "InvalidSignature")
    let unchecked = ask(path, of: try emas(secret: ""))
    #expect(unchecked.status == 200)
    #expect(unchecked.isVerified == nil)
  }

  @Test func `settings: signatures are required, sdns is refused, names are not in the list`() throws {
    #expect(code(ask("/100000/d?host=a", of: try emas("emas-signed-only=true"))) == "UnsignedInterfaceDisabled")
    #expect(code(ask("/100000/d?host=a&sdns-k=v", of: try emas("emas-sdns=false"))) == "SdnsNotSupported")
    let unlisted = ask("/100000/d?host=www.example.com", of: try emas("not-listed=other.example,example.com"))
    #expect(unlisted.text.contains("\"ips\":[]"))
    #expect(unlisted.units == 0)
    #expect(code(ask("/100000/d?host=a", of: try emas(), method: .post)) == "MethodNotAllowed")
  }

  @Test func `every code may be had on demand, with the status that belongs to it`() throws {
    let reply = ask("/100000/d?host=www.example.com", of: try emas())
    for error in EMASError.allCases {
      let fault = try Fault(Parameters(query: "kind=error&error=\(error.rawValue)&dialect=emas"))
      let spoiled = reply.spoiled(by: fault)
      #expect(code(spoiled) == error.rawValue)
      #expect(spoiled.questions == reply.questions)
      #expect(spoiled.units == 0)
    }
    for response in vectors.emas_v1_responses.dropFirst(5) + vectors.emas_v2_responses.suffix(1) {
      #expect(
        EMASError.allCases.contains { "{\"code\":\"\($0.rawValue)\"}" == response.body && $0.status == response.status }
      )
    }
  }

  @Test func `answers with addresses are charged, five times over HTTPS`() throws {
    let target = "/100000/resolve?host=a.example.com,b.example.com&query=4,6"
    #expect(ask(target, of: try emas()).units == 2)
    #expect(ask(target, of: try emas(), isSecure: true).units == 10)
    #expect(ask("/100000/d?host=nope.example.com", of: try emas(), isSecure: true).units == 0)
  }
}

@Suite struct `EMAS v2` {
  private let vectors = Vectors.all

  @Test func `every request of the vectors is verified, and its reply can be opened`() throws {
    let service = try emas()
    for vector in vectors.emas_v2_signatures {
      #expect(service.emas.version2Signature(Parameters(query: String(vector.path.dropFirst(6)))) == vector.s)
      let reply = ask(vector.path, of: service)
      #expect(reply.status == 200, "\(vector.case)")
      #expect(reply.isVerified == true)
      guard let cipher = reply.cipher else { continue }
      #expect(data(reply, cipher)?.contains(#""dn":"www.example.com","v4":{"ips":["192.0.2.1","192.0.2.2"]"#) == true)
    }
    #expect(vectors.emas_v2_signatures.count == 6)
  }

  /// The text inside a sealed reply.
  private func data(_ reply: DialectReply, _ mode: BlockCipher.Mode) -> String? {
    guard let object = flatObject(reply.body), object["mode"] == (mode == .aesCBC ? "1" : "2"),
      let sealed = object["data"].flatMap({ Base64.decode($0.utf8) })
    else { return nil }
    return BlockCipher(mode, padding: aesKey).open(sealed).map { String(decoding: $0, as: UTF8.self) }
  }

  @Test func `EMAS v2 bodies are those of the vectors`() throws {
    let service = try emas()
    let bodies = vectors.emas_v2_responses
    func text(_ parameters: String) -> String {
      ask(signed("id=100000&m=0&cip=203.0.113.9&\(parameters)&exp=1700000600&v=1.0", of: service), of: service).text
    }
    #expect(text("dn=www.example.com&q=4,6") == bodies.body("plain"))
    #expect(text("dn=v4only.example.com&q=4,6") == bodies.body("no record"))
    #expect(text("dn=nope.example.com") == bodies.body("unknown name"))
  }

  @Test func `encrypted bodies have the content of the plain one`() throws {
    let service = try emas()
    let plain = ask("/v2/d?id=100000&m=0&dn=www.example.com&q=4,6&cip=203.0.113.9", of: service).text
    for (number, mode) in [(1, BlockCipher.Mode.aesCBC), (2, .aesGCM)] {
      let inner = #"{"dn":"www.example.com","q":"4,6","cip":"203.0.113.9"}"#
      let sealed = Hexadecimal.encode(BlockCipher(mode, padding: aesKey).seal(Array(inner.utf8)))
      let reply = ask("/v2/d?id=100000&m=\(number)&enc=\(sealed)", of: service)
      #expect(reply.cipher == mode)
      #expect(plain == "{\"code\":\"success\",\"mode\":\"0\",\"data\":\(try #require(data(reply, mode)))}")
      #expect(reply.questions.count == 2)
      #expect(reply.units == 6)
      #expect(ask("/v2/d?id=100000&m=\(number)&enc=\(sealed)", of: service, isSecure: true).units == 16)
    }
  }

  @Test(arguments: [
    ("", "MissingArgument"), ("id=100000", "MissingArgument"), ("id=100000&dn=a&m=3", "MissingArgument"),
    ("id=100000&m=1&dn=a", "MissingArgument"), ("id=1&dn=a", "InvalidAccount"), ("id=100000&dn=a..b", "InvalidHost"),
    ("id=100000&dn=a,b,c,d,e,f", "TooManyHosts"), ("id=100000&dn=a&q=5", "MissingArgument"),
    ("id=100000&dn=a&s=00", "MissingArgument"), ("id=100000&dn=a&exp=1700000600&s=00", "InvalidSignature"),
    ("id=100000&m=1&enc=00", "InvalidSignature"), ("id=100000&m=2&enc=zz", "InvalidSignature"),
  ])
  func `a mistake has its code`(query: String, expected: String) throws {
    #expect(code(ask("/v2/d?\(query)", of: try emas())) == expected)
  }

  @Test func `wrong keys, expired and missing signatures are refused`() throws {
    let path = vectors.emas_v2_signatures[0].path
    #expect(code(ask(path, of: try emas(), now: 1_700_000_601)) == "SignatureExpired")
    #expect(code(ask(path, of: try emas(secret: "00"))) == "InvalidSignature")
    #expect(code(ask(path, of: try emas(secret: "no hexadecimal"))) == "InvalidSignature")
    #expect(code(ask(path.replacing("q=4,6", with: "q=6"), of: try emas())) == "InvalidSignature")
    let unsigned = "/v2/d?id=100000&dn=www.example.com"
    #expect(ask(unsigned, of: try emas()).isVerified == nil)
    #expect(code(ask(unsigned, of: try emas("emas-signed-only=true"))) == "UnsignedInterfaceDisabled")
    var other = try emas()
    other.emas.aesSecret = "ffffffffffffffffffffffffffffffff"
    #expect(code(ask(vectors.emas_v2_signatures[5].path, of: other)) == "InvalidSignature")
    other.emas.aesSecret = ""
    #expect(code(ask(vectors.emas_v2_signatures[4].path, of: other)) == "InvalidSignature")
  }

  @Test func `mode may be a number, sdns is echoed, and unlisted names are absent`() throws {
    let target = "/v2/d?id=100000&dn=www.example.com&sdns-city=hz"
    #expect(ask(target, of: try emas("emas-mode-number=true")).text.contains("\"mode\":0,"))
    #expect(ask(target, of: try emas()).text.contains(#""extra":"{&quot;city&quot;:&quot;hz&quot;}""#))
    #expect(code(ask(target, of: try emas("emas-sdns=false"))) == "SdnsNotSupported")
    let unlisted = ask(target, of: try emas("not-listed=www.example.com"))
    #expect(unlisted.text.contains("\"ips\":[],\"ttl\":60,\"extra\""))
    #expect(!unlisted.text.contains("no_ip_code"))
  }

  @Test func `replies have other forms on demand`() throws {
    let batch = "/100000/resolve?host=www.example.com,nope.example.com"
    let reversed = ask(batch, of: try emas("emas-reversed=true")).text
    #expect(reversed.range(of: "nope.example.com")!.lowerBound < reversed.range(of: "www.example.com")!.lowerBound)
    #expect(!ask(batch, of: try emas("emas-query-type=true")).text.contains("\"type\""))
    #expect(ask(batch + "&query=4", of: try emas("emas-query-type=true")).text.contains("\"type\":1"))
    #expect(ask(batch, of: try emas("emas-empty-ttl=true")).text.contains(#""ttl":3600}"#))
    let long = ask("/100000/d?host=www.example.com&query=6", of: try emas("emas-long-ipv6=true")).text
    #expect(long.contains("2001:0db8:0000:0000:0000:0000:0000:0001"))
    let sparse = try emas("emas-sparse=true")
    let one = ask("/100000/d?host=www.example.com&query=4", of: sparse).text
    #expect(one.contains("\"ttl\"") && !one.contains("origin_ttl") && !one.contains("client_ip"))
    let two = ask("/v2/d?id=100000&dn=nope.example.com", of: sparse).text
    #expect(!two.contains("mode") && !two.contains("cip") && !two.contains("ips") && two.contains("no_ip_code"))
    #expect(ask("/100000/ss", of: try emas("emas-no-servers=true")).text == #"{"service_ip":[],"service_ipv6":[]}"#)
  }

  @Test func `the account never shows its secrets`() {
    var dumped = ""
    dump(EMASAccount(), to: &dumped)
    for text in ["\(EMASAccount())", String(reflecting: EMASAccount()), dumped, "\(service())"] {
      #expect(!text.contains("000102") && !text.contains("001122"))
    }
  }
}

@Suite struct `EMAS's scheduling call` {
  private let vector = Vectors.all.emas_schedule_signature

  @Test func `the scheduling call returns the configured servers with their ports`() throws {
    let service = try emas("emas-service-ip=192.0.2.11,192.0.2.12,2001:db8::11")
    #expect(ask("/100000/ss?region=cn", of: service).text == Vectors.all.emas_schedule_response)
    let ports = try service.with("emas-service-ip=192.0.2.11:8053,192.0.2.12,[2001:db8::11]:8054&emas-disable=true")
    #expect(
      ask("/100000/ss", of: ports, isSecure: true).text
        == #"{"service_ip":["192.0.2.11","192.0.2.12"],"service_ip_port":[8053,443],"service_ipv6":["2001:db8::11"],"#
        + #""service_ipv6_port":[8054],"service_status":"disable"}"#)
  }

  @Test func `the scheduling call accepts no signature, or a valid one of either form`() throws {
    let service = try emas(secret: vector.secret)
    #expect(ask("/100000/ss", of: service).isVerified == nil)
    for signature in [vector.md5_variant, vector.hmac_md5_variant] {
      let target = "/100000/ss?n=\(vector.nonce)&t=\(vector.t)&s=\(signature)"
      #expect(ask(target, of: service).isVerified == true)
      #expect(ask(target, of: service, now: 1_700_000_060 + 150).status == 200)
      #expect(code(ask(target, of: service, now: 1_700_000_060 + 151)) == "SignatureExpired")
      #expect(code(ask(target, of: service, now: 1_700_000_060 - 301)) == "SignatureExpired")
    }
    #expect(code(ask("/100000/ss?n=\(vector.nonce)&t=\(vector.t)&s=0", of: service)) == "InvalidSignature")
    #expect(code(ask("/100000/ss?s=0", of: service)) == "MissingArgument")
    #expect(code(ask("/1/ss", of: service)) == "AccountNotExists")
  }
}
