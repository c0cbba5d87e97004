// SecretTests.swift -- secrets appear in no output, whatever fails.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct SecretTests {
  private static let canary = "Canary7f3a9"

  /// Looks for the secret, for what is sent in its place, and for the query of any URL.
  private func check(_ texts: String...) {
    for text in texts {
      #expect(!text.contains(SecretTests.canary))
      #expect(!text.contains("key=") && !text.contains("&ts="), "\(text)")
    }
  }

  @Test func `the daemon's log and command line have no secrets, whatever the provider does`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(
        "--require-signature", "--account", "999999", "--access-key-id", "KEYID", "--access-key-secret",
        SecretTests.canary)
      let secret = try lab.folder.write(SecretTests.canary, to: "secret")
      let account = "account_id = \"999999\"\naccess_key_id = \"KEYID\"\n"
      var settings = Settings(
        Settings.alidns(simulator.http, "name = \"file\"\n\(account)access_key_secret_file = \"\(secret)\""),
        Settings.alidns(simulator.http, "name = \"environment\"\n\(account)access_key_secret_env = \"SECRET_KEY\""),
        Settings.alidns(simulator.http, "name = \"text\"\n\(account)access_key_secret = \"\(SecretTests.canary)\""))
      settings.more = "[[rule]]\nnames = [\"=text.bench.example\"]\nuse = \"text\""
      let file = try lab.file(settings.text.replacing("level = \"debug\"", with: "level = \"trace\""))
      let environment = ["SECRET_KEY": SecretTests.canary]
      let daemon = try lab.daemon(
        settings.text.replacing("level = \"debug\"", with: "level = \"trace\""), environment: environment)
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      #expect(try simulator.requests.allSatisfy { $0.verified == true })
      let faults = [
        "reset", "status&code=401", "status&code=403", "status&code=500", "html", "cut", "wrong-question", "big",
      ]
      for (index, fault) in faults.enumerated() {
        try simulator.clearFaults()
        try simulator.fault("kind=\(fault)")
        #expect(try ask(daemon.address, "n\(index).bench.example").code == .servFail)
        let query = try lab.run("query", "--config", file, "n\(index).bench.example", environment: environment)
        #expect(query.ending == .exited(1))
        check(query.output, query.error)
      }
      try simulator.clearFaults()
      try simulator.fault("kind=stall")
      #expect(try ask(daemon.address, "text.bench.example").code == .servFail)
      // There is something in the log to look at.
      for provider in ["file: ", "environment: ", "text: "] { try daemon.waitForLog(provider) }
      check(try daemon.kernelFile("cmdline"))
      daemon.end()
      check(daemon.log)
    }
  }

  @Test func `mistakes and warnings have no secrets`() throws {
    try withLab { lab in
      let readable = try lab.folder.write(SecretTests.canary, to: "readable")
      chmod(readable, 0o644)
      let file = try lab.file(
        """
        canary = "\(SecretTests.canary)"
        [[provider]]
        name = "one"
        account_id = "999999"
        access_key_id = "KEYID"
        access_key_secret = "\(SecretTests.canary)"
        proxy = "http://user:\(SecretTests.canary)@127.0.0.1"
        [[provider]]
        name = "two"
        account_id = "999999"
        access_key_secret = ["\(SecretTests.canary)"]
        [[provider]]
        name = "three"
        account_id = "999999"
        access_key_id = "KEYID"
        access_key_secret_file = "\(readable)"
        [[provider]]
        name = "four"
        kind = "doh"
        url = "https://user:\(SecretTests.canary)@192.0.2.1/dns-query?token=\(SecretTests.canary)"
        access_key_secret = "\(SecretTests.canary)"
        """)
      for command in ["check", "run"] {
        let (ending, output, error) = try lab.run(command, "--config", file)
        #expect(ending == .exited(1))
        #expect(
          error.contains(
            "provider[\"three\"].access_key_secret_file: \(readable): other users can access the file (mode 0644)"))
        check(output, error)
      }
    }
  }
}
