// ListRecipeTests.swift -- the four recipes of docs/lists.md, as they stand there: only places and providers' servers differ.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ListRecipeTests {
  /// The configuration of a recipe.
  private func recipe(_ title: String) throws -> String {
    let page = try String(contentsOfFile: Repository.path("docs/lists.md"), encoding: .utf8)
    let sections = page.components(separatedBy: "\n### ").dropFirst()
    let section = try #require(sections.first { $0.hasPrefix("\(title)\n") }, "\(title)")
    let block = try #require(section.firstMatch(of: /```toml\n((?:.*\n)*?)```/), "\(title)")
    return String(block.1)
  }

  /// Replaces text that must be there.
  private func replace(_ text: String, _ changes: [(String, String)]) -> String {
    changes.reduce(text) { text, change in
      #expect(text.contains(change.0), "\(change.0)")
      return text.replacing(change.0, with: change.1)
    }
  }

  @Test func `every block of the page is a configuration without mistakes`() throws {
    try withLists { scene in
      let page = try String(contentsOfFile: Repository.path("docs/lists.md"), encoding: .utf8)
      let blocks = page.matches(of: /```toml\n((?:.*\n)*?)```/).map { String($0.1) }
      #expect(blocks.count == 4)
      for block in blocks {
        let own = block.contains("[[provider]]") ? [] : [Settings.json(scene.simulator.http)]
        scene.settings.providers = own
        // A provider's host by name takes a resolver of the network, as nearly every machine has.
        scene.settings.localServers = [try scene.lab.closedAddress()]
        scene.settings.more = block
        let (ending, output, error) = try scene.command("check")
        #expect(ending == .exited(0), "\(output)\(error)")
      }
    }
  }

  @Test func `split by a domestic list`() throws {
    try withLists { scene in
      let world = try scene.lab.simulator()
      try scene.simulator.setZone("*.cn. 300 A 192.0.2.1\n*.org. 300 A 192.0.2.1")
      try world.setZone("*.cn. 300 A 192.0.2.2\n*.org. 300 A 192.0.2.2")
      let server = try ListServer()
      server["/china.txt"] = .text("server=/example.cn/114.114.114.114\n")
      scene.settings.providers = []
      let text = replace(
        try recipe("Split by a domestic list"),
        [
          ("kind = \"alidns\"\n", "kind = \"alidns\"\nscheme = \"http\"\nservers = [\"\(scene.simulator.http)\"]\n"),
          ("https://dns.example/", "http://\(world.http)/"), ("https://lists.example", "http://\(server.address)"),
        ])
      let daemon = try scene.daemon(text)
      try eventually("the list") { try ask(daemon.address, "www.example.cn").data == ["192.0.2.1"] ? true : nil }
      #expect(try ask(daemon.address, "www.example.org").data == ["192.0.2.2"])
      #expect(try ask(daemon.address, "www.other.cn").data == ["192.0.2.2"])
      #expect(try scene.simulator.requests.allSatisfy { $0.name?.hasPrefix("www.example.cn") == true })
      // "The rule may name several providers": the second one is asked when the first one fails.
      try scene.simulator.fault("kind=status&code=500")
      try daemon.reload(scene.settings.text.replacing("use = \"home\"", with: "use = [\"home\", \"world\"]"))
      try eventually("the second provider") {
        try ask(daemon.address, "new.example.cn").data == ["192.0.2.2"] ? true : nil
      }
    }
  }

  @Test func `a block list with an allow list`() throws {
    try withLists { scene in
      try scene.simulator.setZone("*.example. 300 A 192.0.2.1\n*.ads.example. 300 A 192.0.2.1")
      let server = try ListServer()
      server["/ads.txt"] = .text("||ads.example^\n")
      server["/trackers.txt"] = .text("0.0.0.0 tracker.example\n")
      let allow = try scene.file("allow.txt", "fine.ads.example")
      let text = replace(
        try recipe("A block list with an allow list"),
        [("/etc/httpdnsd/allow.txt", allow), ("https://lists.example", "http://\(server.address)")])
      let daemon = try scene.daemon(text)
      try daemon.waitFor(.nxDomain, "www.ads.example")
      try daemon.waitFor(.nxDomain, "tracker.example")
      for name in ["good.ads.example", "www.good.ads.example", "fine.ads.example", "www.example"] {
        #expect(try ask(daemon.address, name).data == ["192.0.2.1"], "\(name)")
      }
      #expect(try ask(daemon.address, "www.ads.example").errors == [15])
      // "`nodata` says …, `pinned` with `addresses = …` answers as a hosts file would."
      let nodata = scene.settings.text.replacing("use = \"nxdomain\"", with: "use = \"nodata\"")
      try daemon.reload(nodata)
      let reply = try ask(daemon.address, "www.ads.example")
      #expect(reply.code == .noError && reply.data.isEmpty)
      let pinned = "use = \"pinned\"\naddresses = [\"0.0.0.0\", \"::\"]"
      try daemon.reload(scene.settings.text.replacing("use = \"nxdomain\"", with: pinned))
      #expect(try ask(daemon.address, "www.ads.example").data == ["0.0.0.0"])
      #expect(try ask(daemon.address, "www.ads.example", "AAAA").data == ["::"])
    }
  }

  @Test(.enabled(if: Firewall.isPossible, "needs root, network namespaces and nft"))
  func `addresses of a list to another routing table`() throws {
    try withFirewall { scene in
      let page = try String(contentsOfFile: Repository.path("docs/lists.md"), encoding: .utf8)
      let start = try #require(page.range(of: "\n## Firewall sets\n")).upperBound
      // The commands of the page, as they stand there: the sets, and their use.
      let blocks = page[start...].matches(of: /```sh\n((?:.*\n)*?)```/).map { String($0.1) }.filter {
        $0.hasPrefix("nft ")
      }
      #expect(blocks.count == 2)
      for block in blocks {
        let (ending, output, error) = try ChildProcess.run(scene.machine.prefix + ["sh", "-ec", block])
        #expect(ending == .exited(0), "\(output)\(error)")
      }
      let list = try scene.lab.folder.write("www.example\n", to: "tunnel.txt")
      let daemon = try scene.daemon(
        replace(
          try recipe("Addresses of a list to another routing table"), [("/etc/httpdnsd/tunnel.txt", list)]))
      // Another table has another way: what is not marked has none there.
      let route = scene.machine.prefix + ["ip", "route", "add", "blackhole", "default", "table", "700"]
      #expect(try ChildProcess.run(route).ending == .exited(0))
      #expect(try ask(daemon.address, "www.example").data.count == 2)
      #expect(try ask(daemon.address, "www.example", "AAAA").data.count == 1)
      try ask(daemon.address, "other.example")
      let four = try scene.firewall.nft("list set inet httpdnsd tunnel4")
      let six = try scene.firewall.nft("list set inet httpdnsd tunnel6")
      #expect(four.contains("93.184.216.34") && four.contains("93.184.216.35") && !four.contains("93.184.216.40"))
      #expect(six.contains("2606:2800:220::1"))
      func send(to address: String) throws -> ChildProcess.Ending {
        try ChildProcess.run(scene.machine.prefix + ["bash", "-c", "echo > /dev/udp/\(address)/9"]).ending
      }
      #expect(try send(to: "93.184.216.40") == .exited(0))
      #expect(try send(to: "93.184.216.34") != .exited(0), "it takes the other table")
    }
  }

  @Test(.enabled(if: NetworkNamespace.isPossible, "needs root and network namespaces"))
  func `the children's network`() throws {
    try withLists { scene in
      let machine = try NetworkNamespace(in: scene.lab)
      let simulator = try scene.lab.simulator([], at: machine.world)
      let list = try scene.file("games.txt", "n1.bench.example")
      scene.settings.providers = [Settings.json(simulator.http)]
      scene.settings.addresses = ["\(machine.host):0", "[::1]:0"]
      scene.settings.listen = "allow = [\"0.0.0.0/0\", \"::/0\"]"
      let text = replace(try recipe("The children's network"), [("/etc/httpdnsd/games.txt", list)])
      scene.settings.more = text
      let clients = ["192.168.7.9", "192.168.8.9", "fd00:7::9", "fd00:8::9"]
      for client in clients {
        let length = client.contains(":") ? 128 : 32
        let command = ["ip", "address", "add", "\(client)/\(length)", "dev", "lo"] + (length == 128 ? ["nodad"] : [])
        #expect(try ChildProcess.run(machine.prefix + command).ending == .exited(0))
      }
      let daemon = try scene.lab.daemon(
        scene.settings.text, environment: scene.environment, prefix: machine.prefix)
      for _ in 0..<2 {
        for client in clients {
          let server = client.contains(":") ? daemon.addresses[1] : daemon.addresses[0]
          let dig = ["dig", "-r", "-b", client, "@\(server.host)", "-p", "\(server.port)", "+tries=1", "+time=8"]
          let output = try ChildProcess.run(machine.prefix + dig + ["n1.bench.example"]).output
          let isChild = client.contains("7.9") || client.contains(":7:")
          #expect(output.contains("status: \(isChild ? "NXDOMAIN" : "NOERROR")"), "\(client): \(output)")
        }
      }
      #expect(try simulator.count.transfers == 1)
    }
  }
}
