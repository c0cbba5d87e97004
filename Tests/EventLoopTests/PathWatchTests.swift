// PathWatchTests.swift -- a file that is written, replaced, removed or made anew is noticed, on a real loop.

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

  /// Runs the loop until a change is told; false where none is within the time.
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

  @Test func `notices a file that is written`() throws {
    #expect(try isTold { folder.write("second", to: "list") })
  }

  @Test func `notices a file that is replaced`() throws {
    folder.write("second", to: "next")
    #expect(try isTold { folder.move("next", to: "list") })
  }

  @Test func `notices a file that is removed`() throws {
    #expect(try isTold { folder.remove("list") })
  }

  @Test func `notices a file that comes to a folder that did not exist`() throws {
    #expect(
      try isTold(of: "some/where/list") {
        folder.make("some")
        folder.make("some/where")
        folder.write("first", to: "some/where/list")
      })
  }

  @Test func `tells nothing of what is there, of other files, and of what is only read`() throws {
    var found: [UInt8]?
    #expect(
      try !isTold(within: .milliseconds(300)) {
        folder.write("other", to: "other")
        found = folder.read("list")
      })
    #expect(found == Array("first".utf8))
  }

  @Test func `tells of many steps once, and of what comes later once more`() throws {
    let told = Box(0)
    let made = PathWatch([folder.path(of: "list")], on: loop, quiet: .milliseconds(50)) { told.value += 1 }
    let watch = try #require(made)
    for step in 0..<20 { folder.write("\(step)", to: "list") }
    loop.schedule(after: .milliseconds(300)) { [folder] in
      #expect(told.value == 1)
      folder.write("later", to: "list")
    }
    loop.schedule(after: .milliseconds(600)) { [loop] in loop.stop() }
    loop.run()
    withExtendedLifetime(watch) {}
    #expect(told.value == 2)
  }

  @Test func `that has gone tells nothing`() throws {
    let told = Box(false)
    var watch = PathWatch([folder.path(of: "list")], on: loop, quiet: .milliseconds(100)) { told.value = true }
    try #require(watch != nil)
    folder.write("second", to: "list")
    // Between the change and the time when it is told.
    loop.schedule(after: .milliseconds(50)) { watch = nil }
    loop.schedule(after: .milliseconds(300)) { [loop] in loop.stop() }
    loop.run()
    #expect(!told.value && watch == nil)
  }
}

@Suite struct `What a path depends on` {
  private let folder = TemporaryFolder()

  @Test func `links are followed in their folder, and a missing folder is waited for in its parent`() {
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

  @Test func `links in a circle end somewhere`() {
    folder.link("two", as: "one")
    folder.link("one", as: "two")
    let found = PathDependencies(of: [folder.path(of: "one")])
    #expect(found.names == [folder.path: ["one", "two"]] && found.files.isEmpty)
  }
}
