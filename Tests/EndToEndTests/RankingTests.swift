// RankingTests.swift -- addresses of loopback: one that listens, one that does not, and what programs report.

import Foundation
import Testing

@Suite(.blocking) struct RankingTests {
  /// A simulator whose zone has `www.bench.example` at 127.0.0.2 and 127.0.0.3.
  private func simulator(_ lab: Lab) throws -> Simulator {
    let zone = try lab.folder.write(
      """
      $ORIGIN bench.example.
      @ 300 SOA ns.bench.example. nobody.invalid. 1 3600 600 604800 60
      www 300 A 127.0.0.2
      www 300 A 127.0.0.3
      """, to: "zone")
    return try lab.simulator("--zone", zone)
  }

  private func control(_ lab: Lab, _ socket: String, _ arguments: String...) throws -> String {
    let (ending, output, error) = try lab.run(arguments + ["--socket", socket])
    guard ending == .exited(0), error.isEmpty else { throw Failure("\(arguments): \(ending) \(error)") }
    return output
  }

  @Test func `an address without a listener is last soon after the first answer, and the cache says why`() throws {
    try withLab { lab in
      let simulator = try simulator(lab)
      let listener = try Socket(SOCK_STREAM, boundTo: Address("127.0.0.3", 0))
      listen(listener.descriptor, 16)
      let port = listener.address.port
      var settings = Settings(Settings.json(simulator.http))
      let socket = settings.openControl(in: lab)
      settings.more = "[ranking]\ndomains = { \"bench.example\" = \"tcp:\(port)\" }\n"
      let daemon = try lab.daemon(settings.text)
      #expect(try ask(daemon.address, "www.bench.example").data.count == 2)
      try eventually("127.0.0.3 is first") {
        let text = try control(lab, socket, "cache", "www.bench.example")
        return text.contains("127.0.0.2: no answer to tcp:\(port)") && text.contains(" ms by tcp:\(port)") ? true : nil
      }
      for _ in 0..<5 { #expect(try ask(daemon.address, "www.bench.example").data == ["127.0.0.3", "127.0.0.2"]) }
      let content = try control(lab, socket, "cache", "--json", "www.bench.example")
      #expect(content.contains("\"probes\":[{\"kind\":\"tcp:\(port)\",\"ms\":"))
      #expect(try control(lab, socket, "stats").contains("1 answer measured, 4 probes (2 failed, 0 put off)"))
      let findings = try lab.run(["doctor", "--config", daemon.configuration]).output
      #expect(findings.contains("1 answer measured by 4 probes, 2 failed"))
    }
  }

  @Test func `answers of the cache file are measured once they are used, and their order outlives a restart`() throws {
    try withLab { lab in
      let simulator = try simulator(lab)
      let listener = try Socket(SOCK_STREAM, boundTo: Address("127.0.0.3", 0))
      listen(listener.descriptor, 16)
      func daemon(ranking: String) throws -> Daemon {
        var settings = Settings(Settings.json(simulator.http))
        settings.more = "[cache]\npersist = \"\(lab.folder.path)/cache\"\n[refresh]\nhot_hits = 0\n\(ranking)"
        return try lab.daemon(settings.text)
      }
      /// The first addresses of eight answers, of which every other would begin with the other address.
      func firsts(_ daemon: Daemon) throws -> Set<String> {
        Set(try (0..<8).map { _ in try ask(daemon.address, "www.bench.example").data[0] })
      }
      let first = try daemon(ranking: "")
      #expect(try firsts(first).count == 2)
      first.end()

      let tcp = "tcp:\(listener.address.port)"
      let second = try daemon(ranking: "[ranking]\ndomains = { \"bench.example\" = \"\(tcp)\" }\n")
      try second.waitForLog("1 entry loaded")
      try eventually("127.0.0.3 is always first") { try firsts(second) == ["127.0.0.3"] ? true : nil }
      second.end()

      let third = try daemon(ranking: "")
      try third.waitForLog("1 entry loaded")
      #expect(try firsts(third) == ["127.0.0.3"])
      #expect(try simulator.count.transfers == 1)
    }
  }

  @Test func `programs report addresses by the command, the socket and the web, with the token alone`() throws {
    try withLab { lab in
      let simulator = try simulator(lab)
      var settings = Settings(Settings.json(simulator.http))
      let socket = settings.openControl(in: lab)
      settings.more = "[web]\naddress = \"127.0.0.1:0\"\nreport_token_env = \"TOKEN\"\n"
      let tokens = ["TOKEN": "0123456789abcdef", "NEXT": "fedcba9876543210"]
      let daemon = try lab.daemon(settings.text, environment: tokens)
      _ = try ask(daemon.address, "www.bench.example")
      for _ in 0..<2 {
        #expect(
          try control(lab, socket, "report", "www.bench.example", "127.0.0.2", "--failed") == "1 report counted\n")
      }
      let web = try daemon.process.wait(for: "the web address", in: .error) { text in
        text.firstMatch(of: /metrics at http:\/\/127\.0\.0\.1:(\d+)/).flatMap { UInt16($0.1) }
      }
      let body = #"{"reports":[{"name":"www.bench.example","address":"127.0.0.2","result":"failed"}]}"#
      func post(_ token: String) throws -> String {
        try ChildProcess.run([
          "curl", "-s", "-m", "10", "-H", "Authorization: Bearer \(token)", "-d", body,
          "http://127.0.0.1:\(web)/report",
        ]).output
      }
      #expect(try post("0123456789abcdeX").contains("does not bear the token"))
      #expect(try post("0123456789abcdef") == "{\"counted\":1,\"unknown\":0}\n")
      for _ in 0..<5 { #expect(try ask(daemon.address, "www.bench.example").data == ["127.0.0.3", "127.0.0.2"]) }
      #expect(
        try control(lab, socket, "report", "www.bench.example", "127.0.0.2", "--ok", "--ms", "7")
          == "1 report counted\n")
      let firsts = try (0..<4).map { _ in try ask(daemon.address, "www.bench.example").data[0] }
      #expect(Set(firsts).count == 2)

      try daemon.reload(settings.text.replacing("TOKEN", with: "NEXT"))
      #expect(try post("0123456789abcdef").contains("does not bear the token"))
      #expect(try post("fedcba9876543210").contains("counted"))
      try daemon.reload(settings.text.replacing("report_token_env = \"TOKEN\"\n", with: ""))
      #expect(try post("fedcba9876543210").contains("only GET and HEAD"))
    }
  }
}
