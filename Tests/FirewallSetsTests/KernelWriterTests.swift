// KernelWriterTests.swift -- the writer with its thread and the kernel's sets, in a network of the test's own.

import Configuration
import EventLoop
@testable import FirewallSets
import TestSupport
import Testing

@Suite(hasFirewall) struct `A writer with the kernel's firewall sets` {
  @Test func `it adds, notices a flush of the rule set, and is refilled`() throws {
    try ThreadNetwork.onLoop { _, loop in
      let firewall = try Firewall()
      let definition: KeyValuePairs = ["s": "type ipv4_addr; flags timeout;"]
      try firewall.create(definition)
      var notes: [SetNote] = []
      var refills = 0
      var refill: (FirewallSetName) -> Void = { _ in }
      let writer = SetWriter(on: loop, refill: { refill($0) }, note: { notes.append($0) })
      refill = { [weak writer] set in
        refills += 1
        writer?.add(addresses("192.0.2.1", "192.0.2.2", for: 3600), to: [set])
      }
      let set = Firewall.name("s")
      writer.apply([set])
      #expect(await loop.until { writer.statuses[0].added == 2 })
      #expect(try firewall.elements("s") == ["192.0.2.1": "3600", "192.0.2.2": "3600"])
      try firewall.nft("flush ruleset")
      loop.skip(SetWriter.lookInterval)
      #expect(await loop.until { writer.statuses[0].state == "missing" })
      try firewall.nft("add table inet fw")
      try firewall.create(definition)
      // Another answer finds the set; the refill of the beginning was less than ten seconds ago.
      await writer.add(addresses("192.0.2.3", for: 3600), to: [set])
      #expect(await loop.until { writer.statuses[0].state == "ok" })
      writer.refillAll()
      #expect(await loop.until { writer.statuses[0].added == 5 })
      #expect(refills == 2)
      #expect(try firewall.elements("s").count == 3)
      #expect(notes.first == .failing(set, .missingTable))
      writer.close()
    }
  }
}
