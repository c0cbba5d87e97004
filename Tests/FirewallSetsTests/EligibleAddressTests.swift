// EligibleAddressTests.swift -- which addresses of an answer may be in sets.

import DNSWire
@testable import FirewallSets
import Testing

private func eligible(_ texts: [String], includingPrivate: Bool = false) -> [String] {
  texts.map { SetAddress(IPAddress(text: $0)!, lifetime: .seconds(60)) }
    .eligible(includingPrivate: includingPrivate).map { "\($0.address)" }
}

@Suite struct `The addresses for firewall sets` {
  @Test(arguments: [
    "0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.0.1", "169.254.169.254", "224.0.0.1", "239.255.255.255",
    "255.255.255.255",
    "::", "::1", "fe80::1", "febf::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::ffff:224.0.0.1",
  ])
  func `an address that means nothing elsewhere is in no set`(text: String) {
    #expect(eligible([text], includingPrivate: true) == [])
  }

  @Test(arguments: [
    "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "192.0.0.8", "240.0.0.1", "fd00::1", "fec0::1",
    "64:ff9b::192.168.1.1",
  ])
  func `a private address is in a set only if the rule says so`(text: String) {
    #expect(eligible([text]) == [])
    #expect(eligible([text], includingPrivate: true) == ["\(IPAddress(text: text)!)"])
  }

  @Test(arguments: ["192.0.2.1", "8.8.8.8", "223.255.255.255", "2001:db8::1", "2409:8c00::1", "64:ff9b::8.8.8.8"])
  func `a public address may be in a set`(text: String) {
    #expect(eligible([text]) == ["\(IPAddress(text: text)!)"])
  }

  @Test func `an IPv4-mapped address counts as the IPv4 address that packets go to`() {
    #expect(eligible(["::ffff:192.0.2.1", "192.0.2.1"]) == ["192.0.2.1"])
    #expect(eligible(["::ffff:192.168.1.1"]) == [])
  }

  @Test func `an address that occurs twice has its longest lifetime, and no lifetime is zero or endless`() {
    func lifetimes(_ lifetimes: [Duration]) -> [Duration] {
      lifetimes.map { SetAddress(IPAddress(text: "192.0.2.1")!, lifetime: $0) }
        .eligible(includingPrivate: false).map(\.lifetime)
    }
    #expect(lifetimes([.seconds(5), .seconds(9), .seconds(7)]) == [.seconds(9)])
    #expect(lifetimes([.zero]) == [.seconds(1)])
    #expect(lifetimes([.seconds(-5)]) == [.seconds(1)])
    #expect(lifetimes([.seconds(1 << 40)]) == [.seconds(315_360_000)])
  }
}
