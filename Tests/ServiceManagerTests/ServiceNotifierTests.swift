// ServiceNotifierTests.swift -- messages to the service manager, and invalid names of its socket.

import Glibc
import Testing

@testable import ServiceManager

@Suite struct `A service notifier` {
  @Test(arguments: [false, true])
  func `a service notifier sends several messages in one datagram, in order`(isAbstract: Bool) throws {
    let manager = try ManagerSocket(isAbstract: isAbstract)
    let notifier = try #require(ServiceNotifier(manager.name))
    #expect(notifier.send(.ready, .status("serving on 127.0.0.1:53")))
    #expect(notifier.send(.watchdog))
    #expect(notifier.send(.stopping))
    #expect(manager.receive() == "READY=1\nSTATUS=serving on 127.0.0.1:53\n")
    #expect(manager.receive() == "WATCHDOG=1\n")
    #expect(manager.receive() == "STOPPING=1\n")
    #expect(manager.receive() == nil)
  }

  @Test func `the message about a reload has its monotonic time`() throws {
    let manager = try ManagerSocket(isAbstract: true)
    func microseconds() -> Int64 {
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
    let before = microseconds()
    #expect(try #require(ServiceNotifier(manager.name)).send(.reloading))
    let lines = try #require(manager.receive()).split(separator: "\n")
    #expect(lines.first == "RELOADING=1")
    let told = try #require(lines.last?.split(separator: "=").last.flatMap { Int64($0) })
    #expect(lines.last?.hasPrefix("MONOTONIC_USEC=") == true && before <= told && told <= microseconds())
  }

  @Test func `a status with line breaks stays one assignment`() {
    #expect(
      ServiceMessage.status("one\nREADY=1\u{7}").text(monotonicMicroseconds: 0) == "STATUS=one READY=1 \n")
  }

  @Test func `a service notifier looks up the receiver for each message`() throws {
    let manager = try ManagerSocket(isAbstract: false)
    let notifier = try #require(ServiceNotifier(manager.name))
    unlink(manager.name)
    #expect(!notifier.send(.ready))
    #expect(manager.receive() == nil)
  }

  @Test func `a watchdog message does not wait for a busy service manager`() throws {
    let manager = try ManagerSocket(isAbstract: true)
    let notifier = try #require(ServiceNotifier(manager.name))
    var sent = 0
    while notifier.send(.watchdog) { sent += 1 }
    #expect(sent > 0)
    for _ in 0..<sent { #expect(manager.receive() == "WATCHDOG=1\n") }
  }

  @Test(arguments: ["", "@", "/", "run/notify", "vsock:2:1234", "/" + String(repeating: "a", count: 107)])
  func `an invalid name of a notify socket is refused`(name: String) {
    #expect(ServiceNotifier(name) == nil)
  }

  @Test func `the longest names of notify sockets are accepted`() throws {
    for name in ["/" + String(repeating: "a", count: 106), "@" + String(repeating: "a", count: 107)] {
      let notifier = try #require(ServiceNotifier(name))
      #expect(!notifier.send(.ready))
      #expect(errno == ENOENT || errno == ECONNREFUSED)
    }
  }
}
