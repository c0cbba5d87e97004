// RegularFileTests.swift -- what is read of a file, and who decides about its mode.

import Files
import Glibc
import TestSupport
import Testing

@Suite struct RegularFileTests {
  private let folder = TemporaryFolder()

  private func fault(_ path: String, limit: Int = 4) -> FileFault? {
    do throws(FileFault) {
      _ = try RegularFile(path, limit: limit)
      return nil
    } catch { return error }
  }

  @Test func `content and mode are those of the file that a link leads to`() throws {
    folder.write("text", to: "file", mode: 0o640)
    folder.link("file", as: "link")
    let file = try RegularFile(folder.path(of: "link"), limit: 4)
    #expect(file.octets == Array("text".utf8) && file.mode == 0o640)
    #expect(!file.isOnReadOnlyMount && !file.isProvided(credentials: nil) && !file.isProvided(credentials: ""))
    #expect(RegularFile.problem(folder.path(of: "link")) == nil)
  }

  @Test func `what is no file, missing or too large is refused`() throws {
    folder.write("text!", to: "file")
    #expect(fault(folder.path(of: "file")) == .tooLarge(limit: 4))
    #expect(fault(folder.path(of: "no")) == .unreadable(ENOENT))
    #expect(fault(folder.path) == .unreadable(EISDIR))
    try #require(mkfifo(folder.path(of: "pipe"), 0o600) == 0)
    for path in [folder.path(of: "pipe"), "/dev/zero"] {
      #expect(fault(path) == .special && RegularFile.problem(path) == .special)
    }
    #expect(try RegularFile("/dev/null", limit: 0).octets == [])
  }

  @Test func `systemd's folder of credentials decides about the mode of what is in it`() throws {
    folder.make("inner")
    let path = folder.write("text", to: "inner/file", mode: 0o444)
    let file = try RegularFile(path, limit: 4)
    #expect(
      file.isProvided(credentials: folder.path(of: "inner")) && file.isProvided(credentials: "\(folder.path)/inner/"))
    #expect(!file.isProvided(credentials: folder.path(of: "inn")) && !file.isProvided(credentials: "/elsewhere"))
  }
}
