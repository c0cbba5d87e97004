// QuerySubnetTests.swift -- the client subnet option of a query (RFC 7871 section 6), valid and malformed.

import DNSWire
import TestSupport
import Testing

@Suite struct `The client subnet of a query` {
  @Test(
    arguments: [
      ([0, 1, 0, 0], 1, 0, 0, 0),
      ([0, 1, 24, 0, 192, 0, 2], 1, 24, 0xC000_0200 << 32, 0),
      ([0, 1, 25, 0, 192, 0, 2, 128], 1, 25, 0xC000_0280 << 32, 0),
      ([0, 1, 32, 0, 192, 0, 2, 1], 1, 32, 0xC000_0201 << 32, 0),
      ([0, 2, 0, 0], 2, 0, 0, 0),
      ([0, 2, 7, 0, 0xFE], 2, 7, 0xFE << 56, 0),
      ([0, 2, 72, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 2, 72, 0x0102_0304_0506_0708, 9 << 56),
      ([0, 2, 128, 0] + Array(repeating: 0xFF, count: 16), 2, 128, .max, .max),
    ] as [([UInt8], UInt16, UInt8, UInt64, UInt64)])
  func `the client subnet of a query is read`(data: [UInt8], family: UInt16, bits: UInt8, high: UInt64, low: UInt64) {
    let result = read(RawQuery { $0.records = [opt(option(8, data))] }.octets)
    #expect(result.verdict == .query)
    #expect(!result.query.hasBrokenSubnet)
    let expected = QueryClientSubnet(family: family, sourceLength: bits, high: high, low: low)
    #expect(result.query.clientSubnet.isSame(as: expected))
  }

  @Test(
    arguments: [
      [], [0], [0, 1, 24], [0, 1, 24, 0, 192, 0], [0, 1, 24, 0, 192, 0, 2, 0], [0, 1, 33, 0, 1, 2, 3, 4, 0],
      [0, 1, 24, 1, 192, 0, 2], [0, 1, 23, 0, 192, 0, 3], [0, 3, 8, 0, 1], [1, 1, 8, 0, 1], [0, 0, 8, 0, 1],
      [0, 2, 129, 0] + Array(repeating: 0, count: 17), [0, 2, 127, 0] + Array(repeating: 0xFF, count: 16),
    ] as [[UInt8]])
  func `a malformed client subnet does not make the query malformed`(data: [UInt8]) {
    let result = read(RawQuery { $0.records = [opt(option(8, data))] }.octets)
    #expect(result.verdict == .query)
    #expect(result.query.hasBrokenSubnet)
  }

  @Test func `a client subnet of family 0 and length 0, as dig +subnet=0 sends it, means none`() {
    let result = read(RawQuery { $0.records = [opt(option(8, [0, 0, 0, 0]))] }.octets)
    #expect(!result.query.hasBrokenSubnet)
    #expect(result.query.clientSubnet.sourceLength == 0)
  }

  @Test func `a valid client subnet after a malformed one is ignored`() {
    let result = read(RawQuery { $0.records = [opt(option(8, [9]), option(8, [0, 1, 8, 0, 10]))] }.octets)
    #expect(result.query.hasBrokenSubnet)
  }

  @Test func `query reader and message parser agree on random client subnet options`() {
    var random = SeededGenerator(seed: testSeed)
    var sound = 0
    for _ in 0..<20_000 {
      let bits = UInt8.random(in: 0...(random.oneIn(2) ? 33 : 130), using: &random)
      let count = max(0, (Int(bits) + 7) / 8 + (random.oneIn(5) ? Int.random(in: -1...1, using: &random) : 0))
      var data: [UInt8] =
        [0, UInt8.random(in: 1...2, using: &random), bits, random.oneIn(20) ? 1 : 0] + random.octets(count)
      if bits % 8 != 0, count > 0, !random.oneIn(5) { data[data.count - 1] &= 0xFF << (8 - bits % 8) }
      let query = read(RawQuery { $0.records = [opt(option(8, data))] }.octets).query
      let other = ClientSubnet(octets: data).flatMap { $0.scope == 0 ? $0.prefix : nil }
      guard query.hasBrokenSubnet == (other == nil) else {
        Issue.record("\(data): \(query.clientSubnet), \(String(describing: other))")
        return
      }
      guard let other else { continue }
      sound += 1
      let shift = { (index: Int) in UInt8(truncatingIfNeeded: query.clientSubnet.high >> UInt64(56 - 8 * index)) }
      #expect(Int(query.clientSubnet.sourceLength) == other.length)
      #expect((0..<4).map(shift) == Array(other.address.octets[..<4]))
    }
    #expect(sound > 2_000)
  }

  @Test func `a client subnet is masked to fewer bits, never to more`() {
    let whole = QueryClientSubnet(family: 2, sourceLength: 128, high: .max, low: .max)
    for bits in 0...128 {
      let masked = whole.masked(to: bits)
      #expect(Int(masked.sourceLength) == bits)
      #expect(masked.high.nonzeroBitCount + masked.low.nonzeroBitCount == bits)
      #expect(masked.high.leadingZeroBitCount == (bits == 0 ? 64 : 0))
      #expect(masked.masked(to: 128).isSame(as: masked))
    }
  }
}
