// NetlinkSetKernelTests.swift -- the kernel's sets in a network of the test's own, made and read by nft(8).

import Configuration
import DNSWire
import EventLoop
@testable import FirewallSets
import Glibc
import JSON
import TestSupport
import Testing

/// A network namespace with a table `inet fw`. On the thread that made it.
final class Firewall {
  struct Failure: Error {}

  /// Whether this process may make namespaces, and has nft(8).
  static let isAvailable: Bool =
    ThreadNetwork.isAvailable && (try? ThreadNetwork.run { _ in _ = try Firewall() }) != nil

  private let folder = TemporaryFolder()
  let exchange = SetExchange(NetlinkSetKernel(), clock: { .now })

  init() throws { try nft("add table inet fw") }

  /// Runs `body` in a namespace and returns its value: what is expected within it is expected by no test.
  static func with<Value>(_ body: @escaping (Firewall) throws -> Value) throws -> Value {
    var value: Value?
    try ThreadNetwork.run { _ in value = try body(Firewall()) }
    return try #require(value)
  }

  func nft(_ command: String) throws {
    guard try run(["nft", command], isQuiet: true) == 0 else { throw Failure() }
  }

  /// Adds sets of `inet fw`, each by its name and what stands between the braces.
  func create(_ sets: KeyValuePairs<String, String>) throws {
    for (name, text) in sets { try nft("add set inet fw \(name) { \(text) }") }
  }

  @discardableResult
  func add(_ addresses: [SetAddress], to sets: String...) -> [SetReport] {
    exchange.add(SetBatch(addresses: addresses, sets: sets.map(Firewall.name)))
  }

  func look(_ sets: String...) -> [SetReport] { exchange.look(sets.map(Firewall.name)) }

  static func name(_ set: String) -> FirewallSetName { try! FirewallSetName(text: "inet#fw#\(set)") }

  /// The elements of a set by nft(8), each with the timeout that it was given, in seconds, or with `forever`.
  func elements(_ set: String) throws -> [String: String] {
    let file = folder.path(of: "list")
    guard try run(["sh", "-c", "nft -j list set inet fw \(set) > \(file)"]) == 0 else { throw Failure() }
    var found: [String: String] = [:]
    try withJSON(folder.read("list") ?? [], orThrow: { _ in Failure() }) { root throws(Failure) in
      for item in root["nftables"]!.elements {
        for element in item["set"]?["elem"]?.elements.map({ $0 }) ?? [] {
          let inner = element["elem"]
          let value = (inner?["val"] ?? element)
          let address = value.text ?? value["prefix"].map { "\($0["addr"]!.text!)/\($0["len"]!.unsigned!)" }
          // A list within the milliseconds after the addition has the whole timeout.
          guard let address else { throw Failure() }
          found[address] = inner?["timeout"]?.unsigned.map { "\($0)" } ?? "forever"
          if let timeout = inner?["timeout"]?.unsigned, let rest = inner?["expires"]?.unsigned, rest > timeout {
            throw Failure()
          }
        }
      }
    }
    return found
  }
}

/// Takes the capabilities of the calling thread only, as the system call does and glibc's function does not.
private func giveUpPrivileges() throws {
  typealias SystemCall = @convention(c) (Int, Int, Int, Int) -> Int
  let function = try #require(dlsym(nil, "syscall"))
  #if arch(x86_64)
    let setresuid = 117
  #else
    let setresuid = 147
  #endif
  let status = unsafeBitCast(function, to: SystemCall.self)(setresuid, -1, 65_534, -1)
  guard status == 0 else { throw Firewall.Failure() }
}

let hasFirewall = ConditionTrait.enabled(
  if: Firewall.isAvailable, "firewall sets need root, ip(8) and nft(8)")

@Suite(hasFirewall) struct `The kernel's firewall sets` {
  @Test func `a set is described by the kernel`() throws {
    let reports = try Firewall.with { firewall in
      try firewall.create([
        "h": "type ipv4_addr;", "t": "type ipv6_addr; flags timeout;", "i": "type ipv4_addr; flags interval;",
        "it": "type ipv6_addr; flags interval, timeout;", "d": "type ipv4_addr; flags dynamic; timeout 5m;",
        "y": "typeof ip daddr; flags timeout;",
      ])
      return firewall.look("h", "t", "i", "it", "d", "y")
    }
    #expect(
      reports.map(\.description) == [
        SetDescription(.ipv4), SetDescription(.ipv6, hasTimeouts: true), SetDescription(.ipv4, isInterval: true),
        SetDescription(.ipv6, hasTimeouts: true, isInterval: true), SetDescription(.ipv4, hasTimeouts: true),
        SetDescription(.ipv4, hasTimeouts: true),
      ])
    #expect(reports.allSatisfy { $0.failure == nil })
  }

  @Test func `what accepts no single addresses is refused for its reason`() throws {
    let failures = try Firewall.with { firewall in
      try firewall.create([
        "c": "type ipv4_addr . inet_service;", "e": "type ether_addr;",
        "k": "type ipv4_addr; flags constant; elements = { 192.0.2.1 };",
      ])
      try firewall.nft("add map inet fw m { type ipv4_addr : mark; }")
      return firewall.look("c", "e", "k", "m", "nowhere").map(\.failure)
        + firewall.exchange.look([try FirewallSetName(text: "inet#other#a"), try FirewallSetName(text: "ip6#fw#a")])
        .map(\.failure)
    }
    #expect(
      failures == [
        .otherKey("ipv4_addr . inet_service"), .otherKey("ether_addr"), .constant, .map, .missing, .missingTable,
        .missingTable,
      ])
  }

  @Test func `an answer goes into sets of every kind`() throws {
    let kinds: KeyValuePairs = [
      "h4": "type ipv4_addr;", "h6": "type ipv6_addr;", "t4": "type ipv4_addr; flags timeout;",
      "t6": "type ipv6_addr; flags timeout;", "i4": "type ipv4_addr; flags interval;",
      "it4": "type ipv4_addr; flags interval, timeout;", "it6": "type ipv6_addr; flags interval, timeout;",
    ]
    let (reports, found) = try Firewall.with { firewall in
      try firewall.create(kinds)
      // Two that follow each other: the end of one interval is the beginning of the next.
      let answer = addresses("192.0.2.255", "192.0.3.0", "2001:db8::1", "2001:db8::2", for: 1000)
      let reports = firewall.add(answer, to: "h4", "h6", "t4", "t6", "i4", "it4", "it6")
      return (reports, try kinds.map { try firewall.elements($0.key) })
    }
    #expect(reports.allSatisfy { $0.added == 2 && $0.failure == nil })
    let four = ["192.0.2.255", "192.0.3.0"]
    let six = ["2001:db8::1", "2001:db8::2"]
    for (kind, elements) in zip(kinds, found) {
      #expect(elements.keys.sorted() == (kind.key.hasSuffix("4") ? four : six), "\(kind.key)")
      let timeout = kind.value.contains("timeout") ? "1000" : "forever"
      #expect(elements.values.allSatisfy { $0 == timeout }, "\(kind.key)")
    }
  }

  @Test(arguments: ["timeout", "interval, timeout", "timeout, dynamic"])
  func `an element is prolonged and never shortened`(flags: String) throws {
    let found = try Firewall.with { firewall in
      try firewall.create(["s": "type ipv4_addr; flags \(flags);"])
      return try [1000, 30, 2000, 1500].map { seconds in
        let reports = firewall.add(addresses("192.0.2.1", "192.0.2.2", for: seconds), to: "s")
        guard reports[0].added == 2 else { throw Firewall.Failure() }
        return try firewall.elements("s")
      }
    }
    #expect(
      found
        == ["1000", "1000", "2000", "2000"].map { ["192.0.2.1": $0, "192.0.2.2": $0] })
  }

  @Test func `what others have added is neither shortened nor made to expire`() throws {
    let found = try Firewall.with { firewall in
      try firewall.create(["s": "type ipv4_addr; flags timeout;"])
      try firewall.nft("add element inet fw s { 192.0.2.1, 192.0.2.2 timeout 2h, 192.0.2.3 timeout 50s }")
      firewall.add(addresses("192.0.2.1", "192.0.2.2", "192.0.2.3", for: 600), to: "s")
      return try firewall.elements("s")
    }
    #expect(found == ["192.0.2.1": "forever", "192.0.2.2": "7200", "192.0.2.3": "600"])
  }

  @Test func `an address within an interval of others is in the set already`() throws {
    let (reports, found) = try Firewall.with { firewall in
      try firewall.create(["s": "type ipv4_addr; flags interval, timeout;"])
      try firewall.nft("add element inet fw s { 192.0.2.0/24, 198.51.100.0/31 timeout 1h }")
      let reports = firewall.add(
        addresses("192.0.2.0", "192.0.2.7", "192.0.2.255", "198.51.100.0", "198.51.100.1", "198.51.100.2", "192.0.3.0"),
        to: "s")
      return (reports, try firewall.elements("s"))
    }
    #expect(reports[0].added == 7 && reports[0].failure == nil)
    #expect(
      found == [
        "192.0.2.0/24": "forever", "198.51.100.0/31": "3600", "198.51.100.2": "100", "192.0.3.0": "100",
      ])
  }

  @Test func `the last address of all has no end, and is prolonged like others`() throws {
    let last = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
    let found = try Firewall.with { firewall in
      try firewall.create([
        "a": "type ipv4_addr; flags interval, timeout;", "b": "type ipv6_addr; flags interval, timeout;",
      ])
      for seconds in [100, 200] { firewall.add(addresses("255.255.255.255", last, for: seconds), to: "a", "b") }
      return try [firewall.elements("a"), firewall.elements("b")]
    }
    #expect(found == [["255.255.255.255": "200"], [last: "200"]])
  }

  @Test func `a full set and a missing one do not keep addresses out of a third`() throws {
    let (reports, found) = try Firewall.with { firewall in
      try firewall.create(["f": "type ipv4_addr; size 1; flags timeout;", "s": "type ipv4_addr;"])
      let reports = firewall.add(addresses("192.0.2.1", "192.0.2.2"), to: "f", "nowhere", "s")
      return (reports, try firewall.elements("s"))
    }
    #expect(reports.map(\.failure) == [.full, .missing, nil])
    #expect(found.count == 2)
  }

  @Test func `three hundred addresses are all there`() throws {
    let many = (0..<300).map {
      SetAddress(IPAddress(octets: [192, 0, UInt8($0 / 256), UInt8($0 % 256)])!, lifetime: .seconds(9))
    }
    let counts = try Firewall.with { firewall in
      try firewall.create(["s": "type ipv4_addr; flags timeout;", "i": "type ipv4_addr; flags interval, timeout;"])
      let reports = firewall.add(many, to: "s", "i")
      return try reports.map(\.added) + [firewall.elements("s").count, firewall.elements("i").count]
    }
    #expect(counts == [300, 300, 300, 300])
  }

  @Test func `a batch for many sets is sent in one piece`() throws {
    let many = (0..<128).map { SetAddress(IPAddress(octets: [192, 0, 2, UInt8($0)])!, lifetime: .seconds(9)) }
    let names = (0..<12).map { "s\($0)" }
    let reports = try Firewall.with { firewall in
      for name in names { try firewall.create([name: "type ipv4_addr; flags interval, timeout;"]) }
      return (0..<2).flatMap { _ in
        firewall.exchange.add(SetBatch(addresses: many, sets: names.map(Firewall.name)))
      }
    }
    #expect(reports.count { $0.added == 128 } == 24)
    #expect(Set(reports.map(\.failure)) == [nil])
  }

  @Test func `a set that was emptied or created again is noticed`() throws {
    let lost = try Firewall.with { firewall in
      var lost: [Bool] = []
      let definition: KeyValuePairs = ["s": "type ipv4_addr; flags timeout;"]
      try firewall.create(definition)
      firewall.add(addresses("192.0.2.1"), to: "s")
      lost.append(firewall.look("s")[0].isLost)
      try firewall.nft("flush set inet fw s")
      lost.append(firewall.add(addresses("192.0.2.1"), to: "s")[0].isLost)
      try firewall.nft("flush ruleset")
      lost.append(firewall.look("s")[0].failure == .missingTable)
      try firewall.nft("add table inet fw")
      try firewall.create(definition)
      lost += [firewall.look("s")[0].isLost, firewall.look("s")[0].isLost]
      return lost
    }
    #expect(lost == [false, true, true, true, false])
  }

  @Test func `additions go on while another process changes the rule set`() throws {
    let added = try Firewall.with { firewall in
      try firewall.create(["s": "type ipv4_addr; flags timeout;"])
      var added = 0
      for index in 1...50 {
        try firewall.nft("add set inet fw x\(index) { type ipv4_addr; }")
        added += firewall.add(addresses("192.0.2.\(index)"), to: "s")[0].added
      }
      return added
    }
    #expect(added == 50)
  }

  @Test func `a table that another program owns is told apart from a missing capability`() throws {
    let failures = try Firewall.with { firewall in
      try firewall.create(["s": "type ipv4_addr; flags timeout;"])
      // It owns the table until its input ends.
      let owner = try #require(popen("nft -i > /dev/null", "w"))
      defer { pclose(owner) }
      fputs("add table inet own { flags owner; }\nadd set inet own s { type ipv4_addr; }\n", owner)
      fflush(owner)
      let owned = try FirewallSetName(text: "inet#own#s")
      guard comes({ firewall.exchange.look([owned])[0].failure == nil }) else { throw Firewall.Failure() }
      return firewall.exchange.add(SetBatch(addresses: addresses("192.0.2.1"), sets: [owned, Firewall.name("s")]))
        .map(\.failure)
    }
    #expect(failures == [.owned, nil])
  }

  @Test func `without the capability a set is not permitted`() throws {
    let failures = try Firewall.with { firewall in
      try firewall.create(["s": "type ipv4_addr; flags timeout;"])
      try giveUpPrivileges()
      return [firewall.add(addresses("192.0.2.1"), to: "s")[0].failure, firewall.look("s")[0].failure]
    }
    #expect(failures == [.notPermitted, .notPermitted])
  }
}
