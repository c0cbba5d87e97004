// JSONAnswer.swift -- a DNS response as JSON, in the form that Google defined and `kind = "json"` reads.

import DNSWire
import JSON

/// Writes responses for the JSON interface.
package enum JSONAnswer {
  /// The text of a response: `Status` (the RCODE with its extension), the flags, `Question`, and `Answer` and `Authority`
  /// where they have records; of the OPT record `edns_client_subnet` with the scope, and `extended_dns_errors`.
  ///
  /// Octets that are no response give SERVFAIL alone.
  package static func text(of response: [UInt8]) -> String {
    guard let message = try? Message.parse(response) else {
      return JSONText.object(["Status": "\(ResponseCode.servFail.rawValue)"])
    }
    let questions = message.questions.map(\.question)
    return JSONText.object([
      "Status": "\(message.responseCode.rawValue)",
      "TC": "\(message.header.tc)",
      "RD": "\(message.header.rd)",
      "RA": "\(message.header.ra)",
      "AD": "\(message.header.ad)",
      "CD": "\(message.header.cd)",
      "Question": JSONText.array(
        questions.map { JSONText.object(["name": JSONText.string($0.name.text), "type": "\($0.type.rawValue)"]) }),
      "Answer": section(message.answers),
      "Authority": section(message.authorities),
      "edns_client_subnet": message.edns?.clientSubnet.map {
        JSONText.string("\($0.prefix.address)/\($0.scope)")
      },
      "extended_dns_errors": section(message.edns?.extendedErrors ?? []),
    ])
  }

  private static func section(_ records: [ResourceRecord]) -> String? {
    records.isEmpty
      ? nil
      : JSONText.array(
        records.map {
          JSONText.object([
            "name": JSONText.string($0.owner.text), "type": "\($0.type.rawValue)", "TTL": "\($0.ttl)",
            "data": JSONText.string(RDATA.text($0.rdata, type: $0.type)),
          ])
        })
  }

  private static func section(_ errors: [ExtendedErrorReport]) -> String? {
    errors.isEmpty
      ? nil : JSONText.array(errors.map { JSONText.object(["info_code": "\($0.code.rawValue)"]) })
  }
}
