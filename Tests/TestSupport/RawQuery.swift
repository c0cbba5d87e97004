// RawQuery.swift -- queries put together octet by octet, sound or not, without any code of the product.

/// A query in parts, any of which may be wrong.
public struct RawQuery: Sendable {
  /// The message ID.
  public var id: UInt16 = 0x1234
  /// The flags word; RD alone unless something else is said.
  public var flags: UInt16 = 0x0100
  /// QDCOUNT, ANCOUNT, NSCOUNT, ARCOUNT; nil for what is there.
  public var counts: [UInt16]?
  /// QNAME in wire form; empty for no question at all.
  public var name: [UInt8]
  /// QTYPE.
  public var type: UInt16 = 1
  /// QCLASS.
  public var qclass: UInt16 = 1
  /// Whole records, all in the additional section unless `counts` says otherwise.
  public var records: [[UInt8]] = []
  /// What stands behind the message.
  public var trailer: [UInt8] = []

  /// A query for the address of `www.example.com`, changed.
  public init(_ change: (inout RawQuery) -> Void = { _ in }) {
    name = RawQuery.name("www.example.com")
    change(&self)
  }

  /// The wire form of labels between dots; an empty text is the root.
  public static func name(_ text: String) -> [UInt8] {
    text.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + $0.utf8 } + [0]
  }

  /// The message.
  public var octets: [UInt8] {
    let counts = counts ?? [1, 0, 0, UInt16(records.count)]
    let question = name.isEmpty ? [] : name + words(type, qclass)
    return words(id, flags) + counts.flatMap { words($0) } + question + records.flatMap { $0 } + trailer
  }
}

/// Big-endian octets.
public func words(_ values: UInt16...) -> [UInt8] { values.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } }

/// An EDNS option with its length; the length may lie.
public func option(_ code: UInt16, _ data: [UInt8] = [], length: Int? = nil) -> [UInt8] {
  words(code, UInt16(length ?? data.count)) + data
}

/// An OPT record.
public func opt(
  owner: [UInt8] = [0], payload: UInt16 = 1232, extendedCode: UInt8 = 0, version: UInt8 = 0, flags: UInt16 = 0,
  _ options: [UInt8]..., length: Int? = nil
) -> [UInt8] {
  let data = options.flatMap { $0 }
  return owner + words(41, payload) + [extendedCode, version] + words(flags, UInt16(length ?? data.count)) + data
}

/// A record of class IN with a TTL of 0.
public func record(owner: [UInt8] = [0xC0, 12], type: UInt16, _ rdata: [UInt8] = [], length: Int? = nil) -> [UInt8] {
  owner + words(type, 1, 0, 0, UInt16(length ?? rdata.count)) + rdata
}
