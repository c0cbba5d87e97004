// ServiceEnvironmentTests.swift -- which variables apply, and that child processes do not inherit them.

import Glibc
import Testing

@testable import ServiceManager

@Suite struct `The environment of a service` {
  private func environment(_ variables: [String: String]) -> ServiceEnvironment {
    ServiceEnvironment(process: 42) { variables[$0] }
  }

  @Test func `the environment gives socket, timeout and descriptors`() {
    let found = environment([
      "NOTIFY_SOCKET": "/run/systemd/notify", "WATCHDOG_USEC": "10000000", "WATCHDOG_PID": "42", "LISTEN_PID": "42",
      "LISTEN_FDS": "2", "LISTEN_FDNAMES": "dns:other",
    ])
    #expect(found.notifySocket == "/run/systemd/notify")
    #expect(found.watchdogTimeout == .seconds(10))
    #expect(found.descriptors.map(\.number) == [3, 4])
    #expect(found.descriptors.map(\.name) == ["dns", "other"])
  }

  @Test func `an empty environment gives nothing`() {
    #expect(environment([:]) == environment(["NOTIFY_SOCKET": "", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a:b"]))
    #expect(environment([:]).descriptors.isEmpty)
  }

  @Test(arguments: [
    ["WATCHDOG_USEC": "10000000", "WATCHDOG_PID": "41"], ["WATCHDOG_USEC": "soon"], ["WATCHDOG_USEC": "0"],
    ["WATCHDOG_USEC": "-5"], ["LISTEN_PID": "41", "LISTEN_FDS": "1"], ["LISTEN_PID": "42", "LISTEN_FDS": "-1"],
    ["LISTEN_PID": "42", "LISTEN_FDS": "2147483647"], ["LISTEN_PID": "42"],
  ])
  func `variables for another process, and invalid ones, are ignored`(variables: [String: String]) {
    #expect(environment(variables) == environment([:]))
  }

  @Test func `a watchdog without a process id applies to every process`() {
    #expect(environment(["WATCHDOG_USEC": "1500"]).watchdogTimeout == .microseconds(1500))
  }

  @Test func `names of descriptors are ignored if their number differs`() {
    let found = environment(["LISTEN_PID": "42", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "dns"])
    #expect(found.descriptors.map(\.name) == ["", ""])
  }

  @Test func `the variables are removed once they are read`() {
    let names = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]
    for name in names { setenv(name, "1", 1) }
    setenv("LISTEN_PID", "\(getpid())", 1)
    #expect(ServiceEnvironment.take().descriptors.map(\.number) == [3])
    for name in names { #expect(getenv(name) == nil) }
  }
}
