// DNSJSON.swift -- composes the JSON form that Google introduced; a style describes the variants of other providers.

import DNSWire

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

/// Composes an answer; the dialect adds the members after `Authority`.
struct DNSJSON {
  private let style: JSONStyle
  private(set) var writer: JSONWriter

  /// Writes everything except the closing brace.
  init(_ answer: ZoneAnswer, cd: Bool, style: JSONStyle) {
    self.style = style
    writer = JSONWriter(capacity: 256 + answer.records.count * 96)
    writer.beginObject()
    writer.key("Status")
    writer.number(answer.code.rawValue)
    let flags: [(StaticString, Bool)] = [("TC", false), ("RD", true), ("RA", true), ("AD", false), ("CD", cd)]
    for (key, value) in flags {
      writer.key(key)
      writer.bool(value)
    }
    question(answer.question)
    section("Answer", answer.records)
    section("Authority", answer.authority)
  }

  mutating func add(_ key: StaticString, _ value: String) {
    writer.key(key)
    writer.string(value)
  }

  /// Adds a member with an array of strings.
  mutating func add(_ key: StaticString, list: [String]) {
    writer.key(key)
    writer.beginArray()
    for value in list { writer.string(value) }
    writer.endArray()
  }

  /// Writes the closing brace and returns the whole text.
  mutating func finish() -> [UInt8] {
    writer.endObject()
    return writer.octets
  }

  private mutating func question(_ question: Question) {
    writer.key("Question")
    if !style.questionIsObject { writer.beginArray() }
    writer.beginObject()
    writer.key("name")
    writer.name(question.name, finalDot: style.finalDot)
    writer.key("type")
    writer.number(question.type.rawValue)
    writer.endObject()
    if !style.questionIsObject { writer.endArray() }
  }

  private mutating func section(_ key: StaticString, _ records: [ZoneRecord]) {
    guard !records.isEmpty else { return }
    writer.key(key)
    writer.beginArray()
    for record in records { self.record(record) }
    writer.endArray()
  }

  private mutating func record(_ record: ZoneRecord) {
    writer.beginObject()
    writer.key("name")
    writer.name(record.owner, finalDot: style.finalDot)
    if style.ttlFirst { ttl(record) }
    writer.key("type")
    writer.number(record.type.rawValue)
    if !style.ttlFirst { ttl(record) }
    writer.key("data")
    writer.string(dataText(of: record, style: style))
    writer.endObject()
  }

  private mutating func ttl(_ record: ZoneRecord) {
    writer.key("TTL")
    writer.number(record.ttl)
  }
}

func dataText(of record: ZoneRecord, style: JSONStyle) -> String {
  switch record.type {
  case .a, .aaaa, .cname, .ns, .ptr, .mx, .srv, .soa, .ds, .dnskey, .rrsig: return record.text
  case .txt: return stringsText(of: record.rdata, style.text)
  default: return style.usesGenericForm ? genericText(of: record.rdata) : record.text
  }
}

/// Returns RDATA in the form of RFC 3597 section 5: `\# 4 c0 00 02 01`.
func genericText(of rdata: [UInt8]) -> String {
  rdata.isEmpty ? "\\# 0" : "\\# \(rdata.count) \(hex(rdata, separator: " "))"
}

/// The character-strings of TXT RDATA as text.
private func stringsText(of rdata: [UInt8], _ form: JSONStyle.Text) -> String {
  var strings: [String] = []
  var position = 0
  while position < rdata.count {
    let end = min(rdata.count, position + 1 + Int(rdata[position]))
    let octets = rdata[(position + 1)..<end].flatMap { stringOctet($0, inQuotes: form == .quoted) }
    strings.append(String(decoding: octets, as: UTF8.self))
    position = end
  }
  return switch form {
  case .quoted: strings.map { "\"\($0)\"" }.joined(separator: " ")
  case .concatenated: strings.joined()
  }
}

/// Escapes an octet of a character-string; white space and most punctuation need no escape.
private func stringOctet(_ octet: UInt8, inQuotes: Bool) -> [UInt8] {
  switch octet {
  case UInt8(ascii: "\\"): [UInt8(ascii: "\\"), octet]
  case UInt8(ascii: "\"") where inQuotes: [UInt8(ascii: "\\"), octet]
  case 0x20...0x7E: [octet]
  default: presentation(of: octet)
  }
}
