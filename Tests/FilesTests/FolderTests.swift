// FolderTests.swift -- the names in a folder, however many.

import Files
import TestSupport
import Testing

@Suite struct FolderTests {
  private let folder = TemporaryFolder()

  @Test func `every name is there, and nothing behind an entry is read`() {
    // More than libc reads at once: entries lie at the end of its buffer. Only `Scripts/sanitize` sees a read behind them.
    let names = (0..<2_000).map { "\($0)" + String(repeating: "x", count: $0 % 200) }
    for name in names { folder.write("", to: name) }
    #expect(Folder.names(in: folder.path).map(Set.init) == Set(names))
  }

  @Test func `a folder that is not there, and a file, have no names`() {
    folder.write("", to: "file")
    #expect(Folder.names(in: folder.path(of: "none")) == nil)
    #expect(Folder.names(in: folder.path(of: "file")) == nil)
  }
}
