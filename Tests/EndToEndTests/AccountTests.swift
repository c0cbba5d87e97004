// AccountTests.swift -- the kinds that know the names of an account only, with each cipher, over HTTP and HTTPS.

import DNSWire
import Foundation
import Testing

extension AccountKind: CustomTestStringConvertible {
  var testDescription: String { title }
}

@Suite(.blocking) struct AccountTests {
  @Test(arguments: AccountKind.all) func `addresses come through every cipher`(_ kind: AccountKind) throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: kind.isSecure)
      let daemon = try lab.daemon(Settings(kind.provider(simulator)).text)
      for (name, type, data) in [
        ("example.com", "A", ["192.0.2.1"]), ("WWW.example.com", "AAAA", ["2001:db8::1"]),
        ("alias2.example.com", "A", ["192.0.2.1", "192.0.2.2"]), ("many-30.example", "AAAA", nil),
      ] {
        let reply = try ask(daemon.address, name, type)
        #expect(reply.code == .noError, "\(name) \(type): \(reply.errors)")
        if let data { #expect(reply.data.sorted() == data) } else { #expect(reply.data.count == 30) }
        #expect(reply.message.answers.allSatisfy { $0.owner.text == "\(name)." }, "the chain is not told")
        #expect(reply.ttl == 300)
      }
      let requests = try simulator.requests
      #expect(requests.count == 4)
      #expect(requests.allSatisfy { $0.dialect == kind.name && $0.status == 200 && $0.cipher == kind.cipher })
      #expect(requests.allSatisfy { $0.verified == (kind.isVerified ? true : nil) })
      #expect(requests.allSatisfy { $0.transport == (kind.isSecure ? "https" : "http") })
      #expect(try simulator.count.units == [kind.name: 4 * kind.price].filter { $0.value > 0 })
    }
  }

  /// The other forms that a service's replies are known to have.
  private static let forms =
    ["tencent, https", "tencent, aes over HTTP"].flatMap { kind in
      ["tencent-half=ttl", "tencent-newline=true", "tencent-client=last"].map { (kind, $0) }
    }
    + ["emas, v1 over HTTP", "emas, v2 over HTTP", "emas, v2 gcm over HTTP"].flatMap { kind in
      [
        "emas-query-type=true", "emas-reversed=true", "emas-empty-ttl=true", "emas-long-ipv6=true", "emas-sparse=true",
        "emas-mode-number=true",
      ].map { (kind, $0) }
    }

  @Test(arguments: forms) func `other forms of a reply say the same`(title: String, setting: String) throws {
    try withLab { lab in
      let kind = AccountKind.named(title)
      let simulator = try lab.simulator("--setting", setting, https: kind.isSecure)
      var settings = Settings(kind.provider(simulator))
      settings.openControl(in: lab)
      let daemon = try lab.daemon(settings.text)
      // Both families come in one transfer once both were asked for.
      for name in ["example.com", "v4only.example.com", "many-30.example"] {
        for type in ["A", "AAAA"] { _ = try ask(daemon.address, name, type) }
      }
      #expect(try lab.run(["flush", "--socket", "\(lab.folder.path)/control.sock"]).0 == .exited(0))
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      #expect(try ask(daemon.address, "example.com", "AAAA").data == ["2001:db8::1"])
      #expect(try ask(daemon.address, "v4only.example.com").data == ["192.0.2.4"])
      let empty = try ask(daemon.address, "v4only.example.com", "AAAA")
      #expect(empty.code == .noError && empty.data.isEmpty)
      #expect(try ask(daemon.address, "many-30.example", "AAAA").data.count == 30)
    }
  }

  @Test(arguments: ["tencent, https", "tencent, aes over HTTP", "tencent, des over HTTP"])
  func `an account that demands an expiry gets one`(title: String) throws {
    try withLab { lab in
      let kind = AccountKind.named(title)
      let simulator = try lab.simulator("--setting", "tencent-expiry=true", https: kind.isSecure)
      let without = try lab.daemon(Settings(kind.provider(simulator)).text)
      #expect(try ask(without.address, "example.com").code == .servFail)
      try without.waitForLog("set expiry")
      let daemon = try lab.daemon(Settings(kind.provider(simulator, "expiry = \"10m\"")).text)
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
    }
  }

  @Test(arguments: AccountKind.all) func `a missing name is NODATA and never NXDOMAIN`(_ kind: AccountKind) throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: kind.isSecure)
      let daemon = try lab.daemon(Settings(kind.provider(simulator)).text)
      for (name, type) in [("nowhere.example.com", "A"), ("v4only.example.com", "AAAA"), ("nodata.example", "A")] {
        let reply = try ask(daemon.address, name, type)
        #expect(reply.code == .noError, "\(name) \(type): \(reply.errors)")
        #expect(reply.message.answers.isEmpty && reply.soa.count == 1)
      }
      #expect(try ask(daemon.address, "v4only.example.com").data == ["192.0.2.4"])
      let transfers = kind.isAlwaysPaired ? 3 : 4
      #expect(try simulator.count.transfers == transfers)
      // Types that the service does not have cost nothing.
      for type in ["MX", "TXT", "CNAME", "HTTPS"] {
        let reply = try ask(daemon.address, "example.com", type)
        #expect(reply.code == .noError && reply.message.answers.isEmpty)
        #expect(reply.errors == [21])
      }
      #expect(try simulator.count.transfers == transfers)
    }
  }

  @Test(arguments: AccountKind.all)
  func `an unlisted name goes to the next upstream, and is not asked for again`(_ kind: AccountKind) throws {
    try withLab { lab in
      let first = try lab.simulator("--setting", "not-listed=ttl-0.example,www.corp.example", https: kind.isSecure)
      let second = try lab.simulator("--setting", "not-listed=www.corp.example")
      let network = try PlainServer(addresses: ["www.corp.example.": "10.1.1.1"], ttl: 0)
      let next = AccountKind.named("tencent, aes over HTTP")
      var settings = Settings(
        kind.provider(first, "name = \"first\""), next.provider(second, "name = \"second\""))
      settings.localServers = [network.address]
      let daemon = try lab.daemon(settings.text)
      for _ in 0..<3 {
        #expect(try ask(daemon.address, "ttl-0.example").data == ["198.18.0.0"])
        #expect(try ask(daemon.address, "www.corp.example").data == ["10.1.1.1"])
      }
      let questions = try first.count.questions.filter { $0.key.hasSuffix(" A") }
      #expect(questions == ["ttl-0.example. A": 1, "www.corp.example. A": 1])
      #expect(try second.count.questions == ["ttl-0.example. A": 3, "www.corp.example. A": 1])
      #expect(network.queries.count == 3)
      #expect(
        try first.count.units[kind.name] ?? 0
          == (kind.name == "tencent" ? 2 : kind.isPricedByName ? 2 * kind.price : 0))
    }
  }

  @Test func `a name that is not listed is asked for again when not_listed_ttl is over`() throws {
    try withLab { lab in
      let simulator = try lab.simulator("--setting", "not-listed=ttl-0.example")
      let network = try PlainServer(addresses: ["ttl-0.example.": "10.1.1.1"], ttl: 0)
      let kind = AccountKind.named("emas, v1 over HTTP")
      var settings = Settings(kind.provider(simulator, "not_listed_ttl = \"1s\""))
      settings.localServers = [network.address]
      let daemon = try lab.daemon(settings.text)
      #expect(try ask(daemon.address, "ttl-0.example").data == ["10.1.1.1"])
      try simulator.set("not-listed=")
      try eventually("the provider's own answer") {
        try ask(daemon.address, "ttl-0.example").data == ["198.18.0.0"] ? true : nil
      }
      let times = try simulator.requests.map(\.time)
      #expect(times[1] - times[0] >= 1_000)
    }
  }

  @Test func `with fallback_on_empty = false an empty answer is final`() throws {
    try withLab { lab in
      let simulator = try lab.simulator("--setting", "not-listed=example.net")
      let network = try PlainServer(addresses: ["www.example.net.": "10.1.1.1"])
      let kind = AccountKind.named("tencent, aes over HTTP")
      var settings = Settings(kind.provider(simulator, "fallback_on_empty = false"))
      settings.localServers = [network.address]
      let daemon = try lab.daemon(settings.text)
      let reply = try ask(daemon.address, "www.example.net")
      #expect(reply.code == .noError && reply.message.answers.isEmpty)
      #expect(network.queries.isEmpty)
    }
  }

  @Test(arguments: ["volcengine over HTTP", "volcengine over HTTPS"])
  func `a family that was not asked for comes along, and is used`(_ title: String) throws {
    try withLab { lab in
      let kind = AccountKind.named(title)
      let simulator = try lab.simulator(https: kind.isSecure)
      let daemon = try lab.daemon(Settings(kind.provider(simulator)).text)
      #expect(try ask(daemon.address, "example.com", "AAAA").data == ["2001:db8::1"])
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      #expect(try simulator.count.transfers == 1)
      #expect(try simulator.count.units == [kind.name: kind.price])
    }
  }

  @Test(arguments: AccountKind.all.filter { !$0.isSecure && !$0.isAlwaysPaired && !$0.isApart })
  func `both families of a name travel in one transfer the second time`(_ kind: AccountKind) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(kind.provider(simulator)).text)
      for (type, data) in [("A", "198.18.0.2"), ("AAAA", nil)] as [(String, String?)] {
        let reply = try ask(daemon.address, "ttl-2.example", type)
        #expect(reply.data.count == 1 && (data == nil || reply.data == [data]))
      }
      #expect(try simulator.count.transfers == 2)
      try eventually("the second round") {
        #expect(try ask(daemon.address, "ttl-2.example").data == ["198.18.0.2"])
        return try simulator.count.transfers > 2 ? true : nil
      }
      #expect(try ask(daemon.address, "ttl-2.example", "AAAA").data.count == 1)
      let requests = try simulator.requests
      #expect(requests.count == 3)
      #expect(Set(requests[2].questions) == ["ttl-2.example. A", "ttl-2.example. AAAA"])
      #expect(requests.map(\.units) == [kind.price, kind.price, kind.pairPrice])
    }
  }

  @Test(arguments: ["tencent, https", "emas, v1 over HTTPS", "emas, v2 gcm over HTTPS", "baidu over HTTPS"])
  func `simultaneous questions for both families share one transfer`(_ title: String) throws {
    try withLab { lab in
      let kind = AccountKind.named(title)
      let simulator = try lab.simulator(https: true)
      let daemon = try lab.daemon(Settings(kind.provider(simulator)).text)
      // Zero would not do: EMAS takes it for no TTL at all.
      let queries = ["A", "AAAA"].map { TestQuery("ttl-1.example", $0) }
      for query in queries { #expect(try ask(daemon.address, query).data.count == 1) }
      // Without RD only cached answers are served.
      try eventually("an empty cache") {
        let replies = try queries.map { query in
          var query = query
          query.flags = 0
          return try ask(daemon.address, query)
        }
        return replies.allSatisfy { $0.code == .refused } ? true : nil
      }
      try simulator.fault("kind=delay&ms=200")
      for answer in try askAll(daemon.address, queries) { #expect(answer.reply.data.count == 1) }
      #expect(try simulator.count.transfers == 3)
      #expect(try simulator.count.units == [kind.name: 2 * kind.price + kind.pairPrice])
    }
  }
}
