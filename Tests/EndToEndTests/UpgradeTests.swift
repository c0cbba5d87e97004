// UpgradeTests.swift -- what 0.1.0 left behind works with this version: configurations, the state folder, the cache file.
//
// The files in Data/0.1.0 were written by that version at the moment `UpgradeTests.end`, against the simulator: seven
// questions to "paid", whose six units a day that spent, then others, and one name of `refresh.keep` three times. The
// programs here live a few seconds after that moment.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct UpgradeTests {
  /// When 0.1.0 ended, in seconds since 1970.
  private static let end: Int64 = 1_795_363_347

  private static let data = (#filePath as NSString).deletingLastPathComponent + "/Data/0.1.0"

  private static func text(_ file: String) throws -> String {
    try String(contentsOfFile: "\(data)/\(file)", encoding: .utf8)
  }

  private struct Scene {
    let lab: Lab
    let daemon: Daemon
    let simulator: Simulator

    /// What the daemon says about itself.
    func control(_ command: String) throws -> String {
      try lab.run(command, "--json", "--socket", "\(lab.folder.path)/control.sock").output
    }
  }

  /// This version on the files of 0.1.0, five seconds after its end.
  private func withScene(_ body: (Scene) throws -> Void) throws {
    try withLab { lab in
      let ahead = UpgradeTests.end + 5 - Int64(Date().timeIntervalSince1970)
      let simulator = try lab.simulator("--clock-offset=\(ahead)")
      let clock = try ShiftedClock(in: lab, by: ahead)
      for file in ["cache", "units", "refreshes"] {
        try FileManager.default.copyItem(atPath: "\(UpgradeTests.data)/\(file)", toPath: "\(lab.folder.path)/\(file)")
      }
      let listed = "\(simulator.http.host) \(simulator.http.port)"
      _ = try lab.folder.write(
        UpgradeTests.text("servers-listed").replacing("ADDRESS", with: listed), to: "servers-listed")
      let configuration = try UpgradeTests.text("with-state.toml").replacing("FOLDER", with: lab.folder.path)
        .replacing("SIMULATOR", with: simulator.http.description)
      let daemon = try lab.daemon(configuration, environment: clock.environment)
      try daemon.process.wait(for: "the cache file", in: .error) { $0.contains(" entries loaded in ") ? true : nil }
      try body(Scene(lab: lab, daemon: daemon, simulator: simulator))
    }
  }

  @Test func `the old version's cache file is used without a transfer`() throws {
    try withScene { scene in
      #expect(scene.daemon.log.contains(/INFO cache: 1[89] entries loaded/))
      for number in 1...6 {
        let reply = try ask(scene.daemon.address, "n\(number).bench.example")
        #expect(reply.data == ["198.18.0.\(number)"])
        #expect((200...300).contains(reply.ttl ?? 0))
      }
      for number in 11...13 {
        let reply = try ask(scene.daemon.address, "n\(number).bench.example", "AAAA")
        #expect(reply.data == [["2001:2::b", "2001:2::c", "2001:2::d"][number - 11]])
      }
      #expect(try ask(scene.daemon.address, "example.com", "MX").data.count == 2)
      #expect(try ask(scene.daemon.address, "example.com", "TXT").data == ["\"v=spf1 mx -all\""])
      #expect(try ask(scene.daemon.address, "example.com", "HTTPS").data.count == 1)
      #expect(try ask(scene.daemon.address, "alias2.example.com").data == ["192.0.2.1", "192.0.2.2"])
      // What had less than 30 s to live is stale by now, and given at once where the rule says so.
      #expect(try ask(scene.daemon.address, "www.example.net").data == ["198.51.100.80"])
      let asked = try scene.simulator.requests.flatMap(\.questions)
      // The keep list name expired while no daemon ran; its stale data is refetched in the background.
      #expect(asked.allSatisfy { $0.hasPrefix("ttl-20.") || $0.hasPrefix("www.example.net.") }, "\(asked)")
    }
  }

  @Test func `the old version's spending of today counts`() throws {
    try withScene { scene in
      #expect(try ask(scene.daemon.address, "n21.bench.example").data == ["198.18.0.21"])
      let providers = try scene.control("providers")
      #expect(providers.contains(/"name":"paid"[^}]*"units_today":6\b/), "\(providers)")
      #expect(providers.contains(/"name":"listed"[^}]*"units_today":(9|1\d)\b/), "\(providers)")
      // All three refreshes of the day are in the file.
      try eventually("a refresh that is not made", within: .seconds(40)) {
        try scene.control("stats").contains(/"refresh_over_budget":[1-9]/) ? true : nil
      }
      #expect(try scene.control("stats").contains("\"refresh_transfers\":0"))
    }
  }

  @Test func `the old version's list of servers is used until a new one arrives`() throws {
    try withScene { scene in
      // The simulator's own list, which the daemon asks for, comes from the address that was kept.
      #expect(try ask(scene.daemon.address, "n22.bench.example").data == ["198.18.0.22"])
      #expect(!scene.daemon.log.contains("no list of the provider's servers"))
      let requests = try scene.simulator.requests
      #expect(requests.contains { $0.path == "/100000/sign_d" && $0.questions.count == 1 })
    }
  }

  @Test func `the old version's sample and README configurations are accepted`() throws {
    let secrets = [
      "access_key_secret": "secret", "token": "4711", "key": "0123456789abcdef", "secret_key": "0123456789abcdef",
      "aes_secret_key": "0123456789abcdef0123456789abcdef",
    ]
    let shown = try UpgradeTests.text("readme.txt").components(separatedBy: "--------\n").dropFirst()
    #expect(shown.count == 13)
    try withLab { lab in
      for text in try [UpgradeTests.text("sample.toml")] + shown {
        // Secrets come from the environment: their files are their owner's.
        let file = try lab.file(
          text.replacing(/(\w+)_file = "[^"]*(secret|key|aes)"/) { "\($0.output.1)_env = \"\($0.output.1)\"" })
        let (ending, output, error) = try lab.run("check", "--config", file, environment: secrets)
        #expect(ending == .exited(0), "\(text)\n\(output)\(error)")
      }
    }
  }
}
