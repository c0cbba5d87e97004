// AccountSecretTests.swift -- secrets of accounts appear in no output and no file, whatever fails.

import DNSWire
import Foundation
import Testing

/// Secrets that stand nowhere else.
private enum Canary {
  static let token = "CanaryToken7f3a9"
  static let aesKey = "CanaryAes7f3a9Ky"
  static let desKey = "CnryDes7"
  static let emas = String(repeating: "c0ffee7f3a9d", count: 4)
  static let sealed = "facade7f3a9dfacade7f3a9dfacade00"
  static let baidu = "CanaryBaidu7f3a9"
  static let volcengine = "CanaryVolc7f3a9"
  static let jdcloud = "CanaryJd7f3a9"
  static let ucloud = "CanaryUc7f3a9"

  /// What must not be seen: the secrets, the octets behind hexadecimal digits, and what is sent in their place.
  static let traces: [String] = {
    let secrets = [token, aesKey, desKey, emas, sealed, baidu, volcengine, jdcloud, ucloud]
    let texts = secrets.map { Array($0.utf8) }
    let encoded =
      texts.map { $0.map { String($0, radix: 16) }.joined() }
      + (texts + [emas, sealed].map(octets)).map { Data($0).base64EncodedString() }
    return (secrets + encoded).map { $0.lowercased() } + [
      "token=", "&s=", "?s=", "sign=", "&dn=", "?dn=", "&enc=", "authorization", "md5 ",
    ]
  }()

  private static func octets(_ digits: String) -> [UInt8] {
    stride(from: 0, to: digits.utf8.count, by: 2).map { offset in
      let start = digits.index(digits.startIndex, offsetBy: offset)
      return UInt8(digits[start..<digits.index(start, offsetBy: 2)], radix: 16)!
    }
  }

  static func check(_ texts: [String], _ what: String) {
    for text in texts {
      for trace in traces { #expect(!text.lowercased().contains(trace), "\(what): \(trace)") }
    }
  }
}

@Suite(.blocking) struct AccountSecretTests {
  /// A provider for each secret, and a rule that leads to each.
  private func settings(_ lab: Lab, _ simulator: Simulator) throws -> String {
    let https = try #require(simulator.https)
    let emas = "scheme = \"http\"\nservers = [\"\(simulator.http)\"]\naccount_id = \"100000\""
    let tencent = "servers = [\"\(simulator.http)\"]\nid = \"1234\""
    let secured =
      "servers = [\"\(https.address)\"]\ntls_name = \"119.29.29.99\"\nca_file = \"\(https.authority)\""
    // Its list of servers is stored.
    let secureEMAS = "servers = [\"\(https.address)\"]\nca_file = \"\(https.authority)\"\naccount_id = \"100000\""
    let file = try lab.folder.write("\(Canary.emas)\n", to: "emas-secret")
    var settings = Settings(
      Settings.provider("tencent", "name = \"p0\"\ncipher = \"https\"\ntoken = \"\(Canary.token)\"\n\(secured)"),
      Settings.provider("tencent", "name = \"p1\"\ncipher = \"aes\"\nkey_env = \"AES_KEY\"\n\(tencent)"),
      Settings.provider("tencent", "name = \"p2\"\ncipher = \"des\"\nkey = \"\(Canary.desKey)\"\n\(tencent)"),
      Settings.provider("emas", "name = \"p3\"\nsecret_key_file = \"\(file)\"\n\(secureEMAS)"),
      Settings.provider(
        "emas",
        """
        name = "p4"
        api = "v2"
        secret_key = "\(Canary.emas)"
        aes_secret_key = "\(Canary.sealed)"
        units_per_day = 100000
        \(emas)
        """),
      Settings.provider(
        "baidu",
        """
        name = "p5"
        scheme = "http"
        servers = ["\(simulator.http)"]
        account_id = "100001"
        secret = "\(Canary.baidu)"
        """),
      Settings.provider(
        "volcengine",
        """
        name = "p6"
        scheme = "http"
        servers = ["\(simulator.http)"]
        account_id = "2100000001"
        secret_key = "\(Canary.volcengine)"
        """),
      Settings.provider(
        "jdcloud",
        """
        name = "p7"
        servers = ["\(simulator.http)"]
        account_id = "123456"
        key = "\(Canary.jdcloud)"
        """),
      Settings.provider(
        "ucloud",
        """
        name = "p8"
        servers = ["\(simulator.http)"]
        auth_id = "abc-0001"
        auth_secret = "\(Canary.ucloud)"
        """))
    settings.openControl(in: lab)
    settings.more =
      "[web]\naddress = \"127.0.0.1:0\"\ndashboard = true\n"
      + (0..<9).map { index in
        "[[rule]]\nnames = [\"n\(index).bench.example\"]\nuse = \"p\(index)\"\nfallback = \"never\""
      }.joined(separator: "\n")
    return settings.text.replacing("level = \"debug\"", with: "level = \"trace\"")
  }

  @Test(arguments: ["the right secrets", "other secrets"])
  func `no log, output, state file or command line has a secret of an account`(_ account: String) throws {
    try withLab { lab in
      let right = [
        "--tencent-token", Canary.token, "--tencent-aes-key", Canary.aesKey, "--tencent-des-key", Canary.desKey,
        "--emas-secret", Canary.emas, "--emas-aes-secret", Canary.sealed, "--secret", "baidu=\(Canary.baidu)",
        "--secret", "volcengine=\(Canary.volcengine)", "--secret", "jdcloud=\(Canary.jdcloud)",
        "--secret", "ucloud=\(Canary.ucloud)",
      ]
      let isRight = account == "the right secrets"
      let simulator = try lab.simulator(isRight ? right : [], https: true)
      let text = try settings(lab, simulator)
      let state = "\(lab.folder.path)/state"
      try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
      let environment = ["AES_KEY": Canary.aesKey, "STATE_DIRECTORY": state]
      let file = try lab.file(text)
      let daemon = try lab.daemon(text, environment: environment)
      let faults = [
        "", "reset", "wrong-question", "status&code=400", "status&code=500", "error&error=ServiceLevelDeny", "html",
        "cut", "big", "error&error=SignatureExpired", "status&code=401", "status&code=404", "status&code=429",
      ]
      for fault in faults {
        try simulator.clearFaults()
        if !fault.isEmpty {
          for path in ["/d", "/v2/d", "/100000/sign_d", "/v4/resolve", "/resolve", "/v1/123456/d", "/abc-0001/"] {
            try simulator.fault("kind=\(fault)&path=\(path)")
          }
        }
        for index in 0..<9 {
          let reply = try ask(daemon.address, "n\(index).bench.example")
          if fault.isEmpty, isRight { #expect(reply.data == ["198.18.0.\(index)"]) }
        }
        let name = fault.isEmpty ? "n0.bench.example" : "n9.bench.example"
        for arguments in [
          ["query", name], ["query", "--provider", "p4", name], ["doctor", name], ["doctor", "--json", name],
        ] {
          let (_, output, error) = try lab.run(arguments + ["--config", file], environment: environment)
          Canary.check([output, error], arguments.joined(separator: " "))
        }
      }
      let socket = "\(lab.folder.path)/control.sock"
      for arguments in [["providers"], ["providers", "--json"], ["stats"], ["stats", "--json"], ["top", "--once"]] {
        let (_, output, error) = try lab.run(arguments + ["--socket", socket])
        #expect(!output.isEmpty, "\(arguments): \(error)")
        Canary.check([output, error], arguments.joined(separator: " "))
      }
      let web = try WebClient(daemon)
      for path in ["/metrics", "/dashboard", "/healthz"] { Canary.check([try web.get(path).text], path) }
      let (_, output, error) = try lab.run(["check", "--config", file], environment: environment)
      Canary.check([output, error], "check")
      Canary.check([try daemon.kernelFile("cmdline")], "the command line")
      daemon.end()
      Canary.check([daemon.log], "the log")
      let files = try FileManager.default.contentsOfDirectory(atPath: state)
      if isRight { #expect(Set(files).isSuperset(of: ["units", "servers-p3"])) }
      for file in files {
        Canary.check([try String(contentsOfFile: "\(state)/\(file)", encoding: .utf8)], file)
      }
      if !isRight { #expect(daemon.log.contains("; check account_id")) }
    }
  }

  @Test func `mistakes in the keys of accounts have no secrets`() throws {
    try withLab { lab in
      let file = try lab.file(
        """
        [[provider]]
        name = "short"
        kind = "tencent"
        cipher = "aes"
        id = "1234"
        key = "\(Canary.token)-and-more"
        [[provider]]
        name = "both"
        kind = "tencent"
        token = "\(Canary.token)"
        key = "\(Canary.aesKey)"
        [[provider]]
        name = "digits"
        kind = "emas"
        account_id = "100000"
        api = "v2"
        secret_key = "\(Canary.token)"
        aes_secret_key = "\(Canary.emas)"
        [[provider]]
        name = "array"
        kind = "emas"
        account_id = "100000"
        secret_key = ["\(Canary.emas)"]
        """)
      for command in ["check", "run", "doctor"] {
        let more = command == "doctor" ? ["example.com"] : []
        let (ending, output, error) = try lab.run([command, "--config", file] + more)
        #expect(ending == .exited(1), "\(command)")
        for key in ["short\"].key", "both\"].key", "digits\"].secret_key", "digits\"].aes_secret_key", "array\"]"] {
          #expect(error.contains("provider[\"\(key)"), "\(command): \(key)")
        }
        Canary.check([output, error], command)
      }
    }
  }
}
