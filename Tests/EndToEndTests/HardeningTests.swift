// HardeningTests.swift -- what the program keeps to itself outside of its unit: memory, keys of connections; and places.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct HardeningTests {
  @Test func `no environment variable makes the daemon write TLS keys`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let https = try #require(simulator.https)
      let keys = "\(lab.folder.path)/keys"
      let environment = ["SSLKEYLOGFILE": keys]
      let text = Settings(Settings.secure("json", https.address, https.authority)).text
      let daemon = try lab.daemon(text, environment: environment)
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      try daemon.waitForLog("WARNING SSLKEYLOGFILE is ignored")
      _ = try lab.run("query", "--config", lab.file(text), "n1.bench.example", environment: environment)
      #expect(try simulator.count.transfers == 2)
      #expect(!FileManager.default.fileExists(atPath: keys))
    }
  }

  @Test func `authorities of the environment are trusted, with a log line`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let https = try #require(simulator.https)
      let settings = Settings(Settings.secure("json", https.address, nil))
      let daemon = try lab.daemon(settings.text, environment: ["SSL_CERT_FILE": https.authority])
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      try daemon.waitForLog("INFO certificates: trusting the authorities of SSL_CERT_FILE=\(https.authority)")
    }
  }

  @Test func `no core is written, and no program without privileges reads its memory`() throws {
    try withLab { lab in
      // A program of the same user, without what root may do beyond it.
      let plainly = geteuid() == 0 ? ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] : []
      let daemon = try lab.daemon(Settings(Settings.json(try lab.simulator().http)).text, prefix: plainly)
      let limit = try #require(try daemon.kernelFile("limits").firstMatch(of: /Max core file size +(\S+) +(\S+)/))
      #expect(limit.1 == "0" && limit.2 == "0")
      let other = try lab.start(plainly + ["sleep", "300"])
      try eventually("a process that can be looked into") {
        try ChildProcess.run(plainly + ["cat", "/proc/\(other.pid)/maps"]).ending == .exited(0) ? true : nil
      }
      #expect(try ChildProcess.run(plainly + ["cat", "/proc/\(daemon.process.pid)/maps"]).ending != .exited(0))
    }
  }

  @Test func `silent TCP connections of a few addresses block no client`() throws {
    try withLab { lab in
      var settings = Settings(Settings.json(try lab.simulator().http))
      settings.listen = "tcp_idle = \"600s\""
      let daemon = try lab.daemon(settings.text)
      let silent = try (0..<128).map { try Socket.stream(to: daemon.address, from: "127.0.0.\(2 + $0 % 9)") }
      for number in 20..<30 {
        #expect(
          try ask(daemon.address, TestQuery("example.com"), over: .tcp, from: "127.0.0.\(number)").code == .noError)
      }
      try daemon.waitForLog("takes the place of another one: all 128 are taken")
      withExtendedLifetime(silent) {}
    }
  }
}

@Suite(.blocking, .enabled(if: NetworkNamespace.isPossible, "needs root and network namespaces"))
struct AbsentNeighbourTests {
  @Test func `answers to absent neighbours leave room for answers to others`() throws {
    try withLab { lab in
      let machine = try NetworkNamespace(in: lab)
      let simulator = try lab.simulator([], at: machine.world)
      var settings = Settings(Settings.json(simulator.http))
      settings.addresses = ["\(machine.host):0"]
      settings.listen = "allow = [\"100.64.0.0/10\"]"
      let daemon = try lab.daemon(settings.text, prefix: machine.prefix)
      let client = try Socket(SOCK_DGRAM, boundTo: Address(machine.routers[0], 0))
      let query = TestQuery("example.com", "TXT")
      client.send(query.octets, to: daemon.address)
      try #require(client.receive() != nil)

      // Queries from unused addresses of that link.
      let forgers = try machine.strangers.map { try Socket(SOCK_DGRAM, boundTo: Address($0, 5353), transparent: true) }
      let start = ContinuousClock.now
      var answered = 0
      for round in 0..<300 {
        for forger in forgers { forger.send(query.octets, to: daemon.address) }
        if round % 10 == 9 {
          client.send(query.octets, to: daemon.address)
          if client.receive(within: .milliseconds(500)) != nil { answered += 1 }
        }
        let next = start + .milliseconds(5 * round)
        while ContinuousClock.now < next { usleep(500) }
      }
      #expect(answered == 30)
    }
  }
}
