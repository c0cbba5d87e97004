// ResolverWatchTests.swift -- resolvers that change in every way that programs change their files.

import EventLoop
import TestSupport
import Testing

@testable import LocalDNS

/// A folder like the places where resolvers are named.
private func etcAndRun() -> TemporaryFolder {
  let folder = TemporaryFolder()
  folder.make("etc")
  folder.make("run")
  return folder
}

extension TemporaryFolder {
  fileprivate func write(server: String, to name: String) { write("nameserver \(server)\n", to: name) }
}

extension EventLoop {
  /// The steps of all changes until now are over, and what they led to has been looked at.
  fileprivate func settle() async {
    for _ in 0..<2 {
      await turn()
      skip(.seconds(1))
    }
  }
}

/// What a watch on two files says, change after change.
private final class Watched: @unchecked Sendable {
  private let loop: EventLoop
  private var reports: [[String]] = []
  private var watch: ResolverWatch?

  init(_ folder: TemporaryFolder, on loop: EventLoop) {
    self.loop = loop
    watch = ResolverWatch(
      on: loop, paths: ["\(folder.path)/etc/resolv.conf", "\(folder.path)/run/manager/resolv.conf"],
      notAt: [SocketAddress(text: "127.0.0.1:53")!]
    ) { [unowned self] in reports.append($0.servers.map(\.description)) }
  }

  var current: [String] { watch!.current.servers.map(\.description) }

  /// The servers that are reported next; nil where none ever are.
  func next() async -> [String]? { await loop.until { !reports.isEmpty } ? reports.removeFirst() : nil }

  /// Whether nothing is reported of all that has happened until now.
  func isSilent() async -> Bool {
    await loop.settle()
    return reports.isEmpty
  }
}

@Suite struct `The resolver watch` {
  @Test func `a file that is written, replaced, removed or created again is noticed`() throws {
    try onLoop { loop in
      let folder = etcAndRun()
      folder.write(server: "192.0.2.1", to: "etc/resolv.conf")
      let watched = Watched(folder, on: loop)
      #expect(watched.current == ["192.0.2.1:53"])
      folder.write(server: "192.0.2.2", to: "etc/resolv.conf")
      #expect(await watched.next() == ["192.0.2.2:53"])
      for index in 3...5 {
        folder.write(server: "192.0.2.\(index)", to: "etc/resolv.conf.new")
        folder.move("etc/resolv.conf.new", to: "etc/resolv.conf")
        #expect(await watched.next() == ["192.0.2.\(index):53"])
      }
      folder.remove("etc/resolv.conf")
      #expect(await watched.next() == [])
      folder.write(server: "192.0.2.6", to: "etc/resolv.conf")
      #expect(await watched.next() == ["192.0.2.6:53"])
    }
  }

  @Test func `a file in a folder that appears, vanishes and appears again is noticed`() throws {
    try onLoop { loop in
      let folder = etcAndRun()
      folder.write(server: "127.0.0.1", to: "etc/resolv.conf")
      let watched = Watched(folder, on: loop)
      #expect(watched.current == [])
      for index in 1...3 {
        folder.make("run/manager")
        // A folder is noticed before there is a file in it.
        #expect(await watched.isSilent())
        folder.write(server: "192.0.2.\(index)", to: "run/manager/resolv.conf")
        #expect(await watched.next() == ["192.0.2.\(index):53"])
        folder.remove("run/manager")
        #expect(await watched.next() == [])
      }
      folder.remove("run")
      folder.make("run")
      folder.make("run/manager")
      folder.write(server: "192.0.2.9", to: "run/manager/resolv.conf")
      #expect(await watched.next() == ["192.0.2.9:53"])
    }
  }

  @Test func `changes behind a symbolic link, and of the link, are noticed`() throws {
    try onLoop { loop in
      let folder = etcAndRun()
      folder.make("run/stub")
      folder.write(server: "192.0.2.1", to: "run/stub/first")
      folder.write(server: "192.0.2.2", to: "run/stub/second")
      folder.link("../run/stub/first", as: "etc/resolv.conf")
      let watched = Watched(folder, on: loop)
      #expect(watched.current == ["192.0.2.1:53"])
      folder.write(server: "192.0.2.3", to: "run/stub/new")
      folder.move("run/stub/new", to: "run/stub/first")
      #expect(await watched.next() == ["192.0.2.3:53"])
      folder.link("\(folder.path)/run/stub/second", as: "etc/new")
      folder.move("etc/new", to: "etc/resolv.conf")
      #expect(await watched.next() == ["192.0.2.2:53"])
      folder.write(server: "192.0.2.4", to: "run/stub/second")
      #expect(await watched.next() == ["192.0.2.4:53"])
      folder.remove("etc/resolv.conf")
      folder.link("../run/stub/first", as: "etc/resolv.conf")
      #expect(await watched.next() == ["192.0.2.3:53"])
    }
  }

  @Test func `equal content and changes of other files are not reported`() throws {
    try onLoop { loop in
      let folder = etcAndRun()
      folder.write(server: "192.0.2.1", to: "etc/resolv.conf")
      let watched = Watched(folder, on: loop)
      folder.write(server: "192.0.2.1", to: "etc/resolv.conf.new")
      folder.move("etc/resolv.conf.new", to: "etc/resolv.conf")
      folder.write(server: "192.0.2.8", to: "etc/hosts")
      folder.make("run/other")
      // Only the first file with a server gives servers.
      folder.make("run/manager")
      folder.write(server: "192.0.2.9", to: "run/manager/resolv.conf")
      #expect(await watched.isSilent())
      // Many steps are one change.
      for index in 2...50 { folder.write(server: "192.0.2.\(index)", to: "etc/resolv.conf") }
      #expect(await watched.next() == ["192.0.2.50:53"])
      #expect(await watched.isSilent())
    }
  }

  @Test func `a check on request finds a change at once`() throws {
    try onLoop { loop in
      let folder = etcAndRun()
      folder.write(server: "192.0.2.1", to: "etc/resolv.conf")
      var reports = 0
      let watch = ResolverWatch(on: loop, paths: ["\(folder.path)/etc/resolv.conf"], notAt: []) { _ in reports += 1 }
      #expect(watch.watch != nil && !watch.check())
      folder.write(server: "192.0.2.2", to: "etc/resolv.conf")
      #expect(watch.check() && reports == 1)
      await loop.settle()
      #expect(reports == 1)
    }
  }
}
