// WholeFileTests.swift -- files of every size, and paths that are not regular files.

import Files
import Glibc
import TestSupport
import Testing

@Suite struct `A file that is read as a whole` {
  private let folder = TemporaryFolder()

  @Test(arguments: [0, 1, 16_383, 16_384, 16_385, 100_000])
  func `a file within the limit is read`(count: Int) throws {
    let octets = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let path = folder.write(octets, to: "file")
    #expect(try WholeFile.read(path, limit: count) == octets)
    guard count > 0 else { return }
    #expect(throws: FileFault.tooLarge(limit: count - 1)) { try WholeFile.read(path, limit: count - 1) }
  }

  @Test func `an endless file, a folder and a missing file are refused`() {
    #expect(throws: FileFault.tooLarge(limit: 1 << 20)) { try WholeFile.read("/dev/zero", limit: 1 << 20) }
    #expect(throws: FileFault.unreadable(EISDIR)) { try WholeFile.read(folder.path, limit: 1) }
    #expect(throws: FileFault.unreadable(ENOENT)) { try WholeFile.read(folder.path(of: "none"), limit: 1) }
    #expect(throws: FileFault.unreadable(ENOTDIR)) { try WholeFile.read("/dev/null/none", limit: 1) }
  }

  @Test func `every fault of a file has a message`() {
    #expect(FileFault.unreadable(ENOENT).description == "No such file or directory")
    #expect(FileFault.tooLarge(limit: 16 << 20).description == "larger than 16 MiB")
    #expect(FileFault.tooLarge(limit: 65_536).description == "larger than 64 KiB")
    #expect(FileFault.tooLarge(limit: 1000).description == "larger than 1000 octets")
  }

  @Test func `reading a FIFO without a writer does not block`() throws {
    let path = folder.path(of: "fifo")
    try #require(mkfifo(path, 0o600) == 0)
    #expect(try WholeFile.read(path, limit: 10) == [])
    // With a writer that says nothing there is nothing to read either.
    let end = open(path, O_RDWR | O_CLOEXEC)
    defer { close(end) }
    #expect(throws: FileFault.unreadable(EAGAIN)) { try WholeFile.read(path, limit: 10) }
  }

  @Test func `an open file is read from its position and stays open`() throws {
    let descriptor = open(folder.write("first second", to: "file"), O_RDONLY | O_CLOEXEC)
    defer { close(descriptor) }
    lseek(descriptor, 6, SEEK_SET)
    #expect(try WholeFile.read(descriptor, limit: 100) == Array("second".utf8))
    #expect(try WholeFile.read(descriptor, limit: 100) == [])
  }
}
