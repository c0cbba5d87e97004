// SetTests.swift -- addresses of answers in nftables sets of a machine of its own, seen by nft.

import DNSWire
import Foundation
import Testing

@Suite(.blocking, .enabled(if: Firewall.isPossible, "needs root, network namespaces and nft"))
struct SetTests {
  private static let four: Set<String> = ["93.184.216.34", "93.184.216.35"]

  @Test func `addresses are in the sets when their answer arrives: both families, and hints`() throws {
    try withFirewall { scene in
      try scene.firewall.create()
      let daemon = try scene.daemon(FirewallScene.rule())
      try scene.awaitFirstRefill()
      #expect(Set(try ask(daemon.address, "www.example").data) == SetTests.four)
      #expect(try scene.firewall.addresses() == SetTests.four)
      #expect(try ask(daemon.address, "www.example", "AAAA", over: .tcp).data == ["2606:2800:220::1"])
      #expect(try Set(scene.firewall.elements("six").keys) == ["2606:2800:220::1"])
      #expect(try ask(daemon.address, "www.example", "HTTPS").data.count == 1)
      let hints: Set = ["93.184.216.36", "2606:2800:220::2"]
      #expect(try scene.firewall.addresses() == SetTests.four.union(hints).union(["2606:2800:220::1"]))
      let rows = try scene.rows()
      #expect(rows == ["inet#fw#four ipv4_addr 3 0 0 ok", "inet#fw#six ipv6_addr 2 0 0 ok"])
      #expect(try scene.control("sets").ending == .exited(0))
      // Names of other rules are not there.
      try ask(daemon.address, "www.example.com")
      #expect(try scene.firewall.addresses().count == 5)
    }
  }

  @Test func `a firewall that lets only addresses of the set pass has the address when the client connects`() throws {
    try withFirewall { scene in
      try scene.simulator.setZone((1...20).map { "n\($0).example. 300 A 93.184.217.\($0)" }.joined(separator: "\n"))
      try scene.firewall.create()
      let network = "add rule inet fw out ip daddr 93.184.217.0/24"
      try scene.firewall.nft(
        "add counter inet fw passed", "add counter inet fw dropped",
        "add chain inet fw out { type filter hook output priority 0; }",
        "\(network) ip daddr @four counter name passed accept", "\(network) counter name dropped drop")
      let daemon = try scene.daemon(FirewallScene.rule())
      for number in 1...20 {
        let address = "93.184.217.\(number)"
        #expect(try ask(daemon.address, "n\(number).example").data == [address])
        _ = try ChildProcess.run(scene.machine.prefix + ["bash", "-c", "echo > /dev/udp/\(address)/9"])
      }
      #expect(try scene.firewall.nft("list counter inet fw passed").contains("packets 20 "))
      #expect(try scene.firewall.nft("list counter inet fw dropped").contains("packets 0 "))
    }
  }

  @Test func `an element lives for its TTL and set_keep, and no answer shortens it`() throws {
    try withFirewall { scene in
      try scene.firewall.create()
      let daemon = try scene.daemon(FirewallScene.rule())
      func timeout(_ ttl: Int) throws -> Int {
        try scene.simulator.setZone("www.example. \(ttl) A 93.184.216.34")
        #expect(try scene.control("flush", "www.example").ending == .exited(0))
        #expect(try ask(daemon.address, "www.example").ttl == UInt32(ttl))
        let element = try #require(try scene.firewall.elements("four")["93.184.216.34"])
        let (timeout, expires) = (try #require(element.timeout), try #require(element.expires))
        #expect((timeout - 30...timeout).contains(expires))
        return timeout
      }
      #expect(try timeout(300) == 400)
      #expect(try timeout(1_000) == 1_100)
      #expect(try timeout(20) == 1_100)
      // A hit changes nothing.
      try ask(daemon.address, "www.example")
      #expect(try scene.rows().first == "inet#fw#four ipv4_addr 3 0 0 ok")
    }
  }

  @Test func `a refresh prolongs`() throws {
    try withFirewall { scene in
      try scene.firewall.create()
      try scene.simulator.setZone("www.example. 3 A 93.184.216.34")
      let keep = "[refresh]\nkeep = [\"www.example\"]\ntypes = [\"A\"]\n"
      let daemon = try scene.daemon(FirewallScene.rule() + keep)
      func expires() throws -> Int? { try scene.firewall.elements("four")["93.184.216.34"]?.expires }
      // No client asks: the daemon's own answers are enough.
      let first = try eventually("an element") { try expires() }
      #expect((90...103).contains(first))
      let lower = try eventually("time that passes", within: .seconds(10)) { () -> Int? in
        try expires().flatMap { $0 < 102 ? $0 : nil }
      }
      try eventually("more time", within: .seconds(10)) { try expires() ?? 0 > lower ? true : nil }
      #expect(try ask(daemon.address, "www.example").data == ["93.184.216.34"])
    }
  }

  @Test func `expired data that is served after a failure prolongs by set_keep first`() throws {
    try withFirewall { scene in
      try scene.firewall.create()
      let daemon = try scene.daemon(FirewallScene.rule())
      #expect(try ask(daemon.address, "short.example").data == ["93.184.216.41"])
      try scene.simulator.fault("kind=status&code=500")
      try scene.firewall.nft("delete element inet fw four { 93.184.216.41 }")
      try eventually("expired data") { try ask(daemon.address, "short.example").errors.contains(3) ? true : nil }
      let element = try #require(try scene.firewall.elements("four")["93.184.216.41"])
      #expect(try #require(element.timeout) >= 100)
    }
  }

  @Test func `data that may be served expired at once, or for ever, has its addresses in the sets for as long`() throws
  {
    try withFirewall { scene in
      for (terms, least) in [
        ("stale = \"immediate\"", 86_400 + 300 + 100), ("immutable = true", 315_360_000),
      ] {
        try scene.firewall.create()
        let daemon = try scene.daemon(FirewallScene.rule("set_keep = \"100s\"\n\(terms)"))
        try ask(daemon.address, "www.example")
        let element = try #require(try scene.firewall.elements("four")["93.184.216.34"])
        #expect(element.timeout == least, "\(terms)")
        daemon.end()
        try scene.firewall.nft("delete table inet fw")
      }
    }
  }

  @Test func `sets without timeouts keep addresses for good, and interval sets take them`() throws {
    try withFirewall { scene in
      for flags in ["", "flags interval,timeout;", "flags interval; auto-merge;"] {
        try scene.firewall.create(flags)
        let daemon = try scene.daemon(FirewallScene.rule())
        #expect(try ask(daemon.address, "www.example").data.count == 2)
        let elements = try scene.firewall.elements("four")
        if flags.contains("auto-merge") {
          // The two addresses are one interval, which JSON has in another form.
          #expect(try scene.firewall.nft("list set inet fw four").contains("93.184.216.34"))
        } else {
          #expect(Set(elements.keys) == SetTests.four, "\(flags)")
          #expect(elements.values.allSatisfy { ($0.timeout == nil) == !flags.contains("timeout") }, "\(flags)")
        }
        daemon.end()
        try scene.firewall.nft("delete table inet fw")
      }
    }
  }

  @Test func `private addresses are added for LocalDNS alone, and those of this machine never`() throws {
    try withFirewall { scene in
      let records = ["10.0.0.1", "127.0.0.1", "169.254.0.1", "224.0.0.1", "0.0.0.0", "93.184.216.34"]
      let six = ["fd00::1", "::1", "fe80::1", "ff02::1", "::"]
      try scene.simulator.setZone(
        records.map { "www.example. 300 A \($0)\n" }.joined() + six.map { "www.example. 300 AAAA \($0)\n" }.joined())
      try scene.firewall.create()
      let daemon = try scene.daemon(FirewallScene.rule())
      #expect(try ask(daemon.address, "www.example").data.count == 6)
      #expect(try ask(daemon.address, "www.example", "AAAA").data.count == 5)
      #expect(try scene.firewall.addresses() == ["93.184.216.34"])
      daemon.end()

      let network = try PlainServer(
        addresses: ["www.example.": "10.0.0.1", "lo.example.": "127.0.0.1"], at: Address(scene.machine.world, 0))
      scene.settings.localServers = [network.address]
      let local = try scene.daemon(FirewallScene.rule().replacing("\"json\"", with: "\"localdns\""))
      #expect(try ask(local.address, "www.example").data == ["10.0.0.1"])
      #expect(try ask(local.address, "lo.example").data == ["127.0.0.1"])
      #expect(try scene.firewall.addresses() == ["93.184.216.34", "10.0.0.1"])
    }
  }

  @Test func `sets refill adds all cached addresses again at once`() throws {
    try withFirewall { scene in
      try scene.firewall.create()
      let daemon = try scene.daemon(FirewallScene.rule())
      for name in ["www.example", "other.example"] { try ask(daemon.address, name) }
      let before = try scene.firewall.addresses()
      #expect(before.count == 3)
      try scene.firewall.nft("flush ruleset")
      try scene.firewall.create()
      #expect(try scene.firewall.addresses().isEmpty)
      #expect(try scene.control("sets", "refill").ending == .exited(0))
      #expect(try scene.firewall.addresses() == before)
      #expect(try scene.simulator.count.transfers == 2)
    }
  }

  @Test func `sets shows what the kernel has now, also of sets that no answer has used`() throws {
    try withFirewall { scene in
      let daemon = try scene.daemon(FirewallScene.rule())
      #expect(try scene.control("sets").ending == .exited(2))
      try scene.firewall.create()
      #expect(try scene.control("sets").ending == .exited(0))
      try ask(daemon.address, "www.example")
      try scene.firewall.nft("flush ruleset")
      let lost = try scene.control("sets", "refill")
      #expect(lost.ending == .exited(2) && lost.output.contains("missing"), "\(lost)")
      try scene.firewall.create()
      #expect(try scene.control("sets", "refill").ending == .exited(0))
      #expect(try !scene.firewall.addresses().isEmpty)
    }
  }

  @Test func `a set that is missing costs no answer, and gets all addresses when it is created`() throws {
    try withFirewall { scene in
      let daemon = try scene.daemon(FirewallScene.rule())
      for name in ["www.example", "other.example"] {
        #expect(try !ask(daemon.address, name).data.isEmpty)
        #expect(try ask(daemon.address, name, "AAAA").code == .noError)
      }
      let line = "ERROR firewall set inet#fw#four gets no addresses: missing; create it with: "
      try daemon.waitForLog(
        "\(line)nft add table inet fw && nft add set inet fw four '{ type ipv4_addr; flags timeout; }'\n")
      for set in ["four", "six"] { try daemon.waitFor(1, lines: "ERROR firewall set inet#fw#\(set)") }
      let shown = try scene.control("sets")
      #expect(shown.ending == .exited(2) && shown.output.contains(/inet#fw#four +- +0 +4 +0 +missing\n/), "\(shown)")
      // What the line says.
      let commands = try #require(
        daemon.log.firstMatch(of: /inet#fw#four gets no addresses: .*?create it with: (.*)\n/))
      let (ending, _, error) = try ChildProcess.run(scene.machine.prefix + ["sh", "-c", String(commands.1)])
      #expect(ending == .exited(0), "\(error)")
      try scene.firewall.nft("add set inet fw six { type ipv6_addr; flags timeout; }")
      #expect(try ask(daemon.address, "short.example").data == ["93.184.216.41"])
      #expect(try scene.firewall.elements("four")["93.184.216.41"] != nil)
      try eventually("all addresses", within: .seconds(20)) {
        try scene.firewall.addresses().isSuperset(of: SetTests.four.union(["93.184.216.40", "93.184.216.41"]))
          ? true : nil
      }
      try daemon.waitFor(1, lines: "INFO firewall set inet#fw#four gets addresses again")
      try eventually("both sets", within: .seconds(20)) { try scene.control("sets").ending == .exited(0) ? true : nil }
    }
  }

  @Test func `without the privilege answers go out, and log and sets name the drop-in`() throws {
    try withFirewall { scene in
      try scene.firewall.create()
      let daemon = try scene.daemon(
        FirewallScene.rule(), prefix: ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", "--"])
      for number in 0..<3 {
        #expect(try scene.control("flush", "www.example").ending == .exited(0), "\(number)")
        #expect(Set(try ask(daemon.address, "www.example").data) == SetTests.four)
      }
      let advice = "not permitted; grant CAP_NET_ADMIN, for a service with the drop-in httpdnsd-sets.conf\n"
      try daemon.waitForLog("ERROR firewall set inet#fw#four gets no addresses: \(advice)")
      try daemon.waitFor(1, lines: "ERROR firewall set inet#fw#four")
      let shown = try scene.control("sets")
      #expect(
        shown.ending == .exited(2) && shown.output.contains(/inet#fw#four +- +0 +\d+ +0 +not permitted\n/), "\(shown)")
      #expect(try scene.firewall.addresses().isEmpty)
    }
  }

  @Test func `after a restart the cache file fills the sets`() throws {
    try withFirewall { scene in
      try scene.firewall.create()
      let text = FirewallScene.rule() + "[cache]\npersist = \"\(scene.lab.folder.path)/cache\"\n"
      let first = try scene.daemon(text)
      for name in ["www.example", "other.example"] { try ask(first.address, name) }
      try ask(first.address, "www.example", "AAAA")
      let before = try scene.firewall.addresses()
      first.end()
      try scene.firewall.nft("flush ruleset")
      try scene.firewall.create()
      let asked = try scene.simulator.count.transfers
      _ = try scene.daemon(text)
      try eventually("the addresses") { try scene.firewall.addresses() == before ? true : nil }
      #expect(try scene.simulator.count.transfers == asked)
    }
  }

  @Test func `a reload adds and removes sets, and the thread exists only where a rule has some`() throws {
    try withFirewall { scene in
      try scene.firewall.create()
      let daemon = try scene.daemon("[[rule]]\nnames = [\"example\"]\nuse = \"json\"\n")
      try ask(daemon.address, "www.example")
      func hasThread() -> Bool { daemon.threads.contains { $0.name == "firewall sets" } }
      #expect(!hasThread())
      #expect(try scene.control("sets").output == "no rule has sets\n")
      #expect(try scene.firewall.addresses().isEmpty)
      func reload(_ more: String) throws {
        scene.settings.more = more
        try daemon.reload(scene.settings.text)
      }
      try reload(FirewallScene.rule(sets: ["inet#fw#four"]))
      // Those that are cached already, if by another rule, come with their next answer.
      try ask(daemon.address, "www.example", "AAAA")
      try ask(daemon.address, "other.example")
      #expect(try scene.firewall.elements("four")["93.184.216.40"] != nil)
      #expect(try scene.rows().count == 1)
      #expect(hasThread(), "\(daemon.threads)")
      try reload(FirewallScene.rule())
      try eventually("the cached address in the new set") {
        try scene.firewall.elements("six").keys.contains("2606:2800:220::1") ? true : nil
      }
      #expect(hasThread())
      try reload("")
      try eventually("no thread") { hasThread() ? nil : true }
      #expect(try scene.control("sets").output == "no rule has sets\n")
      try scene.firewall.nft("flush set inet fw four")
      try ask(daemon.address, "short.example")
      #expect(try scene.firewall.elements("four").isEmpty)
    }
  }

  @Test func `doctor says whether the sets get their addresses, and warns of intervals`() throws {
    try withFirewall { scene in
      try scene.firewall.create("flags interval,timeout;")
      let daemon = try scene.daemon(FirewallScene.rule())
      try ask(daemon.address, "www.example")
      func doctor() throws -> String {
        let command = scene.machine.prefix + [Programs.daemon, "doctor", "--config", daemon.configuration]
        return try ChildProcess.run(command, within: .seconds(60)).output
      }
      let good = try doctor()
      #expect(good.contains(/sets.*all get their addresses/) && good.contains("an interval set"), "\(good)")
      try scene.firewall.nft("delete table inet fw")
      try ask(daemon.address, "other.example")
      let bad = try doctor()
      #expect(bad.contains(/sets.*a set gets no addresses/), "\(bad)")
    }
  }

  @Test func `metrics count the addresses of each set`() throws {
    try withFirewall { scene in
      try scene.firewall.create()
      try scene.firewall.nft("delete set inet fw six")
      let daemon = try scene.daemon(FirewallScene.rule() + "[web]\naddress = \"\(scene.machine.host):0\"\n")
      try scene.awaitFirstRefill()
      try ask(daemon.address, "www.example")
      try ask(daemon.address, "www.example", "AAAA")
      let client = try WebClient(daemon)
      // On a busy machine an answer may be sent before the kernel has its addresses: they are counted as late, then as added.
      let scrape = try eventually("the addresses in the set") { () -> Scrape? in
        let scrape = Scrape(text: try client.get("/metrics").body)
        return scrape["httpdnsd_set_additions_total{set=\"inet#fw#four\",result=\"added\"}"] == 2 ? scrape : nil
      }
      func count(_ set: String, _ result: String) -> Double? {
        scrape["httpdnsd_set_additions_total{set=\"inet#fw#\(set)\",result=\"\(result)\"}"]
      }
      #expect(count("four", "failed") == 0 && count("four", "late").map { $0 <= 2 } == true)
      #expect(count("six", "added") == 0 && count("six", "failed").map { $0 > 0 } == true)
    }
  }

  @Test func `the daemon never creates, flushes or deletes a set`() throws {
    try withFirewall { scene in
      try scene.firewall.create()
      try scene.firewall.nft("add element inet fw four { 93.184.216.99 }")
      let before = try scene.firewall.nft("list tables")
      let daemon = try scene.daemon(FirewallScene.rule(sets: ["inet#fw#four", "inet#fw#missing", "ip#none#four"]))
      try ask(daemon.address, "www.example")
      try daemon.reload(scene.settings.text.replacing("four\"", with: "other\""))
      daemon.end()
      #expect(try scene.firewall.addresses() == SetTests.four.union(["93.184.216.99"]))
      #expect(try scene.firewall.nft("list tables") == before)
      #expect(try scene.firewall.elements("four")["93.184.216.99"] == Firewall.Element())
    }
  }
}
