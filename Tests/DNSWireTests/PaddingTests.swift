// PaddingTests.swift -- responses over TLS are padded (RFC 7830, RFC 8467), others never.

import DNSWire
import TestSupport
import Testing

@Suite struct `Padding of responses` {
  private func respond(
    to query: RawQuery, body: Int = 0, size: Int = 65_535,
    _ options: StreamOptions = StreamOptions(keepalive: 300, isPadded: true)
  ) -> [UInt8] {
    let octets = query.octets
    let read = read(octets).query
    var head = ResponseHead()
    head.bodyLength = body
    var output = [UInt8](repeating: 0xEE, count: size + ResponseWriter.overhead)
    let limits = ResponseLimits(size: size, advertisedPayload: 1232, options: options)
    let length = output.withUnsafeMutableBufferPointer {
      ResponseWriter.complete(read, of: octets.span, head, limits, into: $0.baseAddress!)
    }
    #expect(output[length...].allSatisfy { $0 == 0xEE })
    return Array(output[..<length])
  }

  private let asking = RawQuery { $0.records = [opt(option(12, [0, 0, 0]))] }

  @Test(arguments: [
    // Octets without the option, and those of its data.
    (1, 463), (44, 420), (463, 1), (464, 0), (465, 467), (468, 464), (932, 0), (933, 467),
    // 140 blocks are 65,520 octets; beyond them up to the largest message.
    (65_516, 0), (65_517, 14), (65_530, 1), (65_531, 0), (65_532, -1), (65_535, -1),
  ]) func `a message is padded to the next multiple of 468 octets, and never beyond its limit`(length: Int, count: Int)
  {
    #expect(Padding.count(after: length, limit: 65_535) == count)
  }

  @Test func `a padded response is the plain one with an option of zeros at its end`() throws {
    let question = asking.name + words(1, 1)
    let response = respond(to: asking)
    let padding = 468 - 12 - question.count - 11 - 4
    #expect(
      response == words(asking.id, 0x8180, 1, 0, 0, 1) + question + [0] + words(41, 1232, 0, 0, UInt16(4 + padding))
        + words(12, UInt16(padding)) + [UInt8](repeating: 0, count: padding))
  }

  @Test func `the padding follows the idle timeout`() throws {
    let query = RawQuery { $0.records = [opt(option(12), option(11))] }
    let response = respond(to: query)
    #expect(response.count == 468)
    let options = try #require(Message.parse(response).edns?.options)
    #expect(options.map(\.code) == [.tcpKeepalive, .padding])
    #expect(options[0].data == [1, 44])
  }

  @Test func `only a query with padding gets it, and only where the transport has it`() throws {
    let plain = RawQuery { $0.records = [opt(option(3), option(10, [1, 2, 3, 4, 5, 6, 7, 8]))] }
    #expect(try Message.parse(respond(to: plain)).edns?.options == [])
    #expect(respond(to: RawQuery()).count == RawQuery().octets.count)
    for options in [StreamOptions(), StreamOptions(keepalive: -1), StreamOptions(keepalive: 300)] {
      #expect(try Message.parse(respond(to: asking, options)).edns?.options == [])
    }
    #expect(respond(to: asking, StreamOptions(keepalive: -1, isPadded: true)).count == 468)
    #expect(ResponseLimits.udp(read(asking.octets).query, maximum: 4096).options == StreamOptions())
  }

  @Test func `a response of the largest size has no room for padding, and a truncated one is padded`() throws {
    let around = respond(to: asking, StreamOptions()).count
    for room in 0..<5 {
      let response = respond(to: asking, body: 65_535 - around - room)
      #expect(response.count == (room == 4 ? 65_535 : 65_535 - room))
      #expect(response[2] & 2 == 0)
    }
    let cut = respond(to: asking, body: 65_536 - around)
    #expect(cut.count == 468)
    #expect(cut[2] & 2 == 2)
  }

  @Test(arguments: [-1, 0, 1, 300, 6000, 65_535] as [Int32], [false, true])
  func `options of a stream hold what they were made of`(keepalive: Int32, isPadded: Bool) {
    let options = StreamOptions(keepalive: keepalive, isPadded: isPadded)
    #expect(options.keepalive == keepalive)
    #expect(options.isPadded == isPadded)
    #expect((options == StreamOptions()) == (keepalive < 0 && !isPadded))
  }
}
