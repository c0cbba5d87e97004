// HealthcheckTests.swift -- `httpdnsd healthcheck`, and variables in the place of a file's keys.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct HealthcheckTests {
  @Test func `healthcheck succeeds only with a daemon that answers`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.json(simulator.http)).text)
      let address = daemon.address.description
      let (ending, output, error) = try lab.run("healthcheck", "--address", address)
      #expect(ending == .exited(0), "\(error)")
      #expect(output.wholeMatch(of: /\S+ answers: UDP \d+\.\d ms, TCP \d+\.\d ms\n/) != nil, "\(output)")
      // Answered by the daemon itself.
      #expect(try simulator.requests.isEmpty)
      daemon.process.signal(SIGSTOP)
      let frozen = try lab.run("healthcheck", "--address", address, "--json")
      daemon.process.signal(SIGCONT)
      #expect(frozen.ending == .exited(1))
      #expect(frozen.output.hasPrefix("{\"healthy\":false,"))
      #expect(frozen.output.contains("\"reason\":\"UDP: no answer within 2 s\""))
      daemon.end()
      let ended = try lab.run("healthcheck", "--address", address)
      #expect(ended.ending == .exited(1))
      #expect(ended.output == "\(address) does not answer over UDP: no process listens there\n")
    }
  }

  @Test func `healthcheck does not take another server for the daemon`() throws {
    try withLab { lab in
      let other = try PlainServer(addresses: [:])
      let (ending, output, _) = try lab.run("healthcheck", "--address", "\(other.address)")
      #expect(ending == .exited(1))
      #expect(output.hasPrefix("another program than httpdnsd answers at \(other.address): "), "\(output)")
      let json = try lab.run("healthcheck", "--address", "\(other.address)", "--json").output
      #expect(json.hasPrefix("{\"healthy\":false,") && json.contains("\"reason\":\"another program"), "\(json)")
    }
  }

  @Test func `healthcheck does not take another daemon for that with the control socket`() throws {
    try withLab { lab in
      let provider = Settings.json(try lab.simulator().http)
      var settings = Settings(provider)
      settings.openControl(in: lab)
      let daemon = try lab.daemon(settings.text)
      let other = try lab.daemon(Settings(provider).text)
      settings.addresses = [daemon.address.description]
      let file = daemon.configuration
      try settings.text.write(toFile: file, atomically: false, encoding: .utf8)
      #expect(try lab.run("healthcheck", "--config", file).ending == .exited(0))
      settings.addresses = [other.address.description]
      try settings.text.write(toFile: file, atomically: false, encoding: .utf8)
      let (ending, output, _) = try lab.run("healthcheck", "--config", file)
      #expect(ending == .exited(1) && output.hasPrefix("another httpdnsd answers at \(other.address) "), "\(output)")
      // Two daemons may name the same socket, which is the first one's.
      let second = try lab.file(settings.text)
      #expect(try lab.run("healthcheck", "--config", second).ending == .exited(0))
      // A refusal is a sign of life, unless another program is seen there.
      daemon.end()
      let refusing = try PlainServer { query, _ in query.reply(.refused) }
      settings.addresses = [refusing.address.description]
      let refused = try lab.run("healthcheck", "--config", try lab.file(settings.text))
      #expect(refused.ending == .exited(1) && refused.output.hasPrefix("another program"), "\(refused.output)")
    }
  }

  @Test func `healthcheck has one time limit: once that is over, the control socket is not asked`() throws {
    try withLab { lab in
      let silent = try PlainServer { _, _ in nil }
      var settings = Settings("")
      let control = try Socket.listening(atPath: settings.openControl(in: lab))
      settings.addresses = [silent.address.description]
      let (ending, output, _) = try lab.run("healthcheck", "--config", try lab.file(settings.text))
      #expect(ending == .exited(1))
      #expect(output == "\(silent.address) does not answer over UDP: no answer within 2 s\n")
      #expect(accept(control.descriptor, __SOCKADDR_ARG(__sockaddr__: nil), nil) < 0 && errno == EAGAIN)
    }
  }

  @Test func `healthcheck succeeds with a daemon without control socket whose access list leaves it out`() throws {
    try withLab { lab in
      var settings = Settings(Settings.json(try lab.simulator().http))
      settings.listen = "allow = [\"192.0.2.0/24\"]"
      let daemon = try lab.daemon(settings.text)
      settings.addresses = [daemon.address.description]
      settings.control = "socket = \"\(lab.folder.path)/nothing\""
      let (ending, output, _) = try lab.run("healthcheck", "--config", try lab.file(settings.text))
      #expect(ending == .exited(0), "\(output)")
    }
  }

  @Test(arguments: [
    // Every name is routed upstream, and special names are ordinary ones.
    "[[rule]]\nnames = [\"*.\"]\nuse = \"failing\"", "[[rule]]\nnames = [\"=.\"]\nuse = \"failing\"", "",
  ]) func `healthcheck succeeds while every upstream fails`(rule: String) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http, "name = \"failing\"\ntimeout = \"100ms\""))
      settings.more = rule
      let daemon = try lab.daemon(settings.text)
      try simulator.fault("kind=status&code=503")
      #expect(try Dig.dig.ask(daemon.address, "www.example.com").status == "SERVFAIL")
      #expect(try lab.run("healthcheck", "--address", daemon.address.description).ending == .exited(0))
    }
  }

  @Test func `a refusal by the access list is a sign of life`() throws {
    try withLab { lab in
      var settings = Settings(Settings.json(try lab.simulator().http))
      settings.listen = "allow = [\"192.0.2.0/24\"]"
      let daemon = try lab.daemon(settings.text)
      #expect(try Dig.dig.ask(daemon.address, "localhost").status == "REFUSED")
      #expect(try lab.run("healthcheck", "--address", daemon.address.description).ending == .exited(0))
    }
  }

  @Test func `healthcheck succeeds with a full table of TCP connections`() throws {
    try withLab { lab in
      var settings = Settings(Settings.json(try lab.simulator().http))
      settings.listen = "tcp_connections = 1"
      let daemon = try lab.daemon(settings.text)
      let connection = try Socket.stream(to: daemon.address)
      defer { withExtendedLifetime(connection) {} }
      #expect(try lab.run("healthcheck", "--address", daemon.address.description).ending == .exited(0))
    }
  }

  @Test func `healthcheck finds the daemon by its configuration, without its secrets`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.json(simulator.http)).text)
      let file = try lab.file(
        """
        [listen]
        addresses = ["0.0.0.0:\(daemon.address.port)"]
        [[provider]]
        kind = "tencent"
        token_file = "/nowhere/token"
        """)
      #expect(try lab.run("healthcheck", environment: ["HTTPDNSD_CONFIG": file]).ending == .exited(0))
      let empty = try lab.file("")
      let environment = ["HTTPDNSD_LISTEN": "127.0.0.1:\(daemon.address.port)"]
      let (ending, output, _) = try lab.run("healthcheck", "--config", empty, "--json", environment: environment)
      #expect(ending == .exited(0))
      #expect(output.hasPrefix("{\"healthy\":true,\"addresses\":[{\"address\":\"\(daemon.address)\",\"answers\":true,"))
      let chosen = try lab.file("listen.addresses = [\"127.0.0.1:0\"]")
      #expect(try lab.run("healthcheck", "--config", chosen).error.contains("pass --address"))
      #expect(try lab.run("healthcheck", "--address", "localhost").ending == .exited(64))
    }
  }

  @Test func `environment variables configure a daemon with an empty file`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let environment = [
        "HTTPDNSD_LISTEN": "127.0.0.1:0", "HTTPDNSD_ALLOW": "connected", "HTTPDNSD_LOG_LEVEL": "debug",
        "HTTPDNSD_PROVIDER": "json+http://\(simulator.http)/resolve",
      ]
      let daemon = try lab.daemon("control.socket = \"\"\nlocaldns.servers = []", environment: environment)
      #expect(try Dig.dig.ask(daemon.address, "www.example.com").data.contains("192.0.2.1"))
      #expect(!daemon.log.contains("over http everyone"))
      let provider = ["HTTPDNSD_PROVIDER": "json+http://192.0.2.1/resolve"]
      let warned = try lab.run("check", "--config", lab.file(""), environment: provider)
      #expect(warned.error.hasPrefix("warning: environment: HTTPDNSD_PROVIDER[\"json\"].url: over http everyone"))
      try simulator.fault("kind=status&code=500")
      #expect(try ask(daemon.address, "n1.bench.example").code == .servFail)
      try daemon.waitForLog(" DEBUG answers that had to wait: 1 failed")
      let file = try lab.file("log.level = \"loud\"")
      let (ending, _, error) = try lab.run("check", "--config", file, environment: ["HTTPDNSD_LISTEN": "nowhere"])
      #expect(ending == .exited(1))
      #expect(error.contains("environment: HTTPDNSD_LISTEN[#1]: \"nowhere\" is not valid; expected "))
      #expect(error.contains("\(file): log.level: \"loud\" is not valid"))
      let named = try lab.run("run", environment: ["HTTPDNSD_CONFIG": file])
      #expect(named.ending == .exited(1) && named.error.contains("\(file): log.level: \"loud\" is not valid"))
    }
  }
}
