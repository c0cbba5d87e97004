// Support.swift -- vectors, short cuts to ask a dialect, and subprocesses.

import DNSWire
import EventLoop
import Foundation
import HTTPMessage
import HTTPServer

@testable import httpdns_simulator

/// The vectors beside the tests; where they come from stands in the file.
struct Vectors: Decodable {
  struct Key: Decodable {
    let uid: String
    let access_key_id: String
    let access_key_secret: String
    let ts: String
    let name: String
    let key: String
    let path: String
  }
  struct Body: Decodable {
    let `case`: String
    var status: Int?
    let body: String
  }
  struct Sealed: Decodable {
    let mode: String
    let key: String
    let plain: String
    let hex: String
  }
  struct Request: Decodable {
    let `case`: String
    let path: String
  }
  struct Version1Signature: Decodable {
    let host: String
    let secret: String
    let t: String
    let s: String
    let path: String?
  }
  struct Version2Signature: Decodable {
    let `case`: String
    let s: String
    let path: String
  }
  struct ScheduleSignature: Decodable {
    let nonce: String
    let secret: String
    let t: String
    let md5_variant: String
    let hmac_md5_variant: String
  }
  struct Configuration: Decodable {
    struct Stream: Decodable {
      let key: String
      let plain: String
      let hex: String
    }
    let access_key_secret: String
    let inner_json: String
    let outer_body: String
    let rc4_published_vectors: [Stream]
  }
  struct Table: Decodable {
    let body: String
    let disabled: String
  }
  struct Wire: Decodable {
    let dns_param: String
    let query_hex: String
    let response_hex: String
    let content_type: String
    let cache_control: String
  }
  let alidns_keys: [Key]
  let alidns_responses: [Body]
  let alidns_conf: Configuration
  let google_responses: [Body]
  let cloudflare_responses: [Body]
  let rfc8484: Wire
  let tencent_ciphers: [Sealed]
  let tencent_not_sealed: [Sealed]
  let tencent_requests: [Request]
  let tencent_texts: [Body]
  let emas_v1_signatures: [Version1Signature]
  let emas_v1_responses: [Body]
  let emas_v2_signatures: [Version2Signature]
  let emas_v2_responses: [Body]
  let emas_schedule_signature: ScheduleSignature
  let emas_schedule_response: String
  let table: Table

  static let all: Vectors = {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Data/vectors.json")
    return try! JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
  }()
}

extension [Vectors.Body] {
  /// The body whose case begins so.
  func body(_ prefix: String) -> String { first { $0.case.hasPrefix(prefix) }!.body }
}

/// The zone that the vectors' bodies were written for.
let vectorZone = """
  $ORIGIN example.com.
  @      900 SOA ns1.example.com. hostmaster.example.com. 2024010101 3600 600 604800 900
  @      300 TXT "v=spf1 -all"
  @      300 CAA 0 issue "ca.example.net"
  @      300 HTTPS 1 . alpn=h3,h2 ipv4hint=192.0.2.1
  www    300 A 192.0.2.1
  t      300 TXT "hello" "world"
  """

/// A name with addresses of both families.
let addressZone = """
  $ORIGIN example.com.
  @      30  SOA ns1.example.com. hostmaster.example.com. 2024010101 3600 600 604800 60
  www    120 A 192.0.2.1
  www    120 A 192.0.2.2
  www    52  AAAA 2001:db8::1
  """

/// A service that answers from a zone text.
func service(_ zone: String = vectorZone, accounts: [Account] = [], options: ServiceOptions = .init()) -> Service {
  Service(zone: try! ZoneParser.parse(zone), accounts: accounts, options: options)
}

/// A dialect's reply to a GET request.
func ask(
  _ dialect: any Dialect, _ target: String, method: HTTPMethod = .get, header: [HTTPField] = [],
  body: String = "", of service: Service = service(), now: Int64 = 1_700_000_000, isSecure: Bool = false
) -> DialectReply {
  let request = HTTPServerRequest(
    method: method, target: target, fields: header, body: Array(body.utf8),
    peer: SocketAddress(text: "198.51.100.7:4711"))
  return dialect.reply(to: DialectRequest(request, now: now, isSecure: isSecure), from: service)
}

extension Service {
  /// The same service with settings such as `emas-age=3&emas-sdns=false`.
  func with(_ settings: String) throws(SimulatorError) -> Service {
    var service = self
    try service.options.take(Parameters(query: settings))
    return service
  }
}

extension DialectReply {
  var text: String { String(decoding: body, as: UTF8.self) }
}

/// A domain name that is known to be one.
func name(_ text: String) -> DomainName { DomainName(text: text)! }

/// Octets from hexadecimal text.
func octets(_ hex: String) -> [UInt8] {
  stride(from: 0, to: hex.count, by: 2).map { UInt8(hex.dropFirst($0).prefix(2), radix: 16)! }
}

/// Runs curl, which gives up by itself after ten seconds, and returns its exit status and output.
func curl(_ arguments: String...) throws -> (status: Int32, output: String) {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  process.arguments = ["curl", "--silent", "--noproxy", "*", "--max-time", "10"] + arguments
  let pipe = Pipe()
  process.standardOutput = pipe
  try process.run()
  let output = pipe.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  return (process.terminationStatus, String(decoding: output, as: UTF8.self))
}
