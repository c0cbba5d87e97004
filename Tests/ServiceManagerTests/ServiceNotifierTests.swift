// ServiceNotifierTests.swift -- what reaches the service manager, and names that cannot be its socket's.

import Glibc
import Testing

@testable import ServiceManager

@Suite struct `A service notifier` {
  @Test(arguments: [false, true])
  func `sends messages that belong together at once, in order`(isAbstract: Bool) throws {
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

  @Test func `says when it began to read its configuration anew, on the monotonic clock`() throws {
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

  @Test func `makes one line of a status, so that no other assignment can begin in it`() {
    #expect(
      ServiceMessage.status("one\nREADY=1\u{7}").text(monotonicMicroseconds: 0) == "STATUS=one READY=1 \n")
  }

  @Test func `looks for the receiver anew with each message`() throws {
    let manager = try ManagerSocket(isAbstract: false)
    let notifier = try #require(ServiceNotifier(manager.name))
    unlink(manager.name)
    #expect(!notifier.send(.ready))
    #expect(manager.receive() == nil)
  }

  @Test func `does not wait with a sign of life for a service manager that is busy`() throws {
    let manager = try ManagerSocket(isAbstract: true)
    let notifier = try #require(ServiceNotifier(manager.name))
    var sent = 0
    while notifier.send(.watchdog) { sent += 1 }
    #expect(sent > 0)
    for _ in 0..<sent { #expect(manager.receive() == "WATCHDOG=1\n") }
  }

  @Test(arguments: ["", "@", "/", "run/notify", "vsock:2:1234", "/" + String(repeating: "a", count: 107)])
  func `is not made for what can be no socket's name`(name: String) {
    #expect(ServiceNotifier(name) == nil)
  }

  @Test func `takes the longest names there are`() throws {
    for name in ["/" + String(repeating: "a", count: 106), "@" + String(repeating: "a", count: 107)] {
      let notifier = try #require(ServiceNotifier(name))
      #expect(!notifier.send(.ready))
      #expect(errno == ENOENT || errno == ECONNREFUSED)
    }
  }
}
