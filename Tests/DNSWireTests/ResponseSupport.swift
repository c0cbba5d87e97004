// ResponseSupport.swift -- short ways to write records, random answers, and composed bodies read back as messages.

import DNSWire
import TestSupport
import Testing

func a(_ owner: DomainName, _ last: UInt8) -> ResourceRecord {
  ResourceRecord(owner: owner, type: .a, ttl: 300, rdata: [192, 0, 2, last])
}

func aaaa(_ owner: DomainName, _ last: UInt8) -> ResourceRecord {
  ResourceRecord(owner: owner, type: .aaaa, ttl: 300, rdata: [0x20, 1] + [UInt8](repeating: 0, count: 13) + [last])
}

func cname(_ owner: DomainName, _ target: DomainName) -> ResourceRecord {
  ResourceRecord(owner: owner, type: .cname, ttl: 300, rdata: target.octets)
}

/// An SOA record of 22 octets of RDATA.
func soa(_ owner: DomainName, ttl: UInt32 = 60) -> ResourceRecord {
  ResourceRecord(owner: owner, type: .soa, ttl: ttl, rdata: [UInt8](repeating: 0, count: 22))
}

func message(_ response: ComposedResponse, _ name: DomainName) throws -> [UInt8] {
  let octets = RawQuery { $0.name = name.octets }.octets
  let query = read(octets).query
  var head = ResponseHead(responseCode: response.responseCode.rawValue)
  head.answers = response.answers
  head.authorities = response.authorities
  head.bodyLength = response.body.count
  var output = octets[..<query.questionEnd] + response.body + [UInt8](repeating: 0, count: ResponseWriter.overhead)
  let limits = ResponseLimits(size: 65_535, advertisedPayload: 1232)
  let length = output.withUnsafeMutableBufferPointer {
    ResponseWriter.complete(query, of: octets.span, head, limits, into: $0.baseAddress!)
  }
  return Array(output[..<length])
}

/// Expects that the parser for upstream messages reads these records out of a composed response.
func expectSame(
  _ response: ComposedResponse, _ name: DomainName, _ answers: [ResourceRecord], _ authorities: [ResourceRecord],
  sourceLocation: SourceLocation = #_sourceLocation
) throws {
  let parsed = try Message.parse(message(response, name))
  #expect(!parsed.header.tc, sourceLocation: sourceLocation)
  #expect(parsed.answers.map(folded) == answers.map(folded), sourceLocation: sourceLocation)
  #expect(parsed.authorities.map(folded) == authorities.map(folded), sourceLocation: sourceLocation)
}

/// Types whose RDATA may have compressed names, and another type with names, which may not.
let typesWithNames: [RecordType] = [.ns, .cname, .soa, .ptr, RecordType(14), .mx, .srv, .dname]

/// A record with the names in its RDATA in lower case, because a pointer may change the case of a name.
func folded(_ record: ResourceRecord) -> ResourceRecord {
  guard typesWithNames.contains(record.type) else { return record }
  var record = record
  record.rdata = record.rdata.map(asciiLowercase)
  return record
}

/// A QNAME and records whose owners consist of few different labels, so that much can be compressed.
struct RandomAnswer {
  let name: DomainName
  private(set) var answers: [ResourceRecord] = []
  private(set) var authorities: [ResourceRecord] = []

  init(_ random: inout SeededGenerator) {
    name = RandomAnswer.name(&random)
    var names = [name, name, name]
    for _ in 0..<Int.random(in: 0...(random.oneIn(10) ? 40 : 6), using: &random) {
      let owner = random.oneIn(3) ? RandomAnswer.name(&random) : names.randomElement(using: &random)!
      let record = RandomAnswer.record(owner, &random)
      if record.type == .cname { names.append(DomainName(octets: record.rdata)!) }
      answers.append(record)
    }
    if random.oneIn(3) { authorities.append(soa(RandomAnswer.name(&random))) }
  }

  func response() throws -> ComposedResponse {
    try #require(ComposedResponse(.noError, to: name, answers: answers, authorities: authorities))
  }

  private static func name(_ random: inout SeededGenerator) -> DomainName {
    let labels = ["a", "B", "b", "example", "Example", "com", "x", "\u{C0}\u{C}", "\u{FF}"]
    let octets = (0..<Int.random(in: 0...5, using: &random)).flatMap { _ in
      let label = labels.randomElement(using: &random)!.unicodeScalars.map { UInt8($0.value) }
      return [UInt8(label.count)] + label
    }
    return DomainName(octets: octets + [0])!
  }

  private static func record(_ owner: DomainName, _ random: inout SeededGenerator) -> ResourceRecord {
    let ttl = UInt32.random(in: 0...100_000, using: &random)
    switch Int.random(in: 0..<8, using: &random) {
    case 0..<3: return ResourceRecord(owner: owner, type: .a, ttl: ttl, rdata: random.octets(4))
    case 3: return ResourceRecord(owner: owner, type: .aaaa, ttl: ttl, rdata: random.octets(16))
    case 4: return ResourceRecord(owner: owner, type: .cname, ttl: ttl, rdata: name(&random).octets)
    case 5:
      let type = typesWithNames.randomElement(using: &random)!
      let rdata =
        switch type {
        case .soa: name(&random).octets + name(&random).octets + [UInt8](repeating: 0, count: 20)
        case RecordType(14): name(&random).octets + name(&random).octets
        case .mx: random.octets(2) + name(&random).octets
        case .srv: random.octets(6) + name(&random).octets
        default: name(&random).octets
        }
      return ResourceRecord(owner: owner, type: type, ttl: ttl, rdata: rdata)
    default:
      let length = Int.random(in: 0...(random.oneIn(10) ? 1500 : 30), using: &random)
      return ResourceRecord(owner: owner, type: RecordType(65_280), ttl: ttl, rdata: random.octets(length))
    }
  }
}
