// HealthcheckTests.swift -- what counts as a sign of life, and what does not.

import DNSWire
import EventLoop
import Glibc
import Testing

@testable import LocalDNS

/// A response to `query` without records.
private func response(_ query: Message, _ code: ResponseCode = .noError) -> [UInt8] {
  var message = query
  message.header.qr = true
  message.header.rcode = UInt8(code.rawValue)
  return try! message.compose()
}

/// What a client finds of a server that does as the scripts say.
private func finding(
  within timeout: Duration = .seconds(5), onDatagram: @escaping @Sendable (Message) -> [ScriptedAction],
  onStream: @escaping @Sendable (Message) -> [ScriptedAction]
) throws -> HealthFinding {
  try onLoop { loop in
    let server = ScriptedServer(on: loop, onDatagram: onDatagram, onStream: onStream)
    return await LocalDNSClient(loop: loop).health(of: server.address, until: loop.now + timeout)
  }
}

@Test func `an answer over UDP and over TCP is health`() throws {
  let found = try finding {
    [.reply(response($0))]
  } onStream: {
    [.portions([framed(response($0))])]
  }
  #expect(found.failure == nil)
  #expect(found.overUDP != nil && found.overTCP != nil)
  #expect(found.refusal == nil)
}

@Test(arguments: [ResponseCode.refused, .servFail, .notImp]) func `any response code counts as healthy`(
  code: ResponseCode
) throws {
  let found = try finding {
    [.reply(response($0, code))]
  } onStream: {
    [.portions([framed(response($0, code))])]
  }
  #expect(found.failure == nil)
  #expect(found.refusal == code)
}

@Test func `a connection closed at once counts as healthy`() throws {
  let found = try finding {
    [.reply(response($0))]
  } onStream: { _ in
    [.close]
  }
  #expect(found.failure == nil)
  #expect(found.overTCP != nil)
}

@Test func `silence over UDP counts as unhealthy`() throws {
  let found = try finding(within: .milliseconds(50)) { _ in
    []
  } onStream: {
    [.portions([framed(response($0))])]
  }
  #expect(found.failure == .timedOut)
  #expect(found.overUDP == nil && found.overTCP == nil)
}

@Test func `silence over TCP counts as unhealthy, since the resolver's loop is stuck`() throws {
  let found = try finding(within: .milliseconds(100)) {
    [.reply(response($0))]
  } onStream: { _ in
    []
  }
  #expect(found.failure == .timedOut)
  #expect(found.overUDP != nil && found.overTCP == nil)
}

@Test func `the question of the health check is for a name that no server but httpdnsd knows`() throws {
  try onLoop { loop in
    let server = ScriptedServer(on: loop, onDatagram: { [.reply(response($0))] })
    for _ in 0..<2 { _ = await LocalDNSClient(loop: loop).health(of: server.address, until: loop.now + .seconds(5)) }
    let names = server.datagrams.map { $0.questions[0].question.name }
    #expect(names.count == 2 && names[0] != names[1])
    #expect(names.allSatisfy { "\($0)".hasSuffix(".httpdnsd.test.") })
  }
}

@Test(
  arguments: [
    ("240.1.2.3", true), ("255.255.255.254", true), ("203.0.113.77", false), ("127.0.0.1", false),
  ] as [(String, Bool)])
func `an address that no network uses shows httpdnsd`(text: String, isOurs: Bool) throws {
  let address = try #require(IPAddress(text: text))
  let answer: @Sendable (Message) -> [UInt8] = { query in
    var message = query
    message.header.qr = true
    let name = query.questions[0].question.name
    message.answers = [ResourceRecord(owner: name, type: .a, ttl: 60, rdata: address.octets)]
    return try! message.compose()
  }
  let found = try finding {
    [.reply(answer($0))]
  } onStream: {
    [.portions([framed(answer($0))])]
  }
  #expect(found.failure == nil && found.isOurs == isOurs)
  #expect(found.instance == (isOurs ? address : nil))
}

@Test func `a refusal does not show whose it is`() throws {
  let found = try finding {
    [.reply(response($0, .refused))]
  } onStream: {
    [.portions([framed(response($0, .refused))])]
  }
  #expect(found.isOurs == nil)
}

@Test func `a daemon that starts chooses an address of its own`() {
  let addresses = (0..<8).map { _ in InstanceName.randomAddress() }
  #expect(Set(addresses).count == 8 && addresses.allSatisfy(InstanceName.isAddress))
}

@Test func `a refused port counts as unhealthy`() throws {
  let address = try #require(SocketAddress(text: "127.0.0.1:1"))
  let found = try Healthcheck.run([address], timeout: .seconds(2))
  #expect(found.map(\.failure) == [.network(ECONNREFUSED)])
}

@Test func `an IPv6 address that the machine does not have is left out, unless there is no other`() throws {
  // 2001:db8::/32 is documentation (RFC 3849): there is no such address here, and no such network.
  let absent = HealthFinding(server: SocketAddress(text: "[2001:db8::1]:53")!, failure: .network(EADDRNOTAVAIL))
  let refused = HealthFinding(server: SocketAddress(text: "[::1]:53")!, failure: .network(ECONNREFUSED))
  #expect(Healthcheck.present([absent, refused]).map(\.server) == [refused.server])
  #expect(Healthcheck.present([absent]).map(\.server) == [absent.server])
}

@Test(arguments: [
  ("0.0.0.0:53", "127.0.0.1:53"), ("[::]:5353", "[::1]:5353"), ("192.0.2.1:53", "192.0.2.1:53"),
  ("[::1]:53", "[::1]:53"),
]) func `the wildcard is asked on loopback of its family`(listening: String, asked: String) throws {
  #expect(Healthcheck.target(of: try #require(SocketAddress(text: listening))).description == asked)
}
