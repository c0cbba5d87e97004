// FaultTests.swift -- providers that fail in every way: LocalDNS answers in their place, or an error says why, in time.

import DNSWire
import Foundation
import Testing

/// A fault of the provider, and the Extended DNS Errors that tell of it.
private struct ProviderFault {
  let parameters: String
  let errors: [UInt16]

  static let all = [
    ProviderFault(parameters: "kind=stall", errors: [23]),
    ProviderFault(parameters: "kind=delay&ms=9000", errors: [23]),
    ProviderFault(parameters: "kind=reset", errors: [23]),
    ProviderFault(parameters: "kind=status&code=500", errors: [22]),
    ProviderFault(parameters: "kind=status&code=502", errors: [22]),
    ProviderFault(parameters: "kind=status&code=503&retry-after=2", errors: [22]),
    ProviderFault(parameters: "kind=status&code=404", errors: [0]),
    ProviderFault(parameters: "kind=status&code=302", errors: [22]),
    ProviderFault(parameters: "kind=html", errors: [24]),
    ProviderFault(parameters: "kind=cut", errors: [24]),
    ProviderFault(parameters: "kind=wrong-question", errors: [24]),
    ProviderFault(parameters: "kind=big", errors: [24]),
    ProviderFault(parameters: "kind=status&code=429&retry-after=1", errors: [0]),
  ]
}

/// Everybody is answered after 4.4 s: glibc and systemd-resolved ask again after five. What is between is for machines
/// that do much else meanwhile.
private let patience = Duration.milliseconds(4_900)

@Suite(.blocking) struct FaultTests {
  /// A question for each fault, which hits that question alone.
  private func questions(_ simulator: Simulator) throws -> [TestQuery] {
    try ProviderFault.all.enumerated().map { index, fault in
      try simulator.fault("\(fault.parameters)&name=n\(index).bench.example")
      return TestQuery("n\(index).bench.example")
    }
  }

  @Test func `a provider that refuses all names is asked for each of them, and LocalDNS answers each`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let network = try PlainServer { query, _ in
        let record = ResourceRecord(owner: query.questions[0].question.name, type: .a, ttl: 300, rdata: [10, 0, 0, 1])
        return query.reply(answers: [record])
      }
      var settings = Settings(Settings.json(simulator.http))
      settings.localServers = [network.address]
      let daemon = try lab.daemon(settings.text)
      try simulator.fault("kind=status&code=403")
      for index in 0..<5 {
        let (reply, duration) = try timed { try ask(daemon.address, "www.d\(index).example") }
        #expect(reply.data == ["10.0.0.1"])
        #expect(duration < .milliseconds(500))
      }
      #expect(try simulator.count.transfers == 5)
    }
  }

  @Test(arguments: ["json", "alidns", "doh"])
  func `without LocalDNS clients get SERVFAIL in time, with the reason`(_ kind: String) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.plain(kind, simulator.http)).text)
      let queries = try questions(simulator)
      for ((reply, duration), fault) in zip(try askAll(daemon.address, queries), ProviderFault.all) {
        #expect(reply.code == .servFail, "\(fault)")
        #expect(reply.errors == fault.errors, "\(fault)")
        #expect(duration < patience, "\(fault)")
      }
      // What was not touched is answered, and what was is answered again when the provider is well.
      #expect(try ask(daemon.address, "n100.bench.example").code == .noError)
      try simulator.clearFaults()
      try eventually("recovery") {
        let replies = try askAll(daemon.address, queries).map(\.reply)
        return replies.allSatisfy { $0.code == .noError } ? true : nil
      }
    }
  }

  @Test(arguments: ["json", "alidns", "doh"])
  func `LocalDNS answers in time after each failure`(_ kind: String) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let names = (0..<ProviderFault.all.count).map { ("n\($0).bench.example.", "10.0.0.\($0)") }
      let network = try PlainServer(addresses: Dictionary(uniqueKeysWithValues: names))
      var settings = Settings(Settings.plain(kind, simulator.http))
      settings.localServers = [network.address]
      let daemon = try lab.daemon(settings.text)
      let answers = try askAll(daemon.address, questions(simulator))
      for (index, ((reply, duration), fault)) in zip(answers, ProviderFault.all).enumerated() {
        #expect(reply.data == ["10.0.0.\(index)"], "\(fault)")
        #expect(reply.ttl ?? .max <= 60, "an answer by fallback is not trusted for longer")
        #expect(duration < patience, "\(fault)")
      }
      try simulator.clearFaults()
      var index = 100
      try eventually("recovery", within: .seconds(20)) {
        index += 1
        return try ask(daemon.address, "n\(index).bench.example").data.first?.hasPrefix("198.18.") == true ? true : nil
      }
    }
  }

  @Test(arguments: ["tencent, aes over HTTP", "emas, v1 over HTTP"])
  func `a portal's page in an account's place is reported with the names that failed`(_ title: String) throws {
    try withLab { lab in
      let simulator = try lab.simulator("--fault", "kind=html")
      let kind = AccountKind.named(title)
      var settings = Settings(kind.provider(simulator))
      settings.control = "socket = \"\(lab.folder.path)/control.sock\""
      let daemon = try lab.daemon(settings.text)
      for name in ["a.example", "b.example", "c.example"] {
        #expect(try ask(daemon.address, name).code == .servFail)
      }
      let (_, output, _) = try lab.run("providers", "--socket", "\(lab.folder.path)/control.sock")
      #expect(
        output.contains("\(kind.name): 3 questions without an answer: ") && output.contains("of a portal?"), "\(output)"
      )
    }
  }

  @Test func `a provider that fails is followed by the next one`() throws {
    try withLab { lab in
      let first = try lab.simulator()
      let second = try lab.simulator()
      let daemon = try lab.daemon(
        Settings(Settings.json(first.http, "name = \"first\""), Settings.doh(second.http, "name = \"second\"")).text)
      for (index, fault) in ["kind=status&code=500", "kind=html", "kind=stall", "kind=status&code=429"].enumerated() {
        try first.fault("\(fault)&name=n\(index).bench.example")
        let (reply, duration) = try timed { try ask(daemon.address, "n\(index).bench.example") }
        #expect(reply.data == ["198.18.0.\(index)"])
        #expect(duration < patience)
      }
      #expect(try second.count.transfers == 4)
    }
  }

  @Test func `servers are asked in order, which changes after some failures`() throws {
    try withLab { lab in
      let simulators = try (0..<2).map { _ in try lab.simulator() }
      let provider = Settings.provider(
        "alidns",
        """
        scheme = "http"
        servers = \(quoted(simulators.map(\.http.description)))
        attempts_before_switch = 2
        """)
      let daemon = try lab.daemon(Settings(provider).text)
      try simulators[0].fault("kind=status&code=500")
      for index in 0..<4 { #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"]) }
      // Two failures move the order, and each client asks the first one once more.
      #expect(try simulators.map { try $0.count.transfers } == [3, 4])
    }
  }

  @Test func `a failure is not asked for again at once`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.json(simulator.http)).text)
      for name in ["servfail.example", "refused.example"] {
        let first = try ask(daemon.address, name)
        #expect(first.code == .servFail)
        #expect(first.errors == [0])
        let second = try ask(daemon.address, name)
        #expect(second.code == .servFail)
        #expect(second.errors == [13])
      }
      #expect(try simulator.count.transfers == 2)
    }
  }

  @Test func `a provider that is not there is made good at once`() throws {
    try withLab { lab in
      let closed = try lab.closedAddress()
      let network = try PlainServer(addresses: ["www.example.com.": "10.0.0.1"])
      var settings = Settings(Settings.json(closed))
      settings.localServers = [network.address]
      let server = try lab.daemon(settings.text).address
      let (reply, duration) = try timed { try ask(server, "www.example.com") }
      #expect(reply.data == ["10.0.0.1"])
      #expect(duration < .seconds(1))
    }
  }

  @Test func `a silent LocalDNS does not delay clients`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let network = try PlainServer { _, _ in nil }
      var settings = Settings(Settings.json(simulator.http))
      settings.localServers = [network.address]
      let server = try lab.daemon(settings.text).address
      try simulator.fault("kind=stall")
      let queries = ["n1.bench.example", "printer.internal"].map { TestQuery($0) }
      for (reply, duration) in try askAll(server, queries) {
        #expect(reply.code == .servFail)
        #expect(reply.errors.count == 1)
        #expect(duration < patience)
      }
    }
  }

  @Test func `a provider given by name is found by its bootstrap resolvers`() throws {
    try withLab { lab in
      // Not the name of a service whose addresses are known.
      let simulator = try lab.simulator("--tls-name", "dns.example.org", https: true)
      let https = try #require(simulator.https)
      let bootstrap = try PlainServer(addresses: ["dns.example.org.": "127.0.0.1"])
      let provider = Settings.provider(
        "json",
        """
        url = "https://dns.example.org:\(https.address.port)/resolve"
        ca_file = "\(https.authority)"
        bootstrap = ["\(bootstrap.address)"]
        """)
      let server = try lab.daemon(Settings(provider).text).address
      #expect(try ask(server, "example.com").data == ["192.0.2.1"])
      #expect(try ask(server, "www.example.com").code == .noError)
      let asked = bootstrap.queries.map(\.message.questions[0].question)
      #expect(Set(asked.map(\.name.text)) == ["dns.example.org."])
      #expect(asked.count <= 2, "A and AAAA, once each")
    }
  }

  @Test func `a provider whose server is not resolved fails in time, and recovers`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let isKnown = Flag()
      let bootstrap = try PlainServer { query, _ in
        let question = query.questions[0].question
        guard isKnown.isSet else { return query.reply(.servFail) }
        let record = ResourceRecord(owner: question.name, type: .a, ttl: 60, rdata: [127, 0, 0, 1])
        return query.reply(answers: question.type == .a ? [record] : [])
      }
      let provider = Settings.provider(
        "json",
        "url = \"http://dns.example.org:\(simulator.http.port)/resolve\"\nbootstrap = [\"\(bootstrap.address)\"]")
      let server = try lab.daemon(Settings(provider).text).address
      let (reply, duration) = try timed { try ask(server, "example.com") }
      #expect(reply.code == .servFail)
      #expect(reply.errors == [23])
      #expect(duration < patience)
      isKnown.set()
      try eventually("an answer", within: .seconds(8)) {
        try ask(server, "example.com").data == ["192.0.2.1"] ? true : nil
      }
    }
  }
}

/// A switch that two threads share.
private final class Flag: @unchecked Sendable {
  private let lock = NSLock()
  private var value = false

  var isSet: Bool { lock.withLock { value } }
  func set() { lock.withLock { value = true } }
}
