// ListTimeTests.swift -- how soon a changed file is in use, and a firewall set that was lost is full again.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ListTimeTests {
  @Test func `a changed file is in use within two seconds`() throws {
    try withLists { scene in
      let list = try scene.file("names", "n1.bench.example")
      let daemon = try scene.daemon(listRule([list]))
      for number in 2...4 {
        try scene.replace(list, "n\(number).bench.example")
        try daemon.waitFor(.nxDomain, "n\(number).bench.example", within: .seconds(2))
      }
    }
  }

  /// Not a million: a test's program is built without optimization, and a table waits for 20 times what the last one took.
  @Test func `no query waits while a large list is read and built`() throws {
    try withLists { scene in
      let lines = (0..<20_000).map { "n\($0).listed.example\n" }.joined()
      let list = try scene.lab.folder.write(lines, to: "names")
      let daemon = try scene.daemon(listRule([list]))
      #expect(try ask(daemon.address, "n19999.listed.example").code == .nxDomain)
      try ask(daemon.address, "n1.bench.example")
      try scene.replace(list, "\(lines)n1.bench.example")
      var longest = Duration.zero
      try eventually("the new list", within: .seconds(30)) {
        let (reply, duration) = try timed { try ask(daemon.address, "n1.bench.example") }
        longest = max(longest, duration)
        return reply.code == .nxDomain ? true : nil
      }
      #expect(longest < .milliseconds(500))
    }
  }

  @Test(.enabled(if: Firewall.isPossible, "needs root, network namespaces and nft"))
  func `sets are full again within eleven seconds after the rule set was flushed`() throws {
    try withFirewall { scene in
      try scene.firewall.create()
      let daemon = try scene.daemon(FirewallScene.rule())
      for name in ["www.example", "other.example"] { try ask(daemon.address, name) }
      try ask(daemon.address, "www.example", "AAAA")
      let before = try scene.firewall.addresses()
      #expect(before.count == 4)
      try scene.firewall.nft("flush ruleset")
      try scene.firewall.create()
      try eventually("the addresses", within: .seconds(11)) {
        try scene.firewall.addresses() == before ? true : nil
      }
      try daemon.waitFor(1, lines: "INFO firewall set inet#fw#four was emptied or created again")
      #expect(try scene.simulator.count.transfers == 3)
    }
  }
}
