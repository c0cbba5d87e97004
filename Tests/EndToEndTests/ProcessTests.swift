// ProcessTests.swift -- the daemon as a process: its start, its end, and what a supervisor sees of it.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct ProcessTests {
  @Test(arguments: [SIGTERM, SIGINT], Transport.allCases)
  func `a signal ends it as soon as the questions in flight are answered`(
    _ signal: Int32, _ transport: Transport
  ) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.json(simulator.http)).text)
      try simulator.fault("kind=delay&ms=500")
      let query = TestQuery("n1.bench.example")
      let client = try Socket(transport == .udp ? SOCK_DGRAM : SOCK_STREAM)
      try client.connect(to: daemon.address)
      client.send(transport == .udp ? query.octets : framed(query.octets))
      try simulator.waitForTransfers(1)

      let start = ContinuousClock.now
      daemon.process.signal(signal)
      let octets = try #require(transport == .udp ? client.receive() : receiveFramed(client))
      #expect(try Reply(octets, to: query).data == ["198.18.0.1"])
      #expect(try daemon.process.waitForEnd() == .exited(0))
      // Not only when the time for it is over, which is two seconds.
      #expect(ContinuousClock.now - start < .milliseconds(1_700))
      #expect(daemon.log.contains(" stopping\n") && daemon.log.contains(" stopped\n"))
    }
  }

  @Test(arguments: [SIGUSR1, SIGPIPE, SIGURG])
  func `a signal that means nothing here does no harm`(_ signal: Int32) throws {
    try withLab { lab in
      let daemon = try lab.daemon(Settings(Settings.json(try lab.simulator().http)).text)
      for number in 0..<3 {
        daemon.process.signal(signal)
        #expect(try ask(daemon.address, "n\(number).bench.example").data == ["198.18.0.\(number)"])
      }
    }
  }

  @Test func `silent connections do not delay the shutdown`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.json(simulator.http)).text)
      try simulator.fault("kind=stall")
      let silent = try Socket.stream(to: daemon.address)
      let unfinished = try Socket.stream(to: daemon.address)
      unfinished.send([0, 40, 1])
      let stalled = try Socket.stream(to: daemon.address)
      stalled.send(framed(TestQuery("n1.bench.example").octets))
      try simulator.waitForTransfers(1)
      let start = ContinuousClock.now
      daemon.process.signal(SIGTERM)
      #expect(try daemon.process.waitForEnd() == .exited(0))
      #expect(ContinuousClock.now - start < .seconds(3))
      withExtendedLifetime((silent, unfinished, stalled)) {}
    }
  }

  @Test func `the port is free at once after the shutdown`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let first = try lab.daemon(Settings(Settings.json(simulator.http)).text)
      let connection = try Socket.stream(to: first.address)
      connection.send(framed(TestQuery("example.com").octets))
      #expect(receiveFramed(connection) != nil)
      first.end()
      var settings = Settings(Settings.json(simulator.http))
      settings.addresses = [first.address.description]
      let second = try lab.daemon(settings.text)
      #expect(second.address == first.address)
      #expect(try ask(second.address, "example.com").data == ["192.0.2.1"])
    }
  }

  @Test(arguments: Transport.allCases)
  func `a port in use is reported in one line, with its holder`(_ transport: Transport) throws {
    try withLab { lab in
      let holder = transport == .udp ? try Socket.pair().udp : try Socket.pair().tcp
      if transport == .tcp { listen(holder.descriptor, 1) }
      var settings = Settings(Settings.provider("doh", "url = \"https://192.0.2.1/dns-query\""))
      settings.addresses = [holder.address.description]
      let (ending, output, error) = try lab.run("run", "--config", lab.file(settings.text))
      #expect(ending == .exited(1))
      #expect(output.isEmpty)
      let lines = error.split(separator: "\n")
      #expect(lines.count == 1)
      #expect(error.contains("\(transport) \(holder.address): Address already in use"))
      #expect(error.contains("(pid \(getpid()))"))
    }
  }

  @Test(.looksInside)
  func `a port that one address has cannot be had at all of them, and the advice is to list addresses`() throws {
    try withLab { lab in
      let holder = try Socket.pair().udp
      var settings = Settings(Settings.provider("doh", "url = \"https://192.0.2.1/dns-query\""))
      settings.addresses = ["0.0.0.0:\(holder.address.port)"]
      let (ending, _, error) = try lab.run("run", "--config", lab.file(settings.text))
      #expect(ending == .exited(1))
      let advice =
        "(pid \(getpid())); port \(holder.address.port) is in use on 127.0.0.1: list your addresses one by one in "
        + "listen.addresses\n"
      #expect(error.contains("udp 0.0.0.0:\(holder.address.port): Address already in use; held by "), "\(error)")
      #expect(error.hasSuffix(advice), "\(error)")
      // Not where the wildcard itself is taken.
      settings.addresses = ["0.0.0.0:0"]
      let neighbour = try lab.daemon(settings.text)
      settings.addresses = [neighbour.address.description]
      let second = try lab.run("run", "--config", lab.file(settings.text))
      #expect(second.error.hasSuffix("(pid \(neighbour.process.pid))\n"), "\(second.error)")
      withExtendedLifetime(holder) {}
    }
  }

  @Test(.looksInside) func `the holder of a port is the process with that very address`() throws {
    try withLab { lab in
      let holder = try Socket.pair().udp
      var settings = Settings(Settings.provider("doh", "url = \"https://192.0.2.1/dns-query\""))
      settings.addresses = [holder.address.at("127.0.0.2").description]
      let neighbour = try lab.daemon(settings.text)
      for (address, pid) in [(holder.address, getpid()), (neighbour.address, neighbour.process.pid)] {
        settings.addresses = [address.description]
        let (ending, _, error) = try lab.run("run", "--config", lab.file(settings.text))
        #expect(ending == .exited(1))
        #expect(error.contains("\(address): Address already in use; held by "))
        #expect(error.contains("(pid \(pid))"))
      }
      withExtendedLifetime(holder) {}
    }
  }

  @Test func `a provider that can never be asked stops the start, in one line`() throws {
    try withLab { lab in
      let file = try lab.folder.write("-----BEGIN CERTIFICATE-----\nnothing\n", to: "ca.pem")
      let provider = Settings.provider("doh", "url = \"https://192.0.2.1/dns-query\"\nca_file = \"\(file)\"")
      let (ending, output, error) = try lab.run("run", "--config", lab.file(Settings(provider).text))
      #expect(ending == .exited(1))
      #expect(output.isEmpty)
      #expect(error.hasSuffix(" CRITICAL provider doh: certificates \(file): no certificate (PEM) in it\n"))
      #expect(error.split(separator: "\n").count == 1)
    }
  }

  @Test func `an IPv6 address that the machine does not have is a warning`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      // As [::1] on a machine without IPv6.
      settings.addresses = ["[2001:db8::5]:0", "127.0.0.1:0"]
      let daemon = try lab.daemon(settings.text)
      #expect(daemon.addresses.map(\.host) == ["127.0.0.1"])
      #expect(daemon.log.contains("WARNING not listening on tcp [2001:db8::5]:0"))
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
    }
  }

  @Test func `an IPv4 address that the machine does not have is a mistake`() throws {
    try withLab { lab in
      var settings = Settings(Settings.provider("doh", "url = \"https://192.0.2.1/dns-query\""))
      settings.addresses = ["192.0.2.5:0"]
      let (ending, _, error) = try lab.run("run", "--config", lab.file(settings.text))
      #expect(ending == .exited(1))
      let line = "cannot listen on (tcp|udp) 192.0.2.5:0: no interface of this machine has 192.0.2.5\\n"
      #expect(error.contains(try Regex(line)), "\(error)")
    }
  }

  @Test func `workers share one port`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.doh(simulator.http))
      settings.listen = "workers = 4"
      let daemon = try lab.daemon(settings.text)
      let queries = (0..<200).map { TestQuery("n\($0 % 20).bench.example") }
      for (index, answer) in try askAll(daemon.address, queries).enumerated() {
        #expect(answer.reply.data == ["198.18.0.\(index % 20)"])
      }
      #expect(try simulator.count.transfers == 20)
    }
  }

  /// How other programs have libc look up names.
  @Test(arguments: [
    ("getaddrinfo", ["getent", "ahosts", "localhost"]), ("gethostbyname2", ["getent", "hosts", "localhost"]),
    ("gethostbyaddr", ["getent", "hosts", "127.0.0.1"]), ("getnetbyname", ["getent", "networks", "loopback"]),
    ("getnameinfo", Perl.names(flags: "0")), ("getnameinfo", Perl.names(flags: "Socket::NI_NUMERICHOST")),
    ("getnameinfo", Perl.names(flags: "Socket::NI_NUMERICSERV")),
    ("getnameinfo", Perl.names(flags: "\(Perl.digits) | Socket::NI_NAMEREQD")),
  ])
  func `the test library ends a program that resolves names with libc`(
    function: String, command: [String]
  ) throws {
    let (ending, _, error) = try ChildProcess.run(command, environment: ["LD_PRELOAD": Programs.lookupRefusal()])
    #expect(ending == .killed(signal: SIGABRT))
    #expect(error.contains("refused lookup: \(function)\n"))
  }

  @Test func `the test library does not end a program that parses digits with libc`() throws {
    let (ending, output, _) = try ChildProcess.run(
      Perl.names(flags: Perl.digits), environment: ["LD_PRELOAD": Programs.lookupRefusal()])
    #expect(ending == .exited(0))
    #expect(output == "127.0.0.1 53")
  }

  @Test(.looksInside) func `the daemon does not resolve names with libc`() throws {
    try withLab { lab in
      let daemon = try lab.daemon(Settings(Settings.provider("doh", "url = \"https://192.0.2.1/dns-query\"")).text)
      #expect(try daemon.kernelFile("maps").contains("/refuse_lookups.so"))
    }
  }
}

/// A program that asks libc for the name of an address and of a port, which no command does.
private enum Perl {
  /// Digits are all that is wanted.
  static let digits = "Socket::NI_NUMERICHOST | Socket::NI_NUMERICSERV"

  static func names(flags: String) -> [String] {
    let address = #"Socket::pack_sockaddr_in(53, "\x7f\0\0\1")"#
    return ["perl", "-MSocket", "-e", "print join ' ', (Socket::getnameinfo(\(address), \(flags)))[1, 2]"]
  }
}
