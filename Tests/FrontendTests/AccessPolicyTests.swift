// AccessPolicyTests.swift -- which addresses may ask.

import DNSWire
import EventLoop
import Glibc
import Routing
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `The access policy` {
  private func allows(_ prefixes: [String], _ address: String) throws -> Bool {
    let policy = AccessPolicy(try prefixes.map { try #require(IPPrefix(text: $0)) })
    return policy.allows(try #require(IPAddress(text: address)))
  }

  @Test func `a network's mask opens the daemon to a network, and not to everybody`() {
    #expect(AccessPolicy.prefixLength(ofMask: [255, 255, 255, 0]) == 24)
    #expect(AccessPolicy.prefixLength(ofMask: [255, 0, 0, 0]) == 8)
    for mask: [UInt8] in [[0, 0, 0, 0], [128, 0, 0, 0]] { #expect(AccessPolicy.prefixLength(ofMask: mask) == 8) }
    #expect(
      AccessPolicy.prefixLength(ofMask: [UInt8](repeating: 255, count: 8) + [UInt8](repeating: 0, count: 8)) == 64)
    #expect(AccessPolicy.prefixLength(ofMask: [UInt8](repeating: 0, count: 16)) == 32)
  }

  @Test func `an empty access list allows no client`() throws {
    for address in ["127.0.0.1", "0.0.0.0", "::1", "::", "::ffff:0.0.0.0"] { #expect(try !allows([], address)) }
  }

  @Test(
    arguments: [
      (
        "127.0.0.0/8", ["127.0.0.0", "127.0.0.1", "127.255.255.255"], ["126.255.255.255", "128.0.0.0", "::1", "7f00::"]
      ),
      ("192.0.2.128/25", ["192.0.2.128", "192.0.2.255"], ["192.0.2.127", "192.0.3.128", "192.0.2.0"]),
      ("192.0.2.1/32", ["192.0.2.1"], ["192.0.2.0", "192.0.2.2", "193.0.2.1"]),
      ("0.0.0.0/0", ["0.0.0.0", "255.255.255.255", "::ffff:192.0.2.1"], ["::", "::1", "::fffe:192.0.2.1"]),
      ("::/0", ["::", "::1", "ffff::"], ["127.0.0.1", "::ffff:127.0.0.1"]),
      ("::1/128", ["::1"], ["::", "::2", "0.0.0.1", "1::1"]),
      ("2001:db8::/32", ["2001:db8::", "2001:db8:ffff::1"], ["2001:db9::", "2001:db7:ffff::", "32.1.13.184"]),
      ("2001:db8::/64", ["2001:db8::1", "2001:db8::ffff:0:0:1"], ["2001:db8:0:1::"]),
      ("2001:db8::8000:0:0:0/65", ["2001:db8::8000:0:0:1"], ["2001:db8::7fff:0:0:1", "2001:db8::"]),
    ] as [(String, [String], [String])])
  func `an access list allows exactly the addresses of a prefix`(prefix: String, inside: [String], outside: [String])
    throws
  {
    for address in inside { #expect(try allows([prefix], address), "\(address)") }
    for address in outside { #expect(try !allows([prefix], address), "\(address)") }
  }

  @Test func `an access list treats an IPv4-mapped address as the IPv4 address`() throws {
    #expect(try allows(["192.0.2.0/24"], "::ffff:192.0.2.7"))
    #expect(try !allows(["192.0.2.0/24"], "::ffff:192.0.3.7"))
    #expect(try !allows(["192.0.2.0/24"], "::fffe:192.0.2.7"))
    #expect(try !allows(["192.0.2.0/24"], "1::ffff:192.0.2.7"))
  }

  @Test func `an access list allows an address in any of its prefixes`() throws {
    let prefixes = ["127.0.0.0/8", "::1/128", "10.0.0.0/8", "fd00::/8"]
    for address in ["127.0.0.1", "::1", "10.1.2.3", "fdff::"] { #expect(try allows(prefixes, address)) }
    for address in ["11.0.0.0", "fc00::1", "::2"] { #expect(try !allows(prefixes, address)) }
  }

  @Test func `an access list agrees with a comparison bit by bit`() {
    var random = SeededGenerator(seed: testSeed)
    var allowed = 0
    for _ in 0..<20_000 {
      // Few bits differ, so that prefixes are hit.
      let isIPv6 = random.oneIn(2)
      let base = random.octets(isIPv6 ? 16 : 4)
      var octets = base
      octets[Int.random(in: 0..<base.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      guard let whole = IPAddress(octets: base), let address = IPAddress(octets: octets),
        let prefix = IPPrefix(whole, length: Int.random(in: 0...(base.count * 8), using: &random))
      else { return }
      let isInside = prefix.contains(address)
      if isInside { allowed += 1 }
      guard AccessPolicy([prefix]).allows(address) == isInside else {
        Issue.record("\(address) in \(prefix)")
        return
      }
    }
    #expect(allowed > 2_000)
  }

  @Test func `a client's class is that of its longest prefix, as a comparison of all prefixes finds it`() throws {
    var random = SeededGenerator(seed: testSeed)
    func address() throws -> IPAddress {
      // Few values, so that prefixes contain each other.
      let octets = (0..<(random.oneIn(2) ? 16 : 4)).map { _ in random.oneIn(4) ? UInt8(128) : 0 }
      return try #require(IPAddress(octets: octets))
    }
    var numbers: Set<Int> = []
    for _ in 0..<200 {
      let rules = try (0..<5).map { _ in
        let clients = try (0..<Int.random(in: 0...3, using: &random)).map { _ in
          let address = try address()
          return try #require(IPPrefix(address, length: Int.random(in: 0...address.octets.count * 8, using: &random)))
        }
        return RouteRule(names: [.subtree(.root)], clients: clients, action: .refused)
      }
      let table = RouteTable(rules: rules, hosts: HostsFile(), settings: SpecialNamesSettings())
      for _ in 0..<50 {
        let client = try address()
        let number = withUnsafePointer(to: SocketAddress(octets: client.octets, port: 53)!.storage) {
          table.group(of: $0)
        }
        #expect(number == table.classes.number(of: client), "seed \(testSeed): \(client)")
        numbers.insert(number)
      }
    }
    #expect(numbers.count > 5)
  }

  @Test(.enabled(if: AllocationTrap.isAvailable))
  func `a rule for some clients decides for them alone, without an allocation`() throws {
    let scene = try QueryPathScene(
      rules: [("example.com", .nxDomain)], clients: ["127.0.0.2", "fd00::/8"], allow: ["0.0.0.0/0", "::/0"])
    for client in ["127.0.0.2", "::ffff:127.0.0.2", "fd01::1"] {
      #expect(try scene.reply(RawQuery(), from: client).responseCode == .nxDomain, "\(client)")
    }
    for client in ["127.0.0.1", "::ffff:127.0.0.1", "2001:db8::1"] {
      #expect(scene.ask(RawQuery().octets, from: client) == .forward(0), "\(client)")
    }
    #expect(scene.allocations(for: RawQuery().octets) == .clean)
  }

  @Test func `refused queries are reported once a minute with the first one's network`() throws {
    let policy = AccessPolicy([try #require(IPPrefix(text: "127.0.0.0/8"))])
    func ask(_ addresses: String...) throws {
      for address in addresses { _ = policy.allows(try #require(IPAddress(text: address))) }
    }
    func report(at second: Int64) -> String? { policy.takeRefused(now: second * 1_000_000_000)?.text }
    try ask("127.0.0.1")
    #expect(report(at: 1) == nil && !policy.hasUnreported(now: 1_000_000_000))
    try ask("192.0.2.7")
    #expect(policy.hasUnreported(now: 1_000_000_000))
    #expect(report(at: 1) == "refused 1 query from 192.0.2.0/24: not in listen.allow")
    try ask("2001:db8:1:234::1", "2001:db8:1:2ff::9", "2001:db8:2::1", "198.51.100.1", "127.0.0.1")
    #expect(report(at: 60) == nil)
    let text = "refused 2 queries from 2001:db8:1:200::/56 and 2 from other networks: not in listen.allow"
    #expect(report(at: 61) == text)
    #expect(report(at: 200) == nil)
    // An IPv4 address in the form of an IPv6 one is an IPv4 address.
    try ask("::ffff:203.0.113.5", "203.0.113.200", "0.0.0.1")
    #expect(report(at: 200) == "refused 2 queries from 203.0.113.0/24 and 1 from other networks: not in listen.allow")
  }

  @Test(.enabled(if: AllocationTrap.isAvailable)) func `refusing a client does not allocate`() throws {
    let scene = try QueryPathScene(allow: [])
    #expect(scene.allocations(for: RawQuery().octets) == .clean)
    #expect(scene.path.hasUnreported(now: 1))
  }

  @Test func `the networks of this machine are known, at least loopback`() throws {
    let networks = AccessPolicy.connectedNetworks()
    #expect(networks.contains(try #require(IPPrefix(text: "127.0.0.0/8"))))
    #expect(networks.allSatisfy { $0.length > 0 })
  }
}

extension AccessPolicy {
  fileprivate func allows(_ address: IPAddress) -> Bool {
    withUnsafePointer(to: SocketAddress(octets: address.octets, port: 53)!.storage) { allows($0) }
  }
}
