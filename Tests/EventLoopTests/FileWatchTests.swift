// FileWatchTests.swift -- a file that is written, replaced or removed is noticed, on a real loop.

import EventLoop
import Glibc
import Testing

@Suite final class FileWatchTests {
  private let folder: String
  private let loop: EventLoop

  init() throws {
    var template = Array("/tmp/httpdnsd-watch-XXXXXX".utf8CString)
    folder = try String(cString: #require(mkdtemp(&template)))
    loop = try EventLoop()
    write("first", to: "list")
  }

  deinit {
    for name in ["list", "next"] { unlink("\(folder)/\(name)") }
    rmdir(folder)
  }

  private func write(_ text: String, to name: String) {
    let file = open("\(folder)/\(name)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    _ = text.withCString { Glibc.write(file, $0, strlen($0)) }
    close(file)
  }

  /// Runs the loop until a change is told; false where none is within ten seconds.
  private func isTold(_ change: () -> Void) throws -> Bool {
    var isTold = false
    let whenChanged = { [loop] in
      isTold = true
      loop.stop()
    }
    let made = FileWatch("\(folder)/list", on: loop, whenChanged)
    let watch = try #require(made)
    change()
    loop.schedule(after: .seconds(10)) { [loop] in loop.stop() }
    loop.run()
    withExtendedLifetime(watch) {}
    return isTold
  }

  @Test func `a file that is written is noticed`() throws {
    #expect(try isTold { write("second", to: "list") })
  }

  @Test func `a file that is replaced is noticed`() throws {
    write("second", to: "next")
    #expect(try isTold { rename("\(folder)/next", "\(folder)/list") })
  }

  @Test func `a file that is removed is noticed`() throws {
    #expect(try isTold { unlink("\(folder)/list") })
  }

  @Test func `a folder that does not exist cannot be watched`() {
    #expect(FileWatch("\(folder)/no/such/list", on: loop) {} == nil)
  }
}
