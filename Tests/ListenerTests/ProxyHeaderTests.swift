// ProxyHeaderTests.swift -- headers of haproxy's proxy-protocol.txt, section 2.2, whole, in pieces and broken.

import EventLoop
import Listener
import Testing

/// The signature: `\x0D\x0A\x0D\x0A\x00\x0D\x0A\x51\x55\x49\x54\x0A`.
private let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

private func header(_ command: UInt8, _ family: UInt8, _ rest: [UInt8], length: Int? = nil) -> [UInt8] {
  let length = length ?? rest.count
  return signature + [command, family, UInt8(length >> 8), UInt8(length & 0xFF)] + rest
}

/// 192.0.2.1 port 56324 to 192.0.2.53 port 853.
private let ipv4: [UInt8] = [192, 0, 2, 1, 192, 0, 2, 53, 0xDC, 0x04, 0x03, 0x55]

/// 2001:db8::1 port 56324 to 2001:db8::53 port 853.
private let ipv6: [UInt8] =
  [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1]
  + [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [0x53] + [0xDC, 0x04, 0x03, 0x55]

private func parse(_ octets: [UInt8]) -> ProxyHeader { ProxyHeader(octets.span) }

private func client(_ text: String, length: Int) throws -> ProxyHeader {
  .client(try #require(SocketAddress(text: text)), length: length)
}

@Suite struct `The PROXY header` {
  @Test func `names the client of a connection over IPv4 or IPv6`() throws {
    #expect(parse(header(0x21, 0x11, ipv4)) == (try client("192.0.2.1:56324", length: 28)))
    #expect(parse(header(0x21, 0x21, ipv6)) == (try client("[2001:db8::1]:56324", length: 52)))
  }

  @Test func `names an IPv4 client in the form of IPv6 as itself`() throws {
    let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
    let rest = mapped + [192, 0, 2, 1] + mapped + [192, 0, 2, 53] + [0xDC, 0x04, 0x03, 0x55]
    #expect(parse(header(0x21, 0x21, rest)) == (try client("192.0.2.1:56324", length: 52)))
  }

  @Test func `may have TLVs, which are skipped, and may be followed by the client's octets`() throws {
    // PP2_TYPE_ALPN "h2", and PP2_TYPE_CRC32C, which is not checked.
    let values: [UInt8] = [0x01, 0x00, 0x02, 0x68, 0x32, 0x03, 0x00, 0x04, 1, 2, 3, 4]
    let octets = header(0x21, 0x11, ipv4 + values)
    #expect(parse(octets) == (try client("192.0.2.1:56324", length: 40)))
    #expect(parse(octets + [0x16, 0x03, 0x01]) == (try client("192.0.2.1:56324", length: 40)))
  }

  @Test func `means the proxy itself with LOCAL, whatever follows`() {
    #expect(parse(header(0x20, 0x00, [])) == .local(length: 16))
    #expect(parse(header(0x20, 0x11, ipv4)) == .local(length: 28))
    #expect(parse(header(0x20, 0xFF, [1, 2, 3])) == .local(length: 19))
  }

  @Test(
    arguments: [
      // UNSPEC, UDP over both, streams and datagrams of Unix sockets, families and protocols that do not exist.
      (0x21, 0x00), (0x21, 0x12), (0x21, 0x22), (0x21, 0x31), (0x21, 0x32), (0x21, 0x13), (0x21, 0x41), (0x21, 0x10),
      // Commands that do not exist, and other versions.
      (0x22, 0x11), (0x2F, 0x11), (0x11, 0x11), (0x31, 0x11), (0x01, 0x11),
    ] as [(UInt8, UInt8)]) func `of another kind is refused`(command: UInt8, family: UInt8)
  {
    #expect(parse(header(command, family, [UInt8](repeating: 0, count: 216))) == .refused)
  }

  @Test func `of version 1, and what is no header at all, is refused with the first octet that differs`() {
    #expect(parse(Array("PROXY TCP4 192.0.2.1 192.0.2.53 56324 853\r\n".utf8)) == .refused)
    #expect(parse([0x16]) == .refused)
    for position in signature.indices {
      var octets = Array(signature[...position])
      octets[position] ^= 0x20
      #expect(parse(octets) == .refused)
    }
  }

  @Test func `that is too short for its addresses is refused`() {
    #expect(parse(header(0x21, 0x11, Array(ipv4.dropLast()))) == .refused)
    #expect(parse(header(0x21, 0x21, ipv4)) == .refused)
    #expect(parse(header(0x21, 0x11, [])) == .refused)
  }

  @Test func `has at most 536 octets`() throws {
    let rest = ipv4 + [UInt8](repeating: 0, count: 508)
    #expect(parse(header(0x21, 0x11, rest)) == (try client("192.0.2.1:56324", length: 536)))
    #expect(parse(header(0x21, 0x11, rest + [0])) == .refused)
    // Before the rest has come.
    #expect(parse(header(0x21, 0x11, [], length: 521)) == .refused)
    #expect(parse(header(0x20, 0x00, [], length: 65_535)) == .refused)
  }

  @Test(arguments: [header(0x21, 0x11, ipv4 + [4, 0, 1, 0]), header(0x21, 0x21, ipv6), header(0x20, 0x00, [])])
  func `in any pieces is the same, and no octet after it is asked for`(octets: [UInt8]) {
    for count in octets.indices {
      guard case .incomplete(let missing) = parse(Array(octets[..<count])) else {
        Issue.record("\(count) octets")
        continue
      }
      #expect(missing >= 1 && count + missing <= octets.count)
    }
    // As a reader does it that reads what is asked for.
    var read: [UInt8] = []
    while case .incomplete(let missing) = parse(read) { read += octets[read.count...].prefix(missing) }
    #expect(read == octets)
  }
}
