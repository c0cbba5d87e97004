// QuerySupport.swift -- queries put together octet by octet, sound or not, and what the reader makes of them.

import DNSWire

/// A query in parts, any of which may be wrong.
struct RawQuery {
  var id: UInt16 = 0x1234
  /// RD.
  var flags: UInt16 = 0x0100
  /// QDCOUNT, ANCOUNT, NSCOUNT, ARCOUNT; nil for what is there.
  var counts: [UInt16]?
  var name: [UInt8] = DomainName(text: "www.example.com")!.octets
  var type: UInt16 = 1
  var qclass: UInt16 = 1
  /// Whole records, all in the additional section unless `counts` says otherwise.
  var records: [[UInt8]] = []
  var trailer: [UInt8] = []

  init(_ change: (inout RawQuery) -> Void = { _ in }) { change(&self) }

  var octets: [UInt8] {
    let counts = counts ?? [1, 0, 0, UInt16(records.count)]
    let question = name.isEmpty ? [] : name + words(type, qclass)
    return words(id, flags) + counts.flatMap { words($0) } + question + records.flatMap { $0 } + trailer
  }
}

/// Big-endian octets.
func words(_ values: UInt16...) -> [UInt8] { values.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } }

/// An option with its length; the length may lie.
func option(_ code: UInt16, _ data: [UInt8] = [], length: Int? = nil) -> [UInt8] {
  words(code, UInt16(length ?? data.count)) + data
}

/// An OPT record.
func opt(
  owner: [UInt8] = [0], payload: UInt16 = 1232, extendedCode: UInt8 = 0, version: UInt8 = 0, flags: UInt16 = 0,
  _ options: [UInt8]..., length: Int? = nil
) -> [UInt8] {
  let data = options.flatMap { $0 }
  return owner + words(41, payload) + [extendedCode, version] + words(flags, UInt16(length ?? data.count)) + data
}

/// A record of class IN with a TTL of 0.
func record(owner: [UInt8] = [0xC0, 12], type: UInt16, _ rdata: [UInt8] = [], length: Int? = nil) -> [UInt8] {
  owner + words(type, 1, 0, 0, UInt16(length ?? rdata.count)) + rdata
}

/// What the reader says of a message.
func read(_ octets: [UInt8]) -> (verdict: QueryVerdict, query: Query) {
  var query = Query()
  let verdict = QueryReader.read(octets.span, into: &query)
  return (verdict, query)
}
