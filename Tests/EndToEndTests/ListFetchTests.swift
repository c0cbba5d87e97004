// ListFetchTests.swift -- rules with lists from URLs: fetched, unchanged, refused, failed, saved, and found by their host.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ListFetchTests {
  private func name(_ number: Int) -> String { "n\(number).bench.example" }

  @Test func `a URL that has never been fetched holds neither the start nor a query`() throws {
    try withLists { scene in
      let server = try ListServer()
      server["/names"] = ListServer.Page(stalls: true)
      let daemon = try scene.daemon(listRule([server.url("/names")]))
      #expect(try ask(daemon.address, name(1)).data == ["198.18.0.1"])
      try eventually("a request") { server.requests.isEmpty ? nil : true }
      let line = "WARNING list \(server.url("/names")): not fetched yet; until then it has no names"
      try daemon.waitFor(1, lines: line)
      #expect(try scene.control("lists").output.contains(/\/names +0 +0 +- +- +waiting\n/))
      #expect(try scene.command("check").output.contains("list \(server.url("/names")): not fetched yet; rule 1\n"))
      #expect(try ask(daemon.address, name(1)).data == ["198.18.0.1"])
    }
  }

  @Test func `a text is in use when it has come, and is asked for with what its server said of it`() throws {
    try withLists { scene in
      let server = try ListServer()
      let url = server.url("/names")
      let date = "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT"
      server["/names"] = ListServer.Page(body: Array("\(name(1))\n".utf8), fields: [date], tag: "\"one\"")
      let daemon = try scene.daemon(listRule([url]))
      try daemon.waitFor(.nxDomain, name(1))
      try daemon.waitForLog("INFO list \(url): 1 name\n")
      func update() throws -> String {
        let (ending, output, error) = try scene.control("lists", "update", url)
        #expect(ending == .exited(0), "\(output) \(error)")
        return output
      }
      // A moment after the list decides.
      try daemon.waitForLog("lists updated in ")
      let builds = daemon.count("lists updated in ")
      #expect(try update() == "list \(url): unchanged\n")
      // The same text under another tag.
      server["/names"]?.tag = "\"two\""
      #expect(try update() == "list \(url): unchanged\n")
      #expect(daemon.count("lists updated in ") == builds && daemon.count("INFO list ") == 1)
      // The next one knows that.
      #expect(try update() == "list \(url): unchanged\n")
      server["/names"] = .text("\(name(2))\n\(name(3))\nregexp:^ads\n", tag: "\"three\"")
      #expect(try update() == "list \(url): 2 names in use\n")
      #expect(try ask(daemon.address, name(1)).code == .noError)
      #expect(try ask(daemon.address, name(2)).code == .nxDomain)
      try daemon.waitForLog("INFO list \(url): 2 names (+2 −1), 1 line left out\n")
      let requests = server.requests.map(\.fields)
      #expect(requests.map { $0["if-none-match"] } == [nil, "\"one\"", "\"one\"", "\"two\"", "\"two\""])
      #expect(requests[1]["if-modified-since"] == "Wed, 21 Oct 2015 07:28:00 GMT")
      #expect(requests.allSatisfy { $0["accept-encoding"]?.contains("gzip") == true })
    }
  }

  @Test func `a compressed text is used`() throws {
    try withLists { scene in
      let list = try scene.file("plain", name(1))
      #expect(try ChildProcess.run(["gzip", list]).ending == .exited(0))
      let server = try ListServer()
      let octets = try [UInt8](Data(contentsOf: URL(fileURLWithPath: "\(list).gz")))
      server["/names"] = ListServer.Page(body: octets, fields: ["Content-Encoding: gzip"])
      let daemon = try scene.daemon(listRule([server.url("/names")]))
      try daemon.waitFor(.nxDomain, name(1))
    }
  }

  @Test func `what fails or is refused changes nothing, and is logged when it begins and when it ends`() throws {
    try withLists { scene in
      let server = try ListServer()
      let good = ListServer.Page.text("\(name(1))\n", tag: "\"good\"")
      server["/names"] = good
      let more = "[[list]]\nname = \"office\"\nurl = \"\(server.url("/names"))\"\nmax_size = \"1KiB\"\n"
      let daemon = try scene.daemon(listRule(["office"], name: "ads") + more + "[web]\naddress = \"127.0.0.1:0\"\n")
      try daemon.waitFor(.nxDomain, name(1))
      let large = String(repeating: "# nothing\n", count: 200)
      let pages: [(String, ListServer.Page)] = [
        ("status 500", .status("500 Internal Server Error")), ("status 404", .status("404 Not Found")),
        ("it is a web page", .text("<html>\n\(name(2))\n")), ("it is not text", .text("\(name(2))\n\0")),
        ("no line of it can be used", .text("# \(name(2))\n")), ("no line of it can be used", .text("")),
        ("larger than 1 KiB", .text("\(name(2))\n\(large)")),
        ("list office: ", ListServer.Page(body: Array("\(name(2))\n".utf8), missing: 9)),
      ]
      func expectOld() throws {
        #expect(try ask(daemon.address, name(1)).code == .nxDomain)
        #expect(try ask(daemon.address, name(2)).code == .noError)
      }
      for (reason, page) in pages {
        server["/names"] = page
        let (ending, output, error) = try scene.control("lists", "update", "office")
        #expect(ending == .exited(1) && output.isEmpty, "\(reason): \(output)")
        #expect(error.contains("list office: ") && error.contains(reason), "\(reason): \(error)")
        #expect(try scene.control("lists").output.contains(/\boffice +1 +0 +.+ failing\n\noffice: ./))
        try expectOld()
      }
      try daemon.waitFor(3, lines: " list office: ")
      try daemon.waitFor(1, lines: "WARNING list office: status 500; the last good text stays in use")
      server["/names"] = good
      #expect(try scene.control("lists", "update", "office").output == "list office: unchanged\n")
      try daemon.waitFor(1, lines: "INFO list office: available again, unchanged")
      server.stop()
      let (ending, _, error) = try scene.control("lists", "update")
      #expect(ending == .exited(1) && error.contains("list office: "), "\(error)")
      try expectOld()
      try daemon.waitFor(5, lines: " list office: ")
      let scrape = Scrape(text: try WebClient(daemon).get("/metrics").body)
      let results = ["changed", "unchanged", "failed", "refused"].map {
        scrape["httpdnsd_list_fetches_total{list=\"office\",result=\"\($0)\"}"]
      }
      #expect(results == [1, 1, 4, 5])
    }
  }

  @Test func `after a restart without its server a list has the names of its copy, and is not fetched before its time`()
    throws
  {
    try withLists { scene in
      let server = try ListServer()
      server["/names"] = .text("\(name(1))\n", tag: "\"one\"")
      let rule = listRule([server.url("/names")])
      let first = try scene.daemon(rule)
      try first.waitFor(.nxDomain, name(1))
      first.end()
      let copy = try #require(scene.copies.first)
      let attributes = try FileManager.default.attributesOfItem(atPath: "\(scene.state)/lists/\(copy)")
      #expect(attributes[.posixPermissions] as? Int == 0o600)

      let second = try scene.daemon(rule)
      #expect(try ask(second.address, name(1)).code == .nxDomain)
      try second.waitFor(0, lines: "WARNING list")
      let check = try scene.command("check").output
      #expect(check.contains(/list http:\S+: 1 name \(fetched \d+ s ago\); rule 1\n/), "\(check)")
      #expect(try scene.control("lists").output.contains(/names +1 +0 +\d+ s +(?:2\d h|1 d).* +loaded\n/))
      #expect(server.requests.count == 1)
      second.end()

      server.stop()
      // Two days old.
      var times = [timeval](repeating: timeval(tv_sec: time(nil) - 172_800, tv_usec: 0), count: 2)
      #expect(utimes("\(scene.state)/lists/\(copy)", &times) == 0)
      let third = try scene.daemon(rule)
      #expect(try ask(third.address, name(1)).code == .nxDomain)
      try third.waitForLog("; the last good text stays in use\n")
      #expect(try ask(third.address, name(1)).code == .nxDomain)
    }
  }

  @Test func `the copy of a list that is no longer configured is removed at the next start`() throws {
    try withLists { scene in
      let server = try ListServer()
      for path in ["/one", "/two"] { server[path] = .text("\(name(1))\n") }
      let first = try scene.daemon(listRule([server.url("/one"), server.url("/two")]))
      try eventually("two copies") { scene.copies.count == 2 ? true : nil }
      try first.waitFor(.nxDomain, name(1))
      first.end()
      let second = try scene.daemon(listRule([server.url("/one")]))
      try eventually("one copy") { scene.copies.count == 1 ? true : nil }
      #expect(try ask(second.address, name(1)).code == .nxDomain)
    }
  }

  @Test func `without a state directory lists are in memory, with a warning`() throws {
    try withLists { scene in
      let server = try ListServer()
      server["/names"] = .text("\(name(1))\n")
      scene.settings.more = listRule([server.url("/names")])
      let environment = ["STATE_DIRECTORY": "/proc/nowhere"]
      let daemon = try scene.lab.daemon(scene.settings.text, environment: environment)
      try daemon.waitFor(.nxDomain, name(1))
      try daemon.waitFor(1, lines: "WARNING lists are held in memory and fetched again after a restart: ")
      #expect(try scene.control("lists").output.contains("loaded, in memory\n"))
    }
  }

  @Test func `a list can neither block nor misroute its own host, which our providers find`() throws {
    try withLists { scene in
      try scene.simulator.setZone("lists.example. 300 A 127.0.0.1\nother.lists.example. 300 A 127.0.0.1")
      let server = try ListServer()
      server["/names"] = .text("lists.example\n")
      let url = "http://lists.example:\(server.address.port)/names"
      scene.settings.providers.append(
        Settings.json(try scene.lab.closedAddress(), "name = \"silent\"\ntimeout = \"200ms\""))
      let everything = "[[rule]]\nclients = [\"0.0.0.0/0\"]\nnames = [\".\"]\nuse = \"silent\"\nfallback = \"never\"\n"
      for rules in [listRule([url]), listRule([url], "silent", "fallback = \"never\""), listRule([url]) + everything] {
        let daemon = try scene.daemon(rules)
        try eventually("the list decides") {
          try ask(daemon.address, "www.lists.example").code != .noError ? true : nil
        }
        server["/names"] = .text("lists.example\n\(name(1))\n")
        let update = try scene.control("lists", "update")
        #expect(update.ending == .exited(0) && update.output.contains("2 names in use"), "\(update)")
        server["/names"] = .text("lists.example\n")
        #expect(try scene.control("lists", "update").ending == .exited(0))
        daemon.end()
        try FileManager.default.removeItem(atPath: "\(scene.state)/lists")
      }
      let names = try scene.simulator.requests.compactMap(\.name)
      #expect(names.contains { $0.hasPrefix("lists.example") })
    }
  }

  @Test func `a host that no provider knows is a failure with its name`() throws {
    try withLists { scene in
      try scene.simulator.setZone("example. 300 A 127.0.0.1")
      let daemon = try scene.daemon(listRule(["http://lists.example:81/names"]))
      try daemon.waitForLog("no address of lists.example was found; it has no names")
      #expect(try ask(daemon.address, "www.example").code != .servFail)
    }
  }

  @Test func `redirects are followed five times`() throws {
    try withLists { scene in
      let server = try ListServer()
      for number in 0..<6 { server["/\(number)"] = .redirect(to: "/\(number + 1)") }
      server["/5"] = .text("\(name(1))\n")
      let daemon = try scene.daemon(listRule([server.url("/0")]))
      try daemon.waitFor(.nxDomain, name(1))
      server["/5"] = .redirect(to: "/6")
      server["/6"] = .text("\(name(2))\n")
      let (ending, _, error) = try scene.control("lists", "update")
      #expect(ending == .exited(1) && error.contains("more than 5 redirects"), "\(error)")
      #expect(try ask(daemon.address, name(1)).code == .nxDomain)
    }
  }

  @Test func `a URL's user, password and query are sent and shown nowhere`() throws {
    try withLists { scene in
      let server = try ListServer()
      server["/names?token=canary"] = .text("\(name(1))\n")
      let url = "http://user:canary@\(server.address)/names?token=canary"
      let daemon = try scene.daemon(listRule([url]) + "[web]\naddress = \"127.0.0.1:0\"\n")
      try daemon.waitFor(.nxDomain, name(1))
      #expect(server.requests.map(\.path) == ["/names?token=canary"])
      #expect(server.requests.first?.fields["authorization"] == "Basic dXNlcjpjYW5hcnk=")
      server["/names?token=canary"] = .status("500 canary")
      let page = try WebClient(daemon).get("/metrics").body
      #expect(page.contains("httpdnsd_list_names{list=\"\(server.url("/names"))\"} 1\n"))
      var texts = [page, daemon.log]
      for command in [["lists"], ["lists", "--json"], ["lists", "update"], ["lists", "find", name(1)]] {
        let (_, output, error) = try scene.lab.run(command + ["--socket", scene.socket])
        texts += [output, error]
      }
      for command in [("check", []), ("query", [name(1)])] {
        let (_, output, error) = try scene.lab.run(
          [command.0, "--config", daemon.configuration] + command.1, environment: scene.environment)
        #expect(output.contains(server.url("/names")), "\(output)\(error)")
        texts += [output, error]
      }
      for text in texts { #expect(!text.contains("canary"), "\(text)") }
    }
  }

  @Test(.enabled(if: NetworkNamespace.isPossible, "needs root and network namespaces"))
  func `on another network a list that failed is fetched at once, and search domains give way to lists`() throws {
    try withLists { scene in
      let machine = try NetworkNamespace(in: scene.lab)
      let network = try PlainServer(addresses: ["www.corp.example.": "10.0.0.7"], at: Address(machine.routers[0], 53))
      try machine.setResolvers([machine.routers[0]], more: "search corp.example bench.example")
      let simulator = try scene.lab.simulator([], at: machine.world)
      let server = try ListServer(at: Address(machine.world, 0))
      server["/names"] = .status("503 Not Now")
      scene.settings.providers = [Settings.json(simulator.http)]
      scene.settings.addresses = ["\(machine.host):0"]
      scene.settings.listen = "allow = [\"100.64.0.0/10\"]"
      scene.settings.more = listRule([server.url("/names")])
      let daemon = try scene.lab.daemon(
        scene.settings.text.replacing("[localdns]\nservers = []", with: "[localdns]\nservers = [\"system\"]"),
        environment: scene.environment, prefix: machine.prefix)
      try daemon.waitForLog("status 503; it has no names")
      try daemon.waitForLog("INFO network: eth0 via \(machine.routers[0]) (")
      #expect(try ask(daemon.address, name(1)).code == .noError)
      server["/names"] = .text("\(name(1))\n")
      try machine.route(over: 1)
      // By itself it would try again after a minute.
      try daemon.waitFor(.nxDomain, name(1), within: .seconds(20))
      #expect(try ask(daemon.address, "www.corp.example").data == ["10.0.0.7"])
      withExtendedLifetime(network) {}
    }
  }
}
