// PathWatchTests.swift -- a written, replaced, removed or recreated file is noticed, on a real loop.

import Glibc
import TestSupport
import Testing

@testable import EventLoop

@Suite struct `A path watch` {
  private let folder = TemporaryFolder()
  private let loop: EventLoop

  init() throws {
    loop = try EventLoop()
    folder.write("first", to: "list")
  }

  /// Runs the loop until a change is reported; returns false if none is within the time.
  private func isTold(of name: String = "list", within limit: Duration = .seconds(10), _ change: () -> Void) throws
    -> Bool
  {
    let told = Box(false)
    let made = PathWatch([folder.path(of: name)], on: loop) { [loop] in
      told.value = true
      loop.stop()
    }
    let watch = try #require(made)
    change()
    loop.schedule(after: limit) { [loop] in loop.stop() }
    loop.run()
    withExtendedLifetime(watch) {}
    return told.value
  }

  @Test func `a path watch reports a written file`() throws {
    #expect(try isTold { folder.write("second", to: "list") })
  }

  @Test func `a path watch reports a replaced file`() throws {
    folder.write("second", to: "next")
    #expect(try isTold { folder.move("next", to: "list") })
  }

  @Test func `a path watch reports a removed file`() throws {
    #expect(try isTold { folder.remove("list") })
  }

  @Test func `a path watch reports a file in a folder that did not exist`() throws {
    #expect(
      try isTold(of: "some/where/list") {
        folder.make("some")
        folder.make("some/where")
        folder.write("first", to: "some/where/list")
      })
  }

  /// Runs `body` with a watch, whose quiet time the body controls, and the number of reported changes.
  private func watch(_ body: @escaping @Sendable (WatchedList) async -> Void) throws {
    let told = Box(0)
    let list = WatchedList(folder, loop, told)
    list.watch = PathWatch([folder.path(of: "list")], on: loop, quiet: .seconds(3600)) { told.value += 1 }
    try #require(list.watch != nil)
    loop.startTask { [loop] in
      await body(list)
      loop.stop()
    }
    loop.run()
  }

  @Test func `a path watch reports neither the initial state, nor other files, nor reads`() throws {
    try watch { list in
      list.folder.write("other", to: "other")
      #expect(list.folder.read("list") == Array("first".utf8))
      #expect(await list.toldLater == 0)
      list.folder.write("second", to: "list")
      #expect(await list.toldLater == 1)
    }
  }

  @Test func `a path watch reports many steps once, and later changes again`() throws {
    try watch { list in
      for step in 0..<20 { list.folder.write("\(step)", to: "list") }
      #expect(await list.toldLater == 1)
      list.folder.write("later", to: "list")
      #expect(await list.toldLater == 2)
    }
  }

  @Test func `a released path watch reports nothing`() throws {
    try watch { list in
      list.folder.write("second", to: "list")
      // Between the change and its report.
      await list.loop.turn()
      list.watch = nil
      #expect(await list.toldLater == 0)
    }
  }
}

/// A watch on a file in a folder. On the loop's thread only.
private final class WatchedList: @unchecked Sendable {
  let folder: TemporaryFolder
  let loop: EventLoop
  var watch: PathWatch?
  private let told: Box<Int>

  init(_ folder: TemporaryFolder, _ loop: EventLoop, _ told: Box<Int>) {
    self.folder = folder
    self.loop = loop
    self.told = told
  }

  /// The number of reported changes, after time enough for all of them.
  var toldLater: Int {
    get async {
      for _ in 0..<2 {
        await loop.turn()
        loop.skip(.seconds(7200))
      }
      return told.value
    }
  }
}

@Suite struct `What a path depends on` {
  private let folder = TemporaryFolder()

  @Test func `the dependencies of a path include the folders of links and the parent of a missing folder`() {
    folder.make("run")
    folder.make("run/a")
    folder.write("192.0.2.1", to: "run/a/file")
    folder.link("a", as: "run/b")
    folder.link("./b/../b/file", as: "run/c")
    let root = folder.path
    let found = PathDependencies(of: ["\(root)/run/c", "\(root)/run/none/such/file"])
    #expect(found.names == ["\(root)/run": ["b", "c", "none"], "\(root)/run/a": ["file"]])
    #expect(found.files == ["\(root)/run/a/file"])
  }

  @Test func `following a cycle of links ends`() {
    folder.link("two", as: "one")
    folder.link("one", as: "two")
    let found = PathDependencies(of: [folder.path(of: "one")])
    #expect(found.names == [folder.path: ["one", "two"]] && found.files.isEmpty)
  }
}
