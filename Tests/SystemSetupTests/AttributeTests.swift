// AttributeTests.swift -- extended attributes of a file stay through setup and undo, unless they belong to its content.

import CAccess
import Glibc
import Testing

@testable import SystemSetup

@Suite struct AttributeTests {
  private static func value(_ path: String, _ name: String) -> [UInt8]? {
    var value = [UInt8](repeating: 0, count: 65_536)
    let size = getxattr(path, name, &value, value.count)
    return size < 0 ? nil : Array(value.prefix(size))
  }

  /// Whether a file in the folder of the tests' machines can have an attribute of a size.
  private static func canSet(_ name: String, size: Int) -> Bool {
    let machine = Machine(for: .file)
    let value = [UInt8](repeating: 1, count: size)
    return setxattr(machine.folder + "/etc/resolv.conf", name, value, size, 0) == 0
  }

  /// What is left of an attribute after setup, and after undo.
  private func values(of name: String, from value: [UInt8]) throws -> [[UInt8]?] {
    let machine = Machine(for: .file)
    let path = machine.folder + "/etc/resolv.conf"
    #expect(setxattr(path, name, value, value.count, 0) == 0)
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(.file))
    let applied = AttributeTests.value(path, name)
    _ = try installation.undo()
    return [applied, AttributeTests.value(path, name)]
  }

  @Test(.enabled(if: canSet("user.note", size: 7), "the file system has no extended attributes"))
  func `extended attributes of a file stay through setup and undo`() throws {
    let note = Array("by hand".utf8)
    #expect(try values(of: "user.note", from: note) == [note, note])
  }

  /// A file without a name in memory, where long attributes are possible; nil if they are not.
  private static func fileWithLongAttribute(_ value: [UInt8]) -> Int32? {
    let descriptor = memoryFile()
    guard fsetxattr(descriptor, "user.note", value, value.count, 0) == 0 else {
      close(descriptor)
      return nil
    }
    return descriptor
  }

  private static func memoryFile() -> Int32 {
    var name = Array("/dev/shm/httpdnsd-test-XXXXXX".utf8CString)
    defer { unlink(&name) }
    return mkstemp(&name)
  }

  private static let longValue = (0..<5_000).map { UInt8(truncatingIfNeeded: $0) }

  @Test func `long extended attributes are copied as well`() throws {
    guard let old = AttributeTests.fileWithLongAttribute(AttributeTests.longValue) else {
      try Test.cancel("no file system here has extended attributes of 5,000 octets")
    }
    let new = AttributeTests.memoryFile()
    defer { for descriptor in [old, new] { close(descriptor) } }
    access_copy_attributes(old, new)
    #expect(AttributeTests.value("/proc/self/fd/\(new)", "user.note") == AttributeTests.longValue)
  }

  @Test(.enabled(if: canSet("security.evm", size: 21), "it takes root to sign a file"))
  func `a signature of the old content is not copied to the new one`() throws {
    #expect(try values(of: "security.evm", from: [UInt8](repeating: 1, count: 21)) == [nil, nil])
  }
}
