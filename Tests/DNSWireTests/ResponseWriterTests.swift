// ResponseWriterTests.swift -- header, question and OPT of a response, and truncation.

import DNSWire
import TestSupport
import Testing

@Suite struct `The writer of responses` {
  @Test func `a response copies ID, OPCODE, RD and CD, sets QR and RA, and clears Z, TC and AA`() throws {
    for flags: UInt16 in stride(from: 0, through: 0x7FFF, by: 1) where flags & 0xF == 0 {
      let response = respond(
        to: RawQuery {
          $0.flags = flags; $0.id = flags ^ 0x5A5A
        }, size: 512)
      let expected = 0x8080 | flags & (0x7800 | 0x0100 | 0x0010)
      guard response[0...3].elementsEqual(words(flags ^ 0x5A5A, expected)) else {
        Issue.record("\(flags): \(response[0...3])")
        return
      }
    }
  }

  @Test func `a response has AA for local zones only`() throws {
    var head = ResponseHead()
    head.isAuthoritative = true
    #expect(try Message.parse(respond(to: RawQuery(), head, size: 512)).header.aa)
  }

  @Test func `a response has AD only if the answer is validated and the client set AD or DO`() throws {
    for isValidated in [false, true] {
      for (flags, records) in [
        (0x0100, []), (0x0120, []), (0x0100, [opt()]), (0x0100, [opt(flags: 0x8000)]), (0x0120, [opt(flags: 0x8000)]),
      ] as [(UInt16, [[UInt8]])] {
        var head = ResponseHead()
        head.isAuthenticated = isValidated
        let response = respond(
          to: RawQuery {
            $0.flags = flags; $0.records = records
          }, head, size: 512)
        let understands = flags & 0x20 != 0 || records.contains(opt(flags: 0x8000))
        #expect(try Message.parse(response).header.ad == (isValidated && understands))
      }
    }
  }

  @Test func `a response echoes the question octet by octet`() throws {
    let name: [UInt8] = Array("\u{3}WwW\u{7}eXaMpLe\u{3}cOm\u{0}".utf8)
    let query = RawQuery {
      $0.name = name; $0.type = 0xABCD; $0.qclass = 0x0102
    }
    let response = respond(to: query, size: 512)
    #expect(Array(response[12...]) == name + words(0xABCD, 0x0102))
    #expect(response[4...11].elementsEqual(words(1, 0, 0, 0)))
  }

  @Test func `the response to a query without readable question is a header`() {
    let head = ResponseHead(responseCode: 1)
    for query in [
      RawQuery { $0.name = [0xC0, 12] },
      RawQuery {
        $0.name = []; $0.counts = [0, 0, 0, 0]
      },
    ] {
      #expect(respond(to: query, head, size: 512) == words(0x1234, 0x8181, 0, 0, 0, 0))
    }
  }

  @Test func `a response to OPT has OPT with our payload size, the DO bit and the upper bits of the code`() throws {
    for code: UInt16 in [0, 1, 5, 16, 0xFFF] {
      for flags: UInt16 in [0, 0x8000, 0x7FFF, 0xFFFF] {
        let query = RawQuery {
          $0.records = [opt(payload: 4096, flags: flags, option(65_001, [1]), option(10, [1, 2, 3]))]
        }
        let message = try Message.parse(respond(to: query, ResponseHead(responseCode: code), size: 1232))
        let edns = try #require(message.edns)
        #expect(message.responseCode.rawValue == code)
        #expect(edns.udpPayloadSize == 1232)
        #expect(edns.version == 0)
        #expect(edns.dnssecOK == (flags & 0x8000 != 0))
        #expect(edns.options.isEmpty)
        let plain = try Message.parse(respond(to: RawQuery(), ResponseHead(responseCode: code & 0xF), size: 1232))
        #expect(plain.edns == nil)
        #expect(plain.responseCode.rawValue == code & 0xF)
      }
    }
  }

  @Test func `a response to OPT includes the extended error`() throws {
    let head = ResponseHead(responseCode: 5, extendedError: 18)
    let edns = try Message.parse(respond(to: RawQuery { $0.records = [opt()] }, head, size: 512)).edns
    #expect(edns?.extendedErrors == [ExtendedErrorReport(code: .prohibited)])
    #expect(respond(to: RawQuery(), head, size: 512).count == RawQuery().octets.count)
  }

  @Test func `a response has the idle timeout over TCP for a client that asks, and never over UDP`() throws {
    let asking = RawQuery { $0.records = [opt(option(11))] }
    let silent = RawQuery { $0.records = [opt()] }
    let overTCP = try Message.parse(respond(to: asking, size: 65_535, keepalive: 100))
    #expect(overTCP.edns?.options == [EDNS.Option(code: .tcpKeepalive, data: [0, 100])])
    #expect(try Message.parse(respond(to: asking, size: 65_535, keepalive: 0)).edns?.options.count == 1)
    #expect(try Message.parse(respond(to: asking, size: 1232, keepalive: -1)).edns?.options == [])
    #expect(try Message.parse(respond(to: silent, size: 65_535, keepalive: 100)).edns?.options == [])
    #expect(try Message.parse(respond(to: RawQuery(), size: 65_535, keepalive: 100)).edns == nil)
  }

  @Test(
    arguments: [
      [0, 1, 0, 0], [0, 1, 1, 0, 128], [0, 1, 24, 0, 192, 0, 2], [0, 1, 32, 0, 192, 0, 2, 1], [0, 2, 0, 0],
      [0, 2, 56, 0, 1, 2, 3, 4, 5, 6, 7], [0, 2, 57, 0, 1, 2, 3, 4, 5, 6, 7, 128],
      [0, 2, 128, 0] + Array(1...16),
    ] as [[UInt8]])
  func `a response echoes the client subnet with the scope`(data: [UInt8]) throws {
    var head = ResponseHead()
    head.subnetScope = 20
    let query = RawQuery { $0.records = [opt(option(8, data))] }
    let edns = try Message.parse(respond(to: query, head, size: 512)).edns
    #expect(edns?.options == [EDNS.Option(code: .clientSubnet, data: Array(data[..<3]) + [20] + data[4...])])
    #expect(try Message.parse(respond(to: query, size: 512)).edns?.options == [])
  }

  @Test func `a response is truncated if and only if it exceeds the limit`() throws {
    let options = option(11) + option(8, [0, 1, 24, 0, 192, 0, 2])
    for records in [[], [opt()], [opt(options)]] as [[[UInt8]]] {
      let query = RawQuery { $0.records = records }
      var head = ResponseHead(responseCode: 0, extendedError: 3)
      head.subnetScope = records.isEmpty ? -1 : 24
      head.answers = 1
      head.authorities = 2
      let around = respond(to: query, head, size: 65_535, keepalive: 1).count
      for size in [512, 1232, 4096] {
        let room = size - around
        head.bodyLength = room
        let whole = respond(to: query, head, body: Array(repeating: 0xAB, count: room), size: size, keepalive: 1)
        #expect(whole.count == size)
        #expect(whole[2] & 2 == 0)
        #expect(whole[6...9].elementsEqual(words(1, 2)))
        head.bodyLength = room + 1
        let cut = respond(to: query, head, body: Array(repeating: 0xAB, count: room + 1), size: size, keepalive: 1)
        #expect(cut.count == around)
        let message = try Message.parse(cut)
        #expect(message.header.tc)
        #expect(message.answers.isEmpty && message.authorities.isEmpty && message.questions.count == 1)
        #expect((message.edns != nil) == !records.isEmpty)
      }
    }
  }

  @Test func `the limit over UDP is the client's payload size or the configured maximum`() {
    for (client, maximum, size) in [
      (nil, 1232, 512), (100, 1232, 512), (800, 1232, 800), (4096, 1232, 1232), (65_535, 4096, 4096),
    ]
      as [(UInt16?, Int, Int)]
    {
      let query = read(RawQuery { $0.records = client.map { [opt(payload: $0)] } ?? [] }.octets).query
      let limits = ResponseLimits.udp(query, maximum: maximum)
      #expect(limits.size == size)
      #expect(Int(limits.advertisedPayload) == maximum)
      #expect(limits.options == StreamOptions())
    }
  }

  @Test func `our parser and dnspython read responses to random queries, within the limit`() throws {
    var random = SeededGenerator(seed: testSeed)
    var mutator = MessageMutator(seed: testSeed)
    var responses: [[UInt8]] = []
    for _ in 0..<5_000 {
      let octets = mutator.damagedQuery()
      let (verdict, query) = read(octets)
      guard verdict != .drop else { continue }
      var head = ResponseHead(responseCode: UInt16.random(in: 0...16, using: &random))
      head.isAuthenticated = random.oneIn(2)
      if random.oneIn(2) { head.extendedError = UInt16.random(in: 0...24, using: &random) }
      if random.oneIn(2) { head.subnetScope = Int16.random(in: 0...128, using: &random) }
      let size = Int.random(in: 512...1500, using: &random)
      let keepalive: Int32 = random.oneIn(2) ? -1 : 300
      let body =
        random.oneIn(3) ? [] : record(owner: [0], type: 65_280, random.octets(Int.random(in: 0...1600, using: &random)))
      head.answers = body.isEmpty ? 0 : 1
      head.bodyLength = body.count
      let isPadded = random.oneIn(2)
      let response = respond(to: octets, query, head, body: body, size: size, keepalive: keepalive, isPadded: isPadded)
      let message = try Message.parse(response)
      #expect(response.count <= size)
      #expect((message.edns != nil) == query.hasOPT)
      if query.hasOPT, query.wantsPadding, isPadded {
        #expect(response.count % 468 == 0 || response.count > size - 468)
      }
      #expect(message.header.tc || message.answers.count == Int(head.answers))
      #expect(response[12..<query.questionEnd].elementsEqual(octets[12..<query.questionEnd]))
      responses.append(response)
    }
    #expect(try IndependentParser.verdicts(on: responses).allSatisfy { $0.hasPrefix("ok") })
  }
}

/// The response to a query that was read. As much of the body as the size allows is put in its place.
private func respond(
  to octets: [UInt8], _ query: Query, _ head: ResponseHead, body: [UInt8], size: Int, keepalive: Int32,
  isPadded: Bool = false
) -> [UInt8] {
  let room = size + ResponseWriter.overhead
  var output = [UInt8](repeating: 0xEE, count: room + 8)
  let count = min(body.count, size - query.questionEnd)
  output.replaceSubrange(query.questionEnd..<(query.questionEnd + count), with: body[..<count])
  let limits = ResponseLimits(
    size: size, advertisedPayload: 1232, options: StreamOptions(keepalive: keepalive, isPadded: isPadded))
  let length = output.withUnsafeMutableBufferPointer {
    ResponseWriter.complete(query, of: octets.span, head, limits, into: $0.baseAddress!)
  }
  #expect(output[room...].allSatisfy { $0 == 0xEE })
  return Array(output[..<length])
}

private func respond(
  to query: RawQuery, _ head: ResponseHead = ResponseHead(), body: [UInt8] = [], size: Int, keepalive: Int32 = -1,
  isPadded: Bool = false
) -> [UInt8] {
  let octets = query.octets
  return respond(to: octets, read(octets).query, head, body: body, size: size, keepalive: keepalive, isPadded: isPadded)
}
