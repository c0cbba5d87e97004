// DNSJSON.swift -- composes the JSON form that Google introduced; a style describes the variants of other providers.

import DNSWire
import JSON

/// How a provider writes DNS answers in JSON.
struct JSONStyle: Sendable {
  /// How TXT strings appear in `data`.
  enum Text: Sendable {
    /// Each string in quotes, separated by spaces.
    case quoted
    /// All strings joined, without quotes.
    case concatenated
  }

  /// Whether `Question` is an object instead of an array of one object.
  var questionIsObject = false
  /// Whether `TTL` precedes `type`.
  var ttlFirst = false
  /// Whether names in `Question` and `name` end with a dot.
  var finalDot = true
  var text = Text.quoted
  /// Whether types without a traditional text form appear as RFC 3597 text.
  var usesGenericForm = false
}

extension JSONStyle {
  /// Composes an answer.
  ///
  /// - Parameter more: the members after `Authority`.
  func text(of answer: ZoneAnswer, cd: Bool, _ more: KeyValuePairs<String, String?> = [:]) -> String {
    let name = presentation(of: answer.question.name)
    let question = JSONText.object(["name": name, "type": "\(answer.question.type.rawValue)"])
    let members = JSONText.members([
      "Status": "\(answer.code.rawValue)", "TC": "false", "RD": "true", "RA": "true", "AD": "false",
      "CD": "\(cd)",
      "Question": questionIsObject ? question : JSONText.array([question]),
      "Answer": section(answer.records), "Authority": section(answer.authority),
    ])
    return JSONText.object(members + JSONText.members(more))
  }

  private func section(_ records: [ZoneRecord]) -> String? { records.isEmpty ? nil : JSONText.array(records.map(text)) }

  private func text(of record: ZoneRecord) -> String {
    let ttl = "\(record.ttl)"
    return JSONText.object([
      "name": presentation(of: record.owner), "TTL": ttlFirst ? ttl : nil,
      "type": "\(record.type.rawValue)",
      "TTL": ttlFirst ? nil : ttl, "data": JSONText.string(data(of: record)),
    ])
  }

  private func presentation(of name: DomainName) -> String {
    JSONText.string(finalDot ? name.text : name.textWithoutDot)
  }

  /// The RDATA as text.
  func data(of record: ZoneRecord) -> String {
    switch record.type {
    case .a, .aaaa, .cname, .ns, .ptr, .mx, .srv, .soa, .ds, .dnskey, .rrsig: record.text
    case .txt: stringsText(of: record.rdata, text)
    default: usesGenericForm ? genericText(of: record.rdata) : record.text
    }
  }
}

extension DomainName {
  /// Presentation text without a final dot, except for the root.
  var textWithoutDot: String { isRoot ? text : String(text.dropLast()) }
}

/// Returns RDATA in the form of RFC 3597 section 5: `\# 4 c0 00 02 01`.
func genericText(of rdata: [UInt8]) -> String {
  (["\\#", "\(rdata.count)"] + rdata.map { Hexadecimal.encode([$0]) }).joined(separator: " ")
}

/// The character-strings of TXT RDATA as text.
private func stringsText(of rdata: [UInt8], _ form: JSONStyle.Text) -> String {
  var strings: [String] = []
  var position = 0
  while position < rdata.count {
    let end = min(rdata.count, position + 1 + Int(rdata[position]))
    strings.append(rdata[(position + 1)..<end].map { stringOctet($0, inQuotes: form == .quoted) }.joined())
    position = end
  }
  return switch form {
  case .quoted: strings.map { "\"\($0)\"" }.joined(separator: " ")
  case .concatenated: strings.joined()
  }
}

/// Escapes an octet of a character-string; white space and most punctuation need no escape.
private func stringOctet(_ octet: UInt8, inQuotes: Bool) -> String {
  switch octet {
  case UInt8(ascii: "\\"): return "\\\\"
  case UInt8(ascii: "\"") where inQuotes: return "\\\""
  case 0x20...0x7E: return String(Unicode.Scalar(octet))
  default: return "\\\(octet / 100)\(octet / 10 % 10)\(octet % 10)"
  }
}
