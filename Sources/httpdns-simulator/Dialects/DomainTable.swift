// DomainTable.swift -- the table of a self-hosted HTTPDNS: `/table`, all names and their IPv4 addresses in one object.
//
// The format defines no path, no errors and no caching; the simulator adds HTTP's own entity tag.

import DNSWire
import HTTPMessage
import HTTPServer

struct DomainTable: Dialect {
  let name = "table"
  static let path = "/table"

  func claims(_ transfer: Transfer) -> Bool { transfer.request.path == DomainTable.path }

  func reply(to transfer: Transfer, from service: Service) -> DialectReply {
    switch transfer.request.method {
    case .get, .head: break
    default: return .refusal(405, "Method Not Allowed")
    }
    let body = body(service, transfer)
    let tag = "\"\(hex(digest(body, .sha256).prefix(8)))\""
    let isKnown = transfer.request.field("If-None-Match").map { DomainTable.list($0, has: tag) } ?? false
    return DialectReply(
      status: isKnown ? 304 : 200, contentType: "application/json", fields: [HTTPField("ETag", tag)],
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

  private func body(_ service: Service, _ transfer: Transfer) -> [UInt8] {
    let switches = service.options.table
    let names = switches.isEnabled ? names(service) : []
    var json = JSONWriter(capacity: 128 + names.count * 96)
    json.beginObject()
    json.key("service")
    json.string(switches.service)
    json.key("enable")
    json.number(switches.isEnabled ? 1 : 0)
    json.key("domainlist")
    json.beginArray()
    let families: [RecordType] = switches.includesIPv6 ? [.a, .aaaa] : [.a]
    for name in names {
      let answers = families.map { service.answer(Question(name: name, type: $0), for: transfer) }
      let addresses = answers.flatMap { answer in answer.records.filter { $0.type == answer.question.type } }
      guard !addresses.isEmpty else { continue }
      json.beginObject()
      json.key("domain")
      json.name(answers[0].question.name, finalDot: false)
      json.key("ips")
      json.beginArray()
      for address in addresses { json.string(address.text) }
      json.endArray()
      json.endObject()
    }
    json.endArray()
    json.endObject()
    return json.octets
  }

  private func names(_ service: Service) -> [DomainName] {
    let count = service.options.table.domainCount
    guard count > 0 else { return service.zone.plainNames }
    return (0..<count).map { DomainName(text: "n\($0).bench.example.")! }
  }
}
