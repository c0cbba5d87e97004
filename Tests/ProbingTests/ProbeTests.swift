// ProbeTests.swift -- connections and echoes on loopback.

import EventLoop
import Glibc
@testable import Probing
import TestSupport
import Testing

/// Runs a probe on a fresh loop and gives its outcome and the time that it took.
private func probe(
  _ start: @escaping (EventLoop, @escaping (ProbeOutcome) -> Void) -> AnyObject
) throws -> (outcome: ProbeOutcome?, took: Duration) {
  let loop = try EventLoop()
  var outcome: ProbeOutcome?
  let began = BootInstant.now
  var isStarting = true
  let probe = start(loop) {
    #expect(!isStarting)
    outcome = $0
    loop.stop()
  }
  isStarting = false
  let limit = loop.schedule(after: .seconds(10)) { loop.stop() }
  loop.run()
  limit.cancel()
  withExtendedLifetime(probe) {}
  return (outcome, BootInstant.now - began)
}

private func connect(
  _ address: String, timeout: Duration = .seconds(5)
) throws -> (outcome: ProbeOutcome?, took: Duration) {
  let address = try #require(SocketAddress(text: address))
  return try probe { loop, report in ConnectionProbe(to: address, timeout: timeout, on: loop, report: report) }
}

/// A listener on a free port of an address of loopback.
private final class TestListener {
  let descriptor: Int32
  let port: UInt16

  init(_ address: String = "127.0.0.1", backlog: Int32 = 16) throws {
    let address = try #require(SocketAddress(text: "\(address):0"))
    let descriptor = socket(address.family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
    self.descriptor = descriptor
    let bound = address.withSockaddr { bind(descriptor, .init(__sockaddr__: $0), $1) }
    try #require(bound == 0 && listen(descriptor, backlog) == 0)
    port = try #require(SocketAddress(boundTo: descriptor)).port
  }

  deinit { close(descriptor) }
}

@Suite struct `A probe by a connection` {
  @Test func `a listener answers, and the connection is reset`() throws {
    let listener = try TestListener()
    let outcome = try connect("127.0.0.1:\(listener.port)").outcome
    guard case .answered(let microseconds) = outcome else {
      Issue.record("\(String(describing: outcome))")
      return
    }
    #expect((1...1_000_000).contains(microseconds))
    // What was reset is no longer in the queue, or cannot be read.
    let accepted = accept(listener.descriptor, .init(__sockaddr__: nil), nil)
    if accepted >= 0 {
      var octet: UInt8 = 0
      #expect(recv(accepted, &octet, 1, 0) == -1 && errno == ECONNRESET)
      close(accepted)
    }
  }

  @Test func `a closed port is a failure, at once`() throws {
    let port = try TestListener().port
    let (outcome, took) = try connect("127.0.0.1:\(port)")
    #expect(outcome == .failed)
    #expect(took < .seconds(5))
  }

  @Test func `silence is a failure after the timeout`() throws {
    let listener = try TestListener(backlog: 0)
    // The queue takes one connection more than the backlog.
    let address = try #require(SocketAddress(text: "127.0.0.1:\(listener.port)"))
    let fillers = (0..<3).map { _ in
      let filler = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
      _ = address.withSockaddr { Glibc.connect(filler, .init(__sockaddr__: $0), $1) }
      return filler
    }
    defer { for filler in fillers { close(filler) } }
    let (outcome, took) = try connect("127.0.0.1:\(listener.port)", timeout: .milliseconds(100))
    #expect(outcome == .failed)
    // The loop's clock stands still while it handles an event.
    #expect(took >= .milliseconds(50))
  }

  @Test func `an address without a route says nothing about it`() throws {
    // A link-local address without a link.
    #expect(try connect("[fe80::1]:443").outcome == .notSent(errno: EINVAL))
  }

  @Test func `one that is cancelled reports nothing`() throws {
    let loop = try EventLoop()
    let listener = try TestListener()
    let address = try #require(SocketAddress(text: "127.0.0.1:\(listener.port)"))
    var reports = 0
    let probe = ConnectionProbe(to: address, on: loop) { _ in reports += 1 }
    probe.cancel()
    // One that begins later reports later.
    let other = ConnectionProbe(to: address, on: loop) { _ in loop.stop() }
    loop.run()
    #expect(reports == 0)
    withExtendedLifetime(other) {}
  }
}

/// Whether the kernel gives this process ping sockets.
private func allowsPing(_ family: Int32) -> Bool {
  let descriptor = socket(
    family, Int32(SOCK_DGRAM.rawValue), family == AF_INET ? Int32(IPPROTO_ICMP) : Int32(IPPROTO_ICMPV6))
  guard descriptor >= 0 else { return false }
  close(descriptor)
  return true
}

@Suite struct `A probe by an echo` {
  @Test(arguments: ["127.0.0.1:0", "[::1]:0"]) func `loopback answers, or the kernel refuses the socket`(
    text: String
  ) throws {
    let address = try #require(SocketAddress(text: text))
    let outcome = try probe { loop, report in
      let socket = EchoSocket(family: address.family, on: loop)
      socket.ping(address, report: report)
      return socket
    }.outcome
    if allowsPing(address.family) {
      guard case .answered(let microseconds) = outcome else {
        Issue.record("\(String(describing: outcome))")
        return
      }
      #expect(microseconds < 1_000_000)
    } else {
      #expect(outcome == .notSent(errno: EACCES))
    }
  }

  @Test(.enabled(if: mayPing, "ping sockets are refused here, and so are network namespaces"))
  func `several at a time are told apart`() throws {
    let outcomes = try withPings {
      let loop = try EventLoop()
      let socket = EchoSocket(family: AF_INET, on: loop)
      var outcomes: [ProbeOutcome] = []
      for number in 1...20 {
        socket.ping(SocketAddress(text: "127.0.0.\(number):0")!) {
          outcomes.append($0)
          if outcomes.count == 20 { loop.stop() }
        }
      }
      loop.schedule(after: .seconds(10)) { loop.stop() }
      loop.run()
      return outcomes
    }
    #expect(outcomes.count { if case .answered = $0 { true } else { false } } == 20)
  }

  @Test(.enabled(if: mayPing, "ping sockets are refused here, and so are network namespaces"))
  func `a flood of replies leaves other events their turns`() throws {
    // How many were answered when another event had its turn after the first of them, and in the end.
    let (before, answered) = try withPings {
      let loop = try EventLoop()
      let socket = EchoSocket(family: AF_INET, on: loop)
      var (before, answered): (Int?, Int) = (nil, 0)
      for number in 1...100 {
        // The kernel answers at once: all replies are there when the loop begins.
        socket.ping(SocketAddress(text: "127.0.0.\(number):0")!) { _ in
          answered += 1
          if answered == 1 { loop.inNextTurn { before = answered } }
          if answered == 100 { loop.stop() }
        }
      }
      loop.schedule(after: .seconds(10)) { loop.stop() }
      loop.run()
      return (before, answered)
    }
    #expect(answered == 100)
    #expect(before.map { $0 <= 32 } == true, "\(before ?? 0)")
  }
}

/// Whether this process may send pings, at least in a network of its own.
private let mayPing = allowsPing(AF_INET) || ThreadNetwork.isAvailable

/// Runs `body` where pings are allowed. What it expects is expected by no test.
private func withPings<Value>(_ body: @escaping () throws -> Value) throws -> Value {
  if allowsPing(AF_INET) { return try body() }
  var value: Value?
  try ThreadNetwork.run { network in
    try network.ip("link set lo up")
    let groups = open("/proc/sys/net/ipv4/ping_group_range", O_WRONLY)
    write(groups, "0 2147483647", 12)
    close(groups)
    value = try body()
  }
  return value!
}

@Suite struct `An error of a connection` {
  @Test(arguments: [ECONNREFUSED, ECONNRESET, EHOSTUNREACH, ENETUNREACH, EACCES, ETIMEDOUT])
  func `that came from the network is a failure of the address`(error: Int32) {
    #expect(ConnectionProbe.outcome(of: error) == .failed)
  }

  @Test(arguments: [EMFILE, ENOBUFS, EADDRNOTAVAIL])
  func `that came from this machine says nothing about the address`(error: Int32) {
    #expect(ConnectionProbe.outcome(of: error) == .notSent(errno: error))
  }
}
