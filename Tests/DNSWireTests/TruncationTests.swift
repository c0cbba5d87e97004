// TruncationTests.swift -- the addresses that stay in a truncated response.

import DNSWire
import TestSupport
import Testing

@Suite struct `A truncated response` {
  private let name = DomainName(text: "www.example.com")!
  private let target = DomainName(text: "web.example.com")!
  /// Header and question of a query for `name`.
  private let around = 12 + 17 + 4

  @Test func `a truncated response has the whole addresses that fit, and no authority section`() throws {
    for (type, record, size) in [(RecordType.a, a, 16), (.aaaa, aaaa, 28)] as [(RecordType, Record, Int)] {
      let records = (0..<60).map { record(name, $0) }
      let response = try #require(
        ComposedResponse(.noError, to: name, answers: records, authorities: [soa(target)]))
      for limit in 512..<600 {
        let reply = try respond(response, size: limit) { $0.type = type.rawValue }
        let count = (limit - around) / size
        #expect(reply.octets.count == around + count * size)
        #expect(reply.message.header.tc)
        #expect(reply.message.answers == Array(records[..<count]))
        #expect(reply.message.authorities.isEmpty)
      }
    }
  }

  @Test func `a truncated response keeps the room of OPT with its options`() throws {
    let records = (0..<60).map { a(name, $0) }
    var response = try #require(ComposedResponse(.noError, to: name, answers: records))
    response.extendedError = .staleAnswer
    for limit in 512..<540 {
      let reply = try respond(response, size: limit, subnetScope: 24) {
        $0.records = [opt(option(8, [0, 1, 24, 0, 192, 0, 2]))]
      }
      // OPT of 11 octets, the extended error of 6, and the subnet of 11.
      let count = (limit - around - 28) / 16
      #expect(reply.octets.count == around + count * 16 + 28)
      #expect(reply.message.answers == Array(records[..<count]))
      #expect(reply.message.extendedError == .staleAnswer)
      #expect(reply.message.edns?.clientSubnet != nil)
    }
  }

  @Test func `a truncated response has no records for other types, with DO, or without a whole address`() throws {
    let records = (0..<60).map { a(name, $0) }
    let response = try #require(ComposedResponse(.noError, to: name, answers: records))
    let validating: (inout RawQuery) -> Void = { $0.records = [opt(flags: 0x8000)] }
    for change in [validating, { $0.type = 28 }, { $0.type = 16 }] as [(inout RawQuery) -> Void] {
      let reply = try respond(response, size: 512, change)
      #expect(reply.message.header.tc && reply.message.answers.isEmpty)
    }
    for limit in [0, around, around + 15] {
      #expect(try respond(response, size: limit).octets.count == around)
    }
    #expect(try respond(response, size: around + 16).message.answers == [records[0]])
  }

  @Test func `a truncated response starts with the aliases before its addresses, never has them alone`() throws {
    let chain = [cname(name, target)]
    let records = chain + (0..<60).map { a(target, $0) }
    let response = try #require(ComposedResponse(.noError, to: name, answers: records))
    // An alias of 18 octets: the new label, and a pointer.
    let alias = 12 + 6
    for (room, count) in [(alias, 0), (alias + 15, 0), (alias + 16, 2), (alias + 31, 2), (alias + 32, 3)] {
      let message = try respond(response, size: around + room).message
      #expect(message.header.tc)
      #expect(message.answers == Array(records[..<count]))
    }
  }

  @Test func `every truncated response has the longest beginning that fits, with all pointers in it`() throws {
    var random = SeededGenerator(seed: testSeed)
    var (cut, withRecords) = (0, 0)
    for _ in 0..<3_000 {
      let answer = RandomAnswer(&random)
      let response = try answer.response()
      let type: RecordType = random.oneIn(3) ? .aaaa : .a
      let start = 12 + answer.name.octets.count + 4
      let size = Int.random(in: start...(start + response.body.count + 20), using: &random)
      let reply = try respond(response, to: answer.name, size: size) { $0.type = type.rawValue }
      let message = reply.message
      guard message.header.tc else { continue }
      cut += 1
      #expect(reply.octets.count <= size)
      #expect(message.authorities.isEmpty)
      let beginning = answer.answers.indices.map { Array(answer.answers[...$0]) }.last {
        ComposedResponse(.noError, to: answer.name, answers: $0)!.body.count <= size - start
      }
      let expected = beginning.flatMap { $0.contains { $0.type == type } ? $0 : nil } ?? []
      #expect(message.answers.map(folded) == expected.map(folded))
      withRecords += expected.isEmpty ? 0 : 1
    }
    #expect(cut > 1_000 && withRecords > 200, "\(cut) \(withRecords)")
  }

  @Test func `a body that is no sequence of records does no harm`() {
    var random = SeededGenerator(seed: testSeed)
    let octets = RawQuery().octets
    let query = read(octets).query
    for _ in 0..<5_000 {
      var head = ResponseHead()
      head.answers = UInt16.random(in: 0...100, using: &random)
      head.bodyLength = Int.random(in: 600...2_000, using: &random)
      let size = Int.random(in: around...512, using: &random)
      // Nothing lies behind the octets that the writer may read.
      var output = octets + random.octets(size - around)
      let limits = ResponseLimits(size: size, advertisedPayload: 1232)
      let length = output.withUnsafeMutableBufferPointer {
        ResponseWriter.complete(query, of: octets.span, head, limits, into: $0.baseAddress!)
      }
      #expect(length <= size && length >= around)
    }
  }

  private typealias Record = (DomainName, UInt8) -> ResourceRecord

  /// The response within `size` octets, of which the output has only those.
  private func respond(
    _ response: ComposedResponse, to name: DomainName? = nil, size: Int, subnetScope: Int16 = -1,
    _ change: (inout RawQuery) -> Void = { _ in }
  ) throws -> (octets: [UInt8], message: Message) {
    var raw = RawQuery { $0.name = (name ?? self.name).octets }
    change(&raw)
    let octets = raw.octets
    let query = read(octets).query
    var head = ResponseHead(responseCode: response.responseCode.rawValue)
    if let error = response.extendedError { head.extendedError = error.rawValue }
    (head.answers, head.authorities, head.bodyLength) = (response.answers, response.authorities, response.body.count)
    head.subnetScope = subnetScope
    let room = max(0, min(size - query.questionEnd, response.body.count))
    var output = octets[..<query.questionEnd] + response.body[..<room]
    // Of the rest of the body nothing is there, and OPT needs room.
    output += [UInt8](repeating: 0xEE, count: ResponseWriter.overhead)
    let limits = ResponseLimits(size: size, advertisedPayload: 1232)
    let length = output.withUnsafeMutableBufferPointer {
      ResponseWriter.complete(query, of: octets.span, head, limits, into: $0.baseAddress!)
    }
    let reply = Array(output[..<length])
    return (reply, try Message.parse(reply))
  }
}
