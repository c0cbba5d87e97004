// ResponseLifetimeTests.swift -- how long HTTP may cache a response, beside what the parser of messages says of it.

import DNSWire
import TestSupport
import Testing

@Suite struct `The lifetime of a response` {
  private let name = DomainName(text: "www.example.com")!

  private func response(
    _ code: ResponseCode = .noError, _ answers: [ResourceRecord] = [], _ authorities: [ResourceRecord] = [],
    _ additionals: [ResourceRecord] = [], edns: EDNS? = EDNS(), _ change: (inout Header) -> Void = { _ in }
  ) throws -> [UInt8] {
    var header = Header()
    (header.qr, header.rcode) = (true, UInt8(code.rawValue & 0xF))
    change(&header)
    return try Message(
      id: 0, header: header, questions: [Message.Entry(Question(name: name, type: .a))], answers: answers,
      authorities: authorities, additionals: additionals, edns: edns
    ).compose()
  }

  private func lifetime(_ octets: [UInt8]) -> Int { ResponseLifetime.seconds(of: octets.span) }

  private func address(_ ttl: UInt32) -> ResourceRecord {
    ResourceRecord(owner: name, type: .a, ttl: ttl, rdata: [192, 0, 2, 1])
  }

  private func alias(_ ttl: UInt32) -> ResourceRecord {
    ResourceRecord(owner: name, type: .cname, ttl: ttl, rdata: name.octets)
  }

  private func authority(_ ttl: UInt32, minimum: UInt32) -> ResourceRecord {
    let numbers = words(0, 1, 0, 2, 0, 3, 0, 4, UInt16(minimum >> 16), UInt16(minimum & 0xFFFF))
    return ResourceRecord(owner: name, type: .soa, ttl: ttl, rdata: name.octets + name.octets + numbers)
  }

  @Test func `a positive answer lives as long as its lowest TTL`() throws {
    #expect(try lifetime(response(.noError, [address(300)])) == 300)
    #expect(try lifetime(response(.noError, [alias(7200), address(60), address(61)])) == 60)
    #expect(try lifetime(response(.noError, [alias(0), address(60)])) == 0)
    #expect(try lifetime(response(.noError, [address(300)], edns: nil)) == 300)
    // Addresses of the additional section do not count.
    #expect(try lifetime(response(.noError, [address(300)], [], [address(5)])) == 300)
  }

  @Test(arguments: [ResponseCode.noError, .nxDomain])
  func `a negative answer lives as long as the lower one of the SOA record's TTL and MINIMUM`(_ code: ResponseCode)
    throws
  {
    #expect(try lifetime(response(code, [], [authority(300, minimum: 60)])) == 60)
    #expect(try lifetime(response(code, [], [authority(30, minimum: 900)])) == 30)
    #expect(try lifetime(response(code, [alias(20)], [authority(30, minimum: 900)])) == 20)
    #expect(try lifetime(response(code)) == -1)
  }

  @Test func `an SOA record that was asked for counts with its TTL alone`() throws {
    #expect(try lifetime(response(.noError, [authority(300, minimum: 60)])) == 300)
  }

  @Test(arguments: [1, 2, 4, 5, 9, 16, 17] as [UInt16])
  func `a response with another RCODE is not stored`(code: UInt16) throws {
    var edns = EDNS()
    edns.extendedResponseCode = UInt8(code >> 4)
    let octets = try response(ResponseCode(rawValue: code), [address(300)], edns: edns)
    #expect(lifetime(octets) == -1)
  }

  @Test func `a truncated response and a query are not stored`() throws {
    #expect(try lifetime(response(.noError, [address(300)]) { $0.tc = true }) == -1)
    #expect(try lifetime(response(.noError, [address(300)]) { $0.qr = false }) == -1)
  }

  @Test func `a TTL beyond 31 bits means 0`() throws {
    var octets = try response(.noError, [address(300)], edns: nil)
    octets[octets.count - 10] = 0x80
    #expect(lifetime(octets) == 0)
  }

  @Test func `no beginning of a response and no damaged one does harm`() throws {
    let octets = try response(.noError, [alias(20), address(60)], [authority(300, minimum: 60)])
    for count in 0..<octets.count { #expect(lifetime(Array(octets[..<count])) == -1) }
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<20_000 {
      var damaged = octets
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        damaged[Int.random(in: 0..<damaged.count, using: &random)] = random.next()
      }
      #expect(lifetime(damaged) < 1 << 32)
    }
  }

  @Test func `the lifetime of random answers is what the parser reads`() throws {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<2_000 {
      let answer = RandomAnswer(&random)
      let octets = try message(answer.response(), answer.name)
      let parsed = try Message.parse(octets)
      var lowest = (parsed.answers + parsed.authorities).map(\.ttl).min().map(Int.init)
      // The SOA records of these answers have 0 in all their fields.
      if parsed.authorities.contains(where: { $0.type == .soa }) {
        lowest = 0
      } else if parsed.answers.isEmpty {
        lowest = nil
      }
      #expect(lifetime(octets) == lowest ?? -1, "seed \(testSeed)")
    }
  }
}
