// DomainTable.swift -- the table of a self-hosted HTTPDNS: `/table`, all names and their IPv4 addresses in one object.
//
// The format defines no path, no errors and no caching; the simulator adds HTTP's own entity tag.

import Ciphers
import DNSWire
import HTTPMessage
import HTTPServer
import JSON

struct DomainTable: Dialect {
  let name = "table"
  static let path = "/table"

  func claims(_ transfer: DialectRequest) -> Bool { transfer.request.path == DomainTable.path }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    switch transfer.request.method {
    case .get, .head: break
    default: return .refusal(405, "Method Not Allowed")
    }
    let body = body(service, transfer)
    let tag = "\"\(Hexadecimal.encode(Digest.sha256(body).prefix(8)))\""
    let isKnown = transfer.request.field("If-None-Match").map { DomainTable.list($0, has: tag) } ?? false
    return DialectReply(
      status: isKnown ? 304 : 200, contentType: "application/json",
      fields: [HTTPField("ETag", tag)],
      body: isKnown ? [] : body)
  }

  /// Whether an If-None-Match field lists a tag, by weak comparison (RFC 9110 section 13.1.2).
  private static func list(_ field: String, has tag: String) -> Bool {
    field.split(separator: ",").contains { part in
      let part = part.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
      let text = String(part)
      return text == "*" || text == tag || text == "W/\(tag)"
    }
  }

  private func body(_ service: Service, _ transfer: DialectRequest) -> [UInt8] {
    let switches = service.options.table
    let names = switches.isEnabled ? names(service) : []
    let families: [RecordType] = switches.includesIPv6 ? [.a, .aaaa] : [.a]
    let list = names.compactMap { name -> String? in
      let answers = families.map { service.answer(Question(name: name, type: $0), for: transfer) }
      let addresses = answers.flatMap { answer in answer.records.filter { $0.type == answer.question.type } }
      guard !addresses.isEmpty else { return nil }
      return JSONText.object([
        "domain": JSONText.string(answers[0].question.name.textWithoutDot),
        "ips": JSONText.array(addresses.map { JSONText.string($0.text) }),
      ])
    }
    let json = JSONText.object([
      "service": JSONText.string(switches.service), "enable": switches.isEnabled ? "1" : "0",
      "domainlist": JSONText.array(list),
    ])
    return Array(json.utf8)
  }

  private func names(_ service: Service) -> [DomainName] {
    let count = service.options.table.domainCount
    guard count > 0 else { return service.zone.plainNames }
    return (0..<count).map { DomainName(text: "n\($0).bench.example.")! }
  }
}
