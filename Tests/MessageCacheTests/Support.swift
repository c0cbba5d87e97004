// Support.swift -- keys that own their octets, responses of a given size, and parsed hits.

import DNSWire
import Glibc
import MessageCache
import Testing

let second: Int64 = 1_000_000_000

/// A key and the buffer that it points into.
final class OwnedKey: @unchecked Sendable {
  let name: DomainName
  let key: CacheKey
  private let buffer: UnsafeMutablePointer<UInt8>

  init(
    _ name: DomainName, in cache: MessageCache, _ scope: CacheScope = .plain(1),
    subnet: QueryClientSubnet = QueryClientSubnet()
  ) {
    self.name = name
    buffer = .allocate(capacity: CacheKey.longest)
    buffer.initialize(repeating: 0xEE, count: CacheKey.longest)
    let octets = name.lowercased.octets
    buffer.update(from: octets, count: octets.count)
    key = cache.key(in: buffer, nameLength: octets.count, scope, subnet: subnet)
  }

  deinit { buffer.deallocate() }
}

extension CacheScope {
  static func plain(_ type: UInt16) -> CacheScope {
    CacheScope(type: type, dnssecOK: false, checkingDisabled: false, route: 0, network: 0)
  }
}

/// The result of a hit.
struct Served {
  var lookup: CacheLookup
  var head: ResponseHead
  var body: [UInt8]

  /// The records, read by the parser for upstream messages.
  func records(of name: DomainName, type: UInt16 = 1) throws -> (
    answers: [ResourceRecord], authorities: [ResourceRecord]
  ) {
    var octets: [UInt8] = [0, 1, 0x81, 0x80, 0, 1]
    for count in [head.answers, head.authorities, 0] { octets += [UInt8(count >> 8), UInt8(count & 0xFF)] }
    octets += name.octets + [UInt8(type >> 8), UInt8(type & 0xFF), 0, 1] + body
    let message = try Message.parse(octets)
    return (message.answers, message.authorities)
  }
}

extension MessageCache {
  /// Looks up a key; nil on a miss. Checks that octets after the body are unchanged.
  func serve(
    _ key: OwnedKey, now: Int64, capacity: Int = 65_535, servesStale: Bool = false, onlyForEverySubnet: Bool = false
  ) -> Served? {
    let output = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity + 8)
    defer { output.deallocate() }
    memset(output, 0xAA, capacity + 8)
    var head = ResponseHead()
    let lookup = find(
      key.key, now: now, servesStale: servesStale, onlyForEverySubnet: onlyForEverySubnet, into: output,
      capacity: capacity, &head)
    let written = lookup.isAnswer ? min(head.bodyLength, capacity) : 0
    let untouched = UnsafeBufferPointer(start: output + written, count: min(64, capacity + 8 - written))
    #expect(untouched.allSatisfy { $0 == 0xAA }, "octets behind a body of \(written) were written")
    guard lookup.isAnswer else { return nil }
    return Served(lookup: lookup, head: head, body: Array(UnsafeBufferPointer(start: output, count: written)))
  }
}

extension DomainName {
  static func numbered(_ number: Int) -> DomainName { DomainName(text: "n\(number).example.com")! }
}

extension ResourceRecord {
  /// An address record, distinguished by its last octet.
  static func a(_ owner: DomainName, _ last: UInt8, ttl: UInt32 = 300) -> ResourceRecord {
    ResourceRecord(owner: owner, type: .a, ttl: ttl, rdata: [192, 0, 2, last])
  }

  static func aaaa(_ owner: DomainName, _ last: UInt8, ttl: UInt32 = 300) -> ResourceRecord {
    ResourceRecord(
      owner: owner, type: .aaaa, ttl: ttl, rdata: [0x20, 1, 0xD, 0xB8] + Array(repeating: 0, count: 11) + [last])
  }

  static func cname(_ owner: DomainName, _ target: DomainName, ttl: UInt32 = 300) -> ResourceRecord {
    ResourceRecord(owner: owner, type: .cname, ttl: ttl, rdata: target.octets)
  }

  /// A TXT record of that many octets of RDATA, with equal values except for the length octets.
  static func txt(_ owner: DomainName, octets count: Int, filledWith octet: UInt8, ttl: UInt32 = 300) -> ResourceRecord
  {
    var rdata: [UInt8] = []
    while rdata.count < count {
      let length = min(255, count - rdata.count - 1)
      rdata += [UInt8(length)] + Array(repeating: octet, count: length)
    }
    return ResourceRecord(owner: owner, type: .txt, ttl: ttl, rdata: rdata)
  }
}

extension ComposedResponse {
  /// A response of one TXT record.
  static func filled(_ name: DomainName, octets count: Int, with octet: UInt8, ttl: UInt32 = 300) -> ComposedResponse {
    ComposedResponse(
      .noError, to: name, answers: [.txt(name, octets: count, filledWith: octet, ttl: ttl)])!
  }
}
