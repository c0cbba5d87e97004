// ZoneParser.swift -- turns the entries of a zone file into records.
//
//   $ORIGIN example.com.        completes owner names without a final dot; `@` is the origin itself
//   $TTL 300                    the TTL of records without one
//   name [TTL] [IN] TYPE RDATA  names inside RDATA must be complete, with the final dot

import DNSWire

/// A mistake in a zone file.
struct ZoneError: Error, Equatable, CustomStringConvertible {
  /// The line, from 1.
  let line: Int
  /// What was found and what is allowed.
  let reason: String

  var description: String { "line \(line): \(reason)" }
}

struct ZoneParser {
  private var zone: Zone
  private var ttl: UInt32
  private var origin = DomainName.root
  private var owner: DomainName?

  /// Parses a zone file; `defaultTTL` applies until the first `$TTL`.
  ///
  /// - Throws: `ZoneError` for the first mistake.
  static func parse(_ text: some StringProtocol, defaultTTL: UInt32 = 300) throws(ZoneError) -> Zone {
    var parser = ZoneParser(zone: Zone(defaultTTL: defaultTTL), ttl: defaultTTL)
    for entry in try ZoneTokens.entries(of: text) { try parser.take(entry) }
    return parser.zone
  }

  private mutating func take(_ entry: ZoneEntry) throws(ZoneError) {
    switch entry.fields[0].uppercased() {
    case "$ORIGIN":
      guard entry.fields.count == 2, let name = DomainName(text: entry.fields[1]), entry.fields[1].hasSuffix(".") else {
        throw ZoneError(line: entry.line, reason: "$ORIGIN takes one name with its final dot")
      }
      origin = name
    case "$TTL":
      guard entry.fields.count == 2, let seconds = ttlValue(entry.fields[1]) else {
        throw ZoneError(line: entry.line, reason: "$TTL takes a number of seconds, 0 to 2147483647")
      }
      ttl = seconds
    case let directive where directive.hasPrefix("$"):
      throw ZoneError(line: entry.line, reason: "\(directive) is not known: $ORIGIN and $TTL are")
    default: try takeRecord(entry)
    }
  }

  private mutating func takeRecord(_ entry: ZoneEntry) throws(ZoneError) {
    var fields = entry.fields[...]
    if !entry.continuesOwner { owner = try name(fields.removeFirst(), line: entry.line) }
    guard let owner else { throw ZoneError(line: entry.line, reason: "the first record has no owner name") }
    var recordTTL = ttl
    if let first = fields.first, let seconds = ttlValue(first) {
      recordTTL = seconds
      fields.removeFirst()
    }
    if fields.first?.uppercased() == "IN" { fields.removeFirst() }
    guard let word = fields.popFirst(), UInt16(word) == nil, let type = RecordType(text: word) else {
      throw ZoneError(line: entry.line, reason: "a record is: name [TTL] [IN] TYPE RDATA")
    }
    if let relative = relativeName(in: Array(fields), type: type) {
      throw ZoneError(line: entry.line, reason: "\"\(relative)\" inside RDATA needs its final dot")
    }
    let text = fields.joined(separator: " ")
    guard let rdata = RDATA.parse(text: text, type: type) else {
      throw ZoneError(line: entry.line, reason: "\"\(text)\" is no RDATA of type \(type)")
    }
    zone.add(ZoneRecord(owner: owner, type: type, ttl: recordTTL, text: text, rdata: rdata))
  }

  private func name(_ text: String, line: Int) throws(ZoneError) -> DomainName {
    if text == "@" { return origin }
    guard let name = DomainName(text: text) else {
      throw ZoneError(line: line, reason: "\"\(text)\" is no domain name")
    }
    guard !text.hasSuffix(".") else { return name }
    guard let full = DomainName(octets: name.octets.dropLast() + origin.octets) else {
      throw ZoneError(line: line, reason: "\"\(text)\" is too long below \(origin)")
    }
    return full
  }

  /// Returns the first name inside RDATA without its final dot. The service sends the file's text unchanged, so names
  /// must be complete.
  private func relativeName(in fields: [String], type: RecordType) -> String? {
    let places: [Int]
    switch type {
    case .cname, .ns, .ptr, .dname: places = [0]
    case .mx, .https, .svcb: places = [1]
    case .soa: places = [0, 1]
    case .srv: places = [3]
    case .naptr: places = [5]
    default: places = []
    }
    return places.filter { $0 < fields.count }.map { fields[$0] }.first { !$0.hasSuffix(".") && $0 != "\\#" }
  }

  private func ttlValue(_ text: String) -> UInt32? {
    guard let value = UInt32(text), text.utf8.first != UInt8(ascii: "+"), value <= 0x7FFF_FFFF
    else { return nil }
    return value
  }
}
