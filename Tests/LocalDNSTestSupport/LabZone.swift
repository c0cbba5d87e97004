// LabZone.swift -- the names that resolvers of the laboratory know.

import DNSWire

/// Names with their records. All other names do not exist.
package struct LabZone: Sendable {
  private var records: [DomainName: [ResourceRecord]] = [:]
  private let soa: ResourceRecord

  /// An empty zone.
  package init() {
    let host = DomainName(text: "ns.example")!.octets
    let times: [UInt8] = [1, 60, 60, 60, 60].flatMap { [0, 0, 0, $0] as [UInt8] }
    soa = ResourceRecord(owner: DomainName(text: "example")!, type: .soa, ttl: 60, rdata: host + host + times)
  }

  /// Names with one IPv4 address each.
  package init(_ addresses: [String: String]) {
    self.init()
    for (name, address) in addresses { add(name, .a, IPAddress(text: address)!.octets) }
  }

  package mutating func add(_ name: String, _ type: RecordType, _ rdata: [UInt8], ttl: UInt32 = 300) {
    let owner = DomainName(text: name)!
    records[owner, default: []].append(ResourceRecord(owner: owner, type: type, ttl: ttl, rdata: rdata))
  }

  /// The complete response to a query.
  package func response(to query: LabQuery) -> Message {
    var response = query.response()
    var name = query.question.name
    while let found = records[name] {
      let wanted = found.filter { $0.type == query.question.type }
      response.answers += wanted
      guard wanted.isEmpty, let alias = found.first(where: { $0.type == .cname }) else {
        if wanted.isEmpty { response.authorities = [soa] }
        return response
      }
      response.answers.append(alias)
      name = DomainName(octets: alias.rdata)!
    }
    response.header.rcode = UInt8(ResponseCode.nxDomain.rawValue)
    response.authorities = [soa]
    return response
  }

  /// A resolver that knows the zone and does nothing odd.
  package var server: LabServer { LabServer { [.reply(response(to: $0))] } }
}

extension LabZone {
  /// Names for each form of an answer.
  package static let usual: LabZone = {
    var zone = LabZone()
    zone.add("www.example", .a, [192, 0, 2, 80])
    zone.add("www.example", .a, [192, 0, 2, 81])
    zone.add("www.example", .aaaa, IPAddress(text: "2001:db8::80")!.octets)
    zone.add("v4.example", .a, [192, 0, 2, 4])
    zone.add("alias.example", .cname, DomainName(text: "www.example")!.octets, ttl: 60)
    zone.add("lost.example", .cname, DomainName(text: "nowhere.example")!.octets, ttl: 60)
    zone.add("text.example", .txt, [5] + Array("hello".utf8))
    for number in 0..<100 { zone.add("many.example", .a, [198, 51, 100, UInt8(number)]) }
    return zone
  }()

  /// A question for each form of an answer.
  package static let usualQuestions: [Question] = [
    ("www.example", RecordType.a), ("www.example", .aaaa), ("v4.example", .aaaa), ("alias.example", .a),
    ("alias.example", .txt), ("lost.example", .a), ("text.example", .txt), ("many.example", .a), ("no.example", .a),
  ].map { Question(name: DomainName(text: $0.0)!, type: $0.1) }
}
