// EchoMessageTests.swift -- the octets of echo messages.

import Testing

@testable import Probing

@Suite struct `An echo message` {
  private let message = EchoMessage(sequence: 0x1234, token: (0x0102_0304_0506_0708, 0x1112_1314_1516_1718))

  @Test(arguments: [(false, UInt8(8)), (true, 128)]) func `has 8 octets of header and 16 of content`(
    isIPv6: Bool, type: UInt8
  ) {
    let expected: [UInt8] = [type, 0, 0, 0, 0, 0, 0x12, 0x34, 1, 2, 3, 4, 5, 6, 7, 8, 17, 18, 19, 20, 21, 22, 23, 24]
    #expect(message.octets(isIPv6: isIPv6) == expected)
  }

  @Test func `a reply is read, anything else is not`() {
    var octets = message.octets(isIPv6: false)
    #expect(EchoMessage.reply(octets, isIPv6: false) == nil)
    octets[0] = 0
    // The kernel has written an identifier and a checksum.
    octets.replaceSubrange(2..<6, with: [0xAB, 0xCD, 0xEF, 0x01])
    #expect(EchoMessage.reply(octets, isIPv6: false) == message)
    #expect(EchoMessage.reply(octets, isIPv6: true) == nil)
    #expect(EchoMessage.reply(Array(octets.dropLast()), isIPv6: false) == nil)
    #expect(EchoMessage.reply([], isIPv6: false) == nil)
    octets[20] ^= 1
    #expect(EchoMessage.reply(octets, isIPv6: false) != message)
  }
}
