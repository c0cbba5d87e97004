// UmaskTests.swift -- what setup and its commands create is for all users under any umask of root's.

import Glibc
import Testing

@testable import SystemSetup

@Suite struct UmaskTests {
  // The umask is that of a process, so each test has one of its own.

  @Test func `a command has the usual umask under a strict one, which stays`() async {
    await #expect(processExitsWith: .success) {
      umask(0o077)
      precondition(SystemCommand("sh", "-c", "umask").run().output == "0022\n")
      precondition(umask(0) == 0o077)
    }
  }

  @Test func `the state folder and those above it are open to all users`() async {
    await #expect(processExitsWith: .success) {
      umask(0o077)
      let machine = Machine()
      let lock = try SetupLock(machine.root, .names, SetupLock.Patience())
      for path in ["/var", "/var/lib", SetupPaths.state] {
        let state = try machine.root.state(of: path)
        precondition(state == .folder(mode: 0o755))
      }
      withExtendedLifetime(lock) {}
    }
  }
}
