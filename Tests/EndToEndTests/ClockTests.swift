// ClockTests.swift -- a machine without a battery for its clock: it starts long before the program was built.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ClockTests {
  private static let account = ["--account", "999999", "--access-key-id", "KEYID", "--access-key-secret", "SECRET"]
  /// Valid since long before the day of the build.
  private static let oldCertificate = ["--tls-age", "315360000"]

  /// A provider that checks the time of signatures.
  private func provider(_ simulator: Simulator) throws -> String {
    let https = try #require(simulator.https)
    return Settings.provider(
      "alidns",
      """
      scheme = "https"
      servers = ["\(https.address)"]
      ca_file = "\(https.authority)"
      account_id = "999999"
      access_key_id = "KEYID"
      access_key_secret = "SECRET"
      """)
  }

  /// LocalDNS, which has one address for everything.
  private func network() throws -> PlainServer {
    try PlainServer { query, _ in
      let owner = query.questions[0].question.name
      return query.reply(answers: [ResourceRecord(owner: owner, type: .a, ttl: 300, rdata: [10, 0, 0, 1])])
    }
  }

  /// Asks for new names until the provider answers.
  private func waitForProvider(_ daemon: Daemon, from first: Int) throws {
    var number = first
    try eventually("the provider answers", within: .seconds(10)) {
      number += 1
      return try ask(daemon.address, "n\(number).bench.example").data.first?.hasPrefix("198.18.") == true ? true : nil
    }
  }

  @Test func `with a clock before the build LocalDNS answers until a TLS response has the time`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(
        ClockTests.account + ClockTests.oldCertificate + ["--require-signature"], https: true)
      let (network, clock) = (try network(), try ShiftedClock.of2000(in: lab))
      var settings = Settings(try provider(simulator))
      settings.localServers = [network.address]
      // The provider is slow, so that what is asked meanwhile is asked in time.
      try simulator.fault("kind=delay&ms=600")
      let daemon = try lab.daemon(settings.text, environment: clock.environment)
      #expect(daemon.log.hasPrefix("2000-01-01T"))
      for name in ["0.pool.ntp.org", "time.example.net", "n0.bench.example"] {
        let (reply, duration) = try timed { try ask(daemon.address, name) }
        #expect(reply.data == ["10.0.0.1"])
        #expect(reply.ttl ?? .max <= 60)
        #expect(duration < .milliseconds(550))
      }
      try daemon.waitForLog("the machine's clock is before the day of this program's build")

      try waitForProvider(daemon, from: 100)
      try simulator.clearFaults()
      let requests = try simulator.requests
      // The first signature bears the year 2000, and so may those that were in flight by then; all others bear what the
      // refusal has taught.
      let verified = requests.map(\.verified)
      #expect(verified.first == false && verified.last == true, "\(verified)")
      #expect(verified.drop { $0 == false }.allSatisfy { $0 == true }, "\(verified)")
      #expect(requests.allSatisfy { $0.transport == "https" })

      // A time server's answer has come: what was learned no longer applies.
      try clock.setRight()
      let queries = (1...20).map { TestQuery("n\($0).bench.example") }
      for (index, answer) in try askAll(daemon.address, queries).enumerated() {
        #expect(answer.reply.data == ["198.18.0.\(index + 1)"])
      }
      #expect(try simulator.requests.last?.verified == true)
    }
  }

  @Test func `a certificate that is younger than the program waits for the machine's clock`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(ClockTests.account, https: true)
      let (network, clock) = (try network(), try ShiftedClock.of2000(in: lab))
      var settings = Settings(try provider(simulator))
      settings.localServers = [network.address]
      let daemon = try lab.daemon(settings.text, environment: clock.environment)
      for number in 1...20 { #expect(try ask(daemon.address, "n\(number).bench.example").data == ["10.0.0.1"]) }
      #expect(try simulator.count.transfers == 0)
      try clock.setRight()
      try waitForProvider(daemon, from: 100)
    }
  }

  @Test func `without fallback certificates are checked by the day of the build`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(ClockTests.account + ClockTests.oldCertificate, https: true)
      let (network, clock) = (try network(), try ShiftedClock.of2000(in: lab))
      var settings = Settings(try provider(simulator))
      settings.localServers = [network.address]
      settings.local = "fallback = \"never\""
      settings.more = "[[rule]]\nnames = [\"pool.ntp.org\"]\nuse = \"localdns\""
      let daemon = try lab.daemon(settings.text, environment: clock.environment)
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      #expect(network.queries.isEmpty)
      #expect(try ask(daemon.address, "0.pool.ntp.org").data == ["10.0.0.1"])
    }
  }

  @Test func `what a refusal over http teaches is no time for certificates`() throws {
    try withLab { lab in
      let learning = try lab.simulator("--setting", "not-listed=example.net")
      // Its certificate is younger than the program.
      let secure = try lab.simulator(ClockTests.account, https: true)
      let (network, clock) = (try network(), try ShiftedClock.of2000(in: lab))
      var settings = Settings(AccountKind.named("ucloud over HTTP").provider(learning), try provider(secure))
      settings.localServers = [network.address]
      let daemon = try lab.daemon(settings.text, environment: clock.environment)
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      #expect(try learning.requests.map(\.status) == [401, 200], "it has learned the time")
      for number in 1...5 { #expect(try ask(daemon.address, "n\(number).example.net").data == ["10.0.0.1"]) }
      #expect(try learning.count.transfers == 7)
      #expect(try secure.count.transfers == 0)
    }
  }

  @Test func `the time of a plain HTTP response is ignored`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let (network, clock) = (try network(), try ShiftedClock.of2000(in: lab))
      var settings = Settings(AccountKind.named("emas, v2 over HTTP").provider(simulator))
      settings.localServers = [network.address]
      let daemon = try lab.daemon(settings.text, environment: clock.environment)
      for number in 1...5 { #expect(try ask(daemon.address, "n\(number).bench.example").data == ["10.0.0.1"]) }
      #expect(try simulator.requests.map(\.status) == [403])
      try daemon.waitForLog("set the machine's clock")
    }
  }
}
