// IPNumberTests.swift -- reading addresses in the kernel's form.

import DNSWire
import FairShares
import Glibc
import Testing

@Suite struct IPNumberTests {
  /// The address in the kernel's form, with port 5353, read as a number.
  private func read(_ text: String) throws -> (number: IPNumber, port: UInt16) {
    let octets = try #require(IPAddress(text: text)).octets
    var storage = sockaddr_storage()
    withUnsafeMutableBytes(of: &storage) { raw in
      raw.storeBytes(of: sa_family_t(octets.count == 4 ? AF_INET : AF_INET6), as: sa_family_t.self)
      raw.storeBytes(of: UInt16(5353).bigEndian, toByteOffset: 2, as: UInt16.self)
      raw.baseAddress!.advanced(by: octets.count == 4 ? 4 : 8).copyMemory(from: octets, byteCount: octets.count)
    }
    return withUnsafePointer(to: storage) { (IPNumber($0), IPNumber.port($0)) }
  }

  @Test(arguments: ["0.0.0.0", "192.0.2.1", "255.255.255.255", "::", "2001:db8::1", "::ffff:192.0.2.1"])
  func `the octets of a number are those of the address`(text: String) throws {
    let (number, port) = try read(text)
    let address = try #require(IPAddress(text: text))
    #expect(number.octets == address.octets)
    #expect(number.isIPv6 == address.isIPv6)
    #expect(port == 5353)
  }

  @Test func `only an IPv4-mapped address is unmapped`() throws {
    #expect(try read("::ffff:192.0.2.1").number.unmapped == read("192.0.2.1").number)
    for text in ["192.0.2.1", "::192.0.2.1", "1::ffff:192.0.2.1", "::1:192.0.2.1"] {
      #expect(try read(text).number.unmapped == read(text).number)
    }
  }
}
