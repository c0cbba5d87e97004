// ResolverWatchTests.swift -- resolvers that change in every way that programs change their files.

import EventLoop
import Glibc
import Testing

@testable import LocalDNS

/// A folder with files, removed with the object.
private final class Folder: Sendable {
  let path: String

  init() {
    var template = Array("/tmp/httpdnsd-resolvers-XXXXXX".utf8CString)
    path = String(cString: mkdtemp(&template))
    mkdir("\(path)/etc", 0o700)
    mkdir("\(path)/run", 0o700)
  }

  deinit { remove(path) }

  private func remove(_ path: String) {
    if unlink(path) == 0 { return }
    if let folder = opendir(path) {
      while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { remove("\(path)/\(name)") }
      }
      closedir(folder)
    }
    rmdir(path)
  }

  func write(_ server: String, to name: String) {
    let file = fopen("\(path)/\(name)", "w")!
    fputs("nameserver \(server)\n", file)
    fclose(file)
  }

  func make(_ name: String) { mkdir("\(path)/\(name)", 0o700) }
  func drop(_ name: String) { remove("\(path)/\(name)") }
  func move(_ name: String, to other: String) { rename("\(path)/\(name)", "\(path)/\(other)") }
  func link(_ target: String, as name: String) { symlink(target, "\(path)/\(name)") }
}

/// What a watch on two files says, change after change.
private final class Watched: @unchecked Sendable {
  private let loop: EventLoop
  private var reports: [[String]] = []
  private var watch: ResolverWatch?

  init(_ folder: Folder, on loop: EventLoop) {
    self.loop = loop
    watch = ResolverWatch(
      on: loop, paths: ["\(folder.path)/etc/resolv.conf", "\(folder.path)/run/manager/resolv.conf"],
      notAt: [SocketAddress(text: "127.0.0.1:53")!]
    ) { [unowned self] in reports.append($0.servers.map(\.description)) }
  }

  var current: [String] { watch!.current.servers.map(\.description) }

  /// The servers that are reported next; nil where nothing is within the time.
  func next(within limit: Duration = .seconds(8)) async -> [String]? {
    let end = loop.now + limit
    while reports.isEmpty, loop.now < end { await loop.sleep(for: .milliseconds(5)) }
    return reports.isEmpty ? nil : reports.removeFirst()
  }
}

@Suite struct `The resolver watch` {
  @Test func `a file that is written, replaced, removed or made anew is noticed`() throws {
    try onLoop { loop in
      let folder = Folder()
      folder.write("192.0.2.1", to: "etc/resolv.conf")
      let watched = Watched(folder, on: loop)
      #expect(watched.current == ["192.0.2.1:53"])
      folder.write("192.0.2.2", to: "etc/resolv.conf")
      #expect(await watched.next() == ["192.0.2.2:53"])
      for index in 3...5 {
        folder.write("192.0.2.\(index)", to: "etc/resolv.conf.new")
        folder.move("etc/resolv.conf.new", to: "etc/resolv.conf")
        #expect(await watched.next() == ["192.0.2.\(index):53"])
      }
      folder.drop("etc/resolv.conf")
      #expect(await watched.next() == [])
      folder.write("192.0.2.6", to: "etc/resolv.conf")
      #expect(await watched.next() == ["192.0.2.6:53"])
    }
  }

  @Test func `a file in a folder that appears, vanishes and appears again is noticed`() throws {
    try onLoop { loop in
      let folder = Folder()
      folder.write("127.0.0.1", to: "etc/resolv.conf")
      let watched = Watched(folder, on: loop)
      #expect(watched.current == [])
      for index in 1...3 {
        folder.make("run/manager")
        // A folder is noticed before there is a file in it.
        #expect(await watched.next(within: .milliseconds(300)) == nil)
        folder.write("192.0.2.\(index)", to: "run/manager/resolv.conf")
        #expect(await watched.next() == ["192.0.2.\(index):53"])
        folder.drop("run/manager")
        #expect(await watched.next() == [])
      }
      folder.drop("run")
      folder.make("run")
      folder.make("run/manager")
      folder.write("192.0.2.9", to: "run/manager/resolv.conf")
      #expect(await watched.next() == ["192.0.2.9:53"])
    }
  }

  @Test func `what happens behind a symbolic link, and to the link, is noticed`() throws {
    try onLoop { loop in
      let folder = Folder()
      folder.make("run/stub")
      folder.write("192.0.2.1", to: "run/stub/first")
      folder.write("192.0.2.2", to: "run/stub/second")
      folder.link("../run/stub/first", as: "etc/resolv.conf")
      let watched = Watched(folder, on: loop)
      #expect(watched.current == ["192.0.2.1:53"])
      folder.write("192.0.2.3", to: "run/stub/new")
      folder.move("run/stub/new", to: "run/stub/first")
      #expect(await watched.next() == ["192.0.2.3:53"])
      folder.link("\(folder.path)/run/stub/second", as: "etc/new")
      folder.move("etc/new", to: "etc/resolv.conf")
      #expect(await watched.next() == ["192.0.2.2:53"])
      folder.write("192.0.2.4", to: "run/stub/second")
      #expect(await watched.next() == ["192.0.2.4:53"])
      folder.drop("etc/resolv.conf")
      folder.link("../run/stub/first", as: "etc/resolv.conf")
      #expect(await watched.next() == ["192.0.2.3:53"])
    }
  }

  @Test func `what comes to the same, or happens to other files, is not reported`() throws {
    try onLoop { loop in
      let folder = Folder()
      folder.write("192.0.2.1", to: "etc/resolv.conf")
      let watched = Watched(folder, on: loop)
      folder.write("192.0.2.1", to: "etc/resolv.conf.new")
      folder.move("etc/resolv.conf.new", to: "etc/resolv.conf")
      folder.write("192.0.2.8", to: "etc/hosts")
      folder.make("run/other")
      // Only the first file with a server gives servers.
      folder.make("run/manager")
      folder.write("192.0.2.9", to: "run/manager/resolv.conf")
      #expect(await watched.next(within: .milliseconds(600)) == nil)
      // Many steps are one change.
      for index in 2...50 { folder.write("192.0.2.\(index)", to: "etc/resolv.conf") }
      #expect(await watched.next() == ["192.0.2.50:53"])
      #expect(await watched.next(within: .milliseconds(600)) == nil)
    }
  }

  @Test func `somebody who knows that the network changed can look at once`() throws {
    try onLoop { loop in
      let folder = Folder()
      folder.write("192.0.2.1", to: "etc/resolv.conf")
      var reports = 0
      let watch = ResolverWatch(on: loop, paths: ["\(folder.path)/etc/resolv.conf"], notAt: []) { _ in reports += 1 }
      #expect(watch.isWatching && !watch.check())
      folder.write("192.0.2.2", to: "etc/resolv.conf")
      #expect(watch.check() && reports == 1)
      await loop.sleep(for: .milliseconds(400))
      #expect(reports == 1)
    }
  }
}

@Suite struct `What a path depends on` {
  @Test func `links are followed in their folder, and a missing folder is waited for in its parent`() {
    let folder = Folder()
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
    let folder = Folder()
    folder.link("two", as: "one")
    folder.link("one", as: "two")
    let found = PathDependencies(of: ["\(folder.path)/one"])
    #expect(found.names == [folder.path: ["one", "two"]] && found.files.isEmpty)
  }
}
