// ListTests.swift -- rules with lists from files: what they decide, when a changed file counts, and what they cannot do.

import DNSWire
import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct ListTests {
  private func name(_ number: Int) -> String { "n\(number).bench.example" }

  @Test func `a list decides before the cache, and nothing is flushed when it changes`() throws {
    try withLists { scene in
      let list = try scene.file("names", "other.example")
      let daemon = try scene.daemon(listRule([list]))
      #expect(try ask(daemon.address, name(1)).data == ["198.18.0.1"])
      try scene.replace(list, name(1))
      try daemon.waitFor(.nxDomain, name(1))
      let reply = try ask(daemon.address, name(1), over: .tcp)
      #expect(reply.code == .nxDomain && reply.errors == [15])
      #expect(try ask(daemon.address, "www.\(name(1))").code == .nxDomain, "names below are selected, too")
      let cached = try scene.control("cache", name(1))
      #expect(cached.output.contains("198.18.0.1"), "\(cached)")
      try scene.replace(list, "other.example")
      try daemon.waitFor(.noError, name(1))
      #expect(try ask(daemon.address, name(1)).data == ["198.18.0.1"])
      #expect(try scene.simulator.count.transfers == 1)
      try daemon.waitForLog("INFO list \(list): 1 name\n")
      try daemon.waitFor(2, lines: "INFO list \(list): 1 name (+1 −1)")
    }
  }

  @Test func `a file is not used while it is being written`() throws {
    try withLists { scene in
      let list = try scene.file("names", name(1))
      let daemon = try scene.daemon(listRule([list]))
      // The daemon waits for 200 ms without a change: a machine that is busy may hold up the writer for as long.
      for attempt in 0..<5 {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: list))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: Data("\(name(2))\n".utf8))
        let deadline = Deadline(.milliseconds(1_800))
        var (last, longest, isOld) = (ContinuousClock.now, Duration.zero, true)
        while !deadline.isOver {
          try file.write(contentsOf: Data("# half-written\n".utf8))
          longest = max(longest, .now - last)
          last = .now
          let code = try ask(daemon.address, name(1)).code
          isOld = isOld && code == .nxDomain
        }
        try file.close()
        try daemon.waitFor(.noError, name(1))
        #expect(try ask(daemon.address, name(2)).code == .nxDomain)
        if longest < .milliseconds(150) { return #expect(isOld, "attempt \(attempt)") }
        try scene.replace(list, name(1))
        try daemon.waitFor(.nxDomain, name(1))
      }
      Issue.record("the machine is too busy to write a file in one go")
    }
  }

  @Test func `a file that is lost or spoiled leaves the last good list in place, with one line for each change`() throws
  {
    try withLists { scene in
      let list = try scene.file("names", name(1))
      let daemon = try scene.daemon(listRule([list]))
      let spoiled: [(String, () throws -> Void)] = [
        ("No such file or directory", { unlink(list) }),
        ("no line of it can be used", { try scene.replace(list) }),
        ("it is a web page", { try scene.replace(list, "<!DOCTYPE html>", "<p>n9.bench.example") }),
        ("it is not text", { try scene.replace(list, "n9.bench.example\0") }),
        ("it is a folder", { _ = (unlink(list), mkdir(list, 0o700)) }),
      ]
      for (number, (reason, spoil)) in spoiled.enumerated() {
        try spoil()
        try daemon.waitForLog("ERROR list \(list): \(reason); the last good text stays in use\n")
        #expect(try ask(daemon.address, name(number + 1)).code == .nxDomain)
        #expect(try ask(daemon.address, name(9)).code == .noError)
        #expect(try scene.control("lists").output.contains("\(list): \(reason)\n"))
        rmdir(list)
        try scene.replace(list, name(number + 2))
        try daemon.waitFor(.nxDomain, name(number + 2))
        #expect(try ask(daemon.address, name(number + 1)).code == .noError)
      }
      try daemon.waitFor(spoiled.count, lines: "ERROR list \(list): ")
      try daemon.waitFor(spoiled.count, lines: "INFO list \(list): 1 name (+1 −1)")
    }
  }

  @Test func `a spoiled file has its last good names also after a restart`() throws {
    try withLists { scene in
      let list = try scene.file("names", name(1))
      let first = try scene.daemon(listRule([list]))
      try eventually("a copy") { scene.copies.isEmpty ? nil : true }
      first.end()
      try scene.replace(list, "<html>")
      let second = try scene.daemon(listRule([list]))
      #expect(try ask(second.address, name(1)).code == .nxDomain)
      try second.waitForLog("ERROR list \(list): it is a web page; the last good text stays in use\n")
    }
  }

  @Test func `lists are loaded before the first query is answered, also one that waited for the start`() throws {
    try withLists { scene in
      let lines = (0..<200_000).map { "n\($0).listed.example" }.joined(separator: "\n")
      let list = try scene.file("names", lines, name(1))
      scene.settings.more = listRule([list])
      let held = try HeldSockets()
      let query = TestQuery(name(1))
      let client = try Socket(SOCK_DGRAM)
      try client.connect(to: held.address)
      client.send(query.octets)
      let stream = try Socket.stream(to: held.address)
      stream.send(framed(query.octets))
      let daemon = try scene.lab.activated(scene.settings.text, held.descriptors, environment: scene.environment)
      #expect(try Reply(try #require(client.receive()), to: query).code == .nxDomain)
      #expect(try Reply(try #require(receiveFramed(stream)), to: query).code == .nxDomain)
      #expect(try ask(held.address, "www.n77777.listed.example").code == .nxDomain)
      #expect(try scene.simulator.count.transfers == 0)
      try daemon.waitForLog("INFO list \(list): 200,001 names\n")
    }
  }

  @Test func `a reload takes effect together with the lists that it adds and removes`() throws {
    try withLists { scene in
      let (first, second) = (try scene.file("first", name(1)), try scene.file("second", name(2)))
      let daemon = try scene.daemon(listRule([first]))
      func codes() throws -> [ResponseCode] { try [1, 2].map { try ask(daemon.address, name($0)).code } }
      #expect(try codes() == [.nxDomain, .noError])
      for (lists, expected) in [
        ([first, second], [ResponseCode.nxDomain, .nxDomain]), ([second], [.noError, .nxDomain]),
        ([first], [.nxDomain, .noError]),
      ] {
        scene.settings.more = listRule(lists)
        let path = daemon.configuration
        try scene.replace(path, scene.settings.text)
        let (ending, output, _) = try scene.control("reload")
        #expect(ending == .exited(0), "\(output)")
        #expect(try codes() == expected, "\(lists)")
      }
      scene.settings.more = ""
      try daemon.reload(scene.settings.text)
      #expect(try codes() == [.noError, .noError])
      #expect(try scene.control("lists").output == "no rule uses a list\n")
    }
  }

  @Test func `lists do not count for the hosts file and for special names, and names of a rule do`() throws {
    try withLists { scene in
      let network = try PlainServer(addresses: [
        "box.lan.": "10.0.0.7", "printer.": "10.0.0.8", "captive.apple.com.": "10.0.0.9",
      ])
      scene.settings.localServers = [network.address]
      let hosts = try scene.file("hosts", "192.0.2.9 host.example")
      func text(_ rules: String) -> String {
        scene.settings.more = rules
        return scene.settings.text.replacing("hosts_file = \"\"", with: "hosts_file = \"\(hosts)\"")
      }
      let list = try scene.file(
        "names", "host.example", "lan", "localhost", "168.192.in-addr.arpa", "printer", "captive.apple.com", name(1))
      let names = [
        ("host.example", "A"), ("box.lan", "A"), ("localhost", "A"), ("7.1.168.192.in-addr.arpa", "PTR"),
        ("printer", "A"), ("captive.apple.com", "A"),
      ]
      let daemon = try scene.lab.daemon(text(""), environment: scene.environment)
      func answers() throws -> [String] {
        try names.map { name, type in
          let reply = try ask(daemon.address, name, type)
          return "\(reply.code) \(reply.data) \(reply.errors)"
        }
      }
      let usual = try answers()
      for (answer, address) in zip(usual, ["192.0.2.9", "10.0.0.7", "127.0.0.1", "NXDOMAIN", "10.0.0.8", "10.0.0.9"]) {
        #expect(answer.contains(address))
      }
      try daemon.reload(text(listRule([list])))
      #expect(try ask(daemon.address, name(1)).code == .nxDomain)
      #expect(try answers() == usual)
      try daemon.reload(text("[[rule]]\nnames = [\"host.example\", \"lan\"]\nuse = \"refused\"\n"))
      #expect(try ask(daemon.address, "host.example").code == .refused)
      #expect(try ask(daemon.address, "box.lan").code == .refused)
    }
  }

  @Test func `public suffixes of a list do not block, and do choose a route`() throws {
    try withLists { scene in
      let other = try scene.lab.simulator()
      try scene.simulator.setZone("*.com. 300 A 192.0.2.1\n*.github.io. 300 A 192.0.2.1")
      try other.setZone("*.com. 300 A 192.0.2.2\n*.github.io. 300 A 192.0.2.2")
      scene.settings.providers.append(Settings.json(other.http, "name = \"other\""))
      let list = try scene.file("names", "com", "github.io", "ads.example.com")
      for use in ["nxdomain", "nodata", "refused"] {
        let daemon = try scene.daemon(listRule([list], use))
        #expect(try ask(daemon.address, "www.example.com").data == ["192.0.2.1"], "\(use)")
        #expect(try ask(daemon.address, "user.github.io").data == ["192.0.2.1"], "\(use)")
        #expect(try ask(daemon.address, "ads.example.com").data.isEmpty, "\(use)")
        try daemon.waitForLog("INFO list \(list): 1 name, 2 lines left out\n")
        daemon.end()
      }
      let check = try scene.command("check")
      #expect(
        check.output.contains(": 1 name (")
          && check.output.contains("2 lines left out: public suffix in a rule that blocks; the first is line 1: com\n"),
        "\(check)")
      let daemon = try scene.daemon(listRule([list], "other"))
      #expect(try ask(daemon.address, "www.example.com").data == ["192.0.2.2"])
      #expect(try ask(daemon.address, "user.github.io").data == ["192.0.2.2"])
      try daemon.waitForLog("INFO list \(list): 3 names\n")
    }
  }

  @Test func `clients with different routes never see each other's cached answers`() throws {
    try withLists { scene in
      let other = try scene.lab.simulator()
      try scene.simulator.setZone("*.example. 300 A 192.0.2.1")
      try other.setZone("*.example. 300 A 192.0.2.2")
      scene.settings.providers.append(Settings.json(other.http, "name = \"other\""))
      let (routed, blocked) = (
        try scene.file("routed", "a.example", "b.example"), try scene.file("blocked", "b.example")
      )
      let daemon = try scene.daemon(
        listRule([blocked], "nxdomain", "clients = [\"127.0.0.3/32\"]")
          + listRule([routed], "other", "clients = [\"127.0.0.2/31\"]"))
      for transport in Transport.allCases {
        for name in ["www.a.example", "www.b.example"] {
          for _ in 0..<2 {
            for (host, address) in [("127.0.0.1", "192.0.2.1"), ("127.0.0.2", "192.0.2.2"), ("127.0.0.3", "192.0.2.2")]
            {
              let reply = try ask(daemon.address, TestQuery(name), over: transport, from: host)
              let isBlocked = host == "127.0.0.3" && name == "www.b.example"
              #expect(reply.data == (isBlocked ? [] : [address]), "\(name) from \(host)")
              #expect(reply.code == (isBlocked ? .nxDomain : .noError))
            }
          }
        }
      }
      // Clients of one route share its entries.
      #expect(try (scene.simulator.count.transfers, other.count.transfers) == (2, 2))
    }
  }

  @Test func `a rule with types counts for these only`() throws {
    try withLists { scene in
      try scene.simulator.setZone(
        """
        www.a.example. 300 A 192.0.2.1
        www.a.example. 300 AAAA 2001:db8::1
        www.a.example. 300 HTTPS 1 . ipv6hint=2001:db8::1
        www.a.example. 300 MX 10 mx.a.example.
        """)
      let list = try scene.file("names", "a.example")
      let daemon = try scene.daemon(listRule([list], "nodata", "types = [\"AAAA\", \"HTTPS\"]"))
      for type in ["A", "AAAA", "HTTPS", "MX"] {
        let reply = try ask(daemon.address, "www.a.example", type)
        let isEmpty = ["AAAA", "HTTPS"].contains(type)
        #expect(reply.code == .noError && reply.data.isEmpty == isEmpty, "\(type): \(reply.message)")
        #expect(reply.errors == (isEmpty ? [15] : []), "\(type)")
      }
      #expect(try scene.simulator.requests.allSatisfy { $0.type != "AAAA" && $0.type != "HTTPS" })
    }
  }

  @Test func `an allow list stands before a block list, and the first rule that matches wins`() throws {
    try withLists { scene in
      let (allow, block) = (try scene.file("allow", "good.ads.example"), try scene.file("block", "ads.example"))
      try scene.simulator.setZone("*.ads.example. 300 A 192.0.2.1")
      let allowed = listRule([allow], "default", name: "allowed")
      let daemon = try scene.daemon(allowed + listRule([block], "nxdomain", name: "ads"))
      #expect(try ask(daemon.address, "www.good.ads.example").data == ["192.0.2.1"])
      #expect(try ask(daemon.address, "bad.ads.example").code == .nxDomain)
      scene.settings.more = listRule([block], "nxdomain", name: "ads") + allowed
      try daemon.reload(scene.settings.text)
      #expect(try ask(daemon.address, "www.good.ads.example").code == .nxDomain)
    }
  }

  @Test func `exceptions of a list, and names that it selects alone`() throws {
    try withLists { scene in
      try scene.simulator.setZone(
        "*.a.example. 300 A 192.0.2.1\n*.b.example. 300 A 192.0.2.1\nb.example. 300 A 192.0.2.1")
      let list = try scene.file("names", "||a.example^", "@@||good.a.example^", "full:b.example", "0.0.0.0 c.b.example")
      let daemon = try scene.daemon(listRule([list]))
      for (name, isBlocked) in [
        ("bad.a.example", true), ("good.a.example", false), ("www.good.a.example", false), ("b.example", true),
        ("www.b.example", false), ("c.b.example", true),
      ] {
        #expect(try ask(daemon.address, name).code == (isBlocked ? .nxDomain : .noError), "\(name)")
      }
    }
  }

  @Test(.enabled(if: SmallDisk.isAvailable, "needs root, to mount a small disk"))
  func `a disk that is full costs no list: the text stays in memory, with a warning`() throws {
    try withLists { scene in
      let folder = TestSupport.TemporaryFolder()
      let disk = try #require(SmallDisk(on: folder))
      let lines = (0..<20_000).map { "n\($0).listed.example" }.joined(separator: "\n")
      let server = try ListServer()
      server["/names"] = .text("\(lines)\n\(name(1))\n")
      scene.settings.more = listRule([server.url("/names")])
      let daemon = try scene.lab.daemon(scene.settings.text, environment: ["STATE_DIRECTORY": folder.path])
      try daemon.waitFor(.nxDomain, name(1))
      try daemon.waitFor(1, lines: "WARNING lists are held in memory and fetched again after a restart: ")
      #expect(try scene.control("lists").output.contains("loaded, in memory"))
      server["/names"] = .text("\(name(2))\n")
      let update = try scene.control("lists", "update")
      #expect(update.ending == .exited(0), "\(update)")
      #expect(try ask(daemon.address, name(2)).code == .nxDomain)
      #expect(try !scene.control("lists").output.contains("in memory"))
      daemon.end()
      withExtendedLifetime(disk) {}
    }
  }
}
