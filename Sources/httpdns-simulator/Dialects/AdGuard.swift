// AdGuard.swift -- AdGuard DNS's JSON at `/resolve`, selected by its host.
//
// Its form is that of the server's source (github.com/AdguardTeam/AdGuardDNS, serverhttpsjson.go): the sections come first and
// have a class, there is no authority section, and `max-age` is a decimal fraction.

import DNSWire
import HTTPMessage
import HTTPServer
import JSON

struct AdGuard: Dialect {
  let name = "adguard"

  func claims(_ transfer: DialectRequest) -> Bool {
    transfer.request.path == "/resolve" && transfer.isFor("dns.adguard-dns.com")
  }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    guard transfer.request.method == .get else { return .refusal(405, "Method Not Allowed") }
    guard let (question, cd) = transfer.googleQuestion else { return .refusal(400, "Bad Request") }
    let answer = service.answer(question, for: transfer)
    let asked = JSONText.object(["name": JSONText.string(question.name.text), "type": "\(question.type.rawValue)"])
    let json = JSONText.object([
      "Question": JSONText.array([asked]),
      "Answer": answer.records.isEmpty ? "null" : JSONText.array(answer.records.map(text)), "Extra": "null",
      "TC": "false", "RD": "true", "RA": "true", "AD": "false", "CD": "\(cd)", "Status": "\(answer.code.rawValue)",
    ])
    let lifetime = (answer.records.isEmpty ? answer.authority : answer.records).map(\.ttl).min() ?? 0
    return DialectReply(
      contentType: "application/x-javascript", fields: [HTTPField("Cache-Control", "max-age=\(lifetime).000000")],
      body: Array(json.utf8), questions: [question])
  }

  private func text(of record: ZoneRecord) -> String {
    JSONText.object([
      "name": JSONText.string(record.owner.text), "data": JSONText.string(JSONStyle().data(of: record)),
      "TTL": "\(record.ttl)", "type": "\(record.type.rawValue)", "class": "1",
    ])
  }
}
