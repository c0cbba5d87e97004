// RootTests.swift -- what is read below a root, and what is refused.

import Glibc
import Testing

@testable import SystemSetup

@Suite struct RootTests {
  @Test func `a file has at most 1 MiB, and an unreadable one is named by its path in the root`() throws {
    let machine = Machine()
    machine.file("/etc/largest", String(repeating: "x", count: Root.largestFile))
    machine.file("/etc/larger", String(repeating: "x", count: Root.largestFile + 1))
    #expect(try machine.root.octets(of: "/etc/largest").count == Root.largestFile)
    #expect(throws: SetupError.refused("/etc/larger: larger than 1 MiB")) {
      try machine.root.octets(of: "/etc/larger")
    }
    #expect(throws: SetupError.system(path: "/etc/none", call: "read", number: ENOENT)) {
      try machine.root.octets(of: "/etc/none")
    }
  }
}
