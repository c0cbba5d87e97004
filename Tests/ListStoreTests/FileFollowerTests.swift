// FileFollowerTests.swift -- files of lists that change, vanish, and are written slowly or badly.

import EventLoop
import Glibc
import Persistence
import TestSupport
import Testing

@testable import ListStore

@Suite struct `Following the files of lists` {
  private let files = TemporaryFolder()

  private func scene(in folder: TemporaryFolder = TemporaryFolder(), canWatch: Bool = true) -> (Scene, String) {
    let scene = Scene(in: folder, canWatch: canWatch)
    return (scene, files.path(of: "china.txt"))
  }

  private func started(_ text: String = "a.example", in folder: TemporaryFolder = TemporaryFolder()) -> (Scene, String)
  {
    let (scene, path) = scene(in: folder)
    files.write(text, to: "china.txt")
    scene.use(ListSource(.file(path)))
    scene.store.start()
    scene.loop.advance(by: .seconds(1))
    return (scene, path)
  }

  private func change(_ scene: Scene, _ text: String, after time: Duration = .seconds(2)) {
    files.write(text, to: "china.txt")
    scene.touch?()
    scene.loop.advance(by: time)
  }

  @Test func `a file is in use from the start, and has a copy soon after`() {
    let (scene, path) = started()
    #expect(scene.table[.file(path)] == ["a.example"] && scene.builds.isEmpty)
    #expect(scene.store.texts[.file(path)]?.isPrivate == true)
    #expect(scene.watched == [path])
    #expect(scene.log.all == ["info list \(path): 1 name"])
    #expect(scene.report().nextFetch == nil && scene.report().fetches == ListFetchCounts())
  }

  @Test func `a new content is in use within two seconds`() {
    let (scene, path) = started()
    change(scene, "a.example\nb.example")
    #expect(scene.table[.file(path)] == ["a.example", "b.example"])
    #expect(scene.log.all.last == "info list \(path): 2 names (+1 −0)")
  }

  @Test func `other times with the same content build no table`() {
    let (scene, path) = started()
    utimes(path, [timeval(tv_sec: 5, tv_usec: 0), timeval(tv_sec: 5, tv_usec: 0)])
    scene.touch?()
    scene.loop.advance(by: .seconds(2))
    #expect(scene.builds.isEmpty && scene.store.texts[.file(path)]?.details.identity == FileIdentity(path: path))
    #expect(scene.report().age.map { $0 > .seconds(1_000_000_000) } == true)
  }

  @Test func `a file is not read while it is being written`() {
    let (scene, path) = started()
    var text = ""
    for line in 0..<20 {
      text += "\(line).example\n"
      change(scene, text, after: .milliseconds(150))
      #expect(scene.store.texts[.file(path)].map(lines(of:)) == ["a.example"])
    }
    scene.loop.advance(by: .seconds(2))
    #expect(scene.table[.file(path)]?.count == 20 && scene.builds.count == 1)
  }

  @Test
  func `a file that becomes useless leaves its names in the table, also when another list changes and after a restart`()
  {
    let state = TemporaryFolder()
    let (scene, path) = scene(in: state)
    let other = files.write("other.example", to: "other.txt")
    files.write("a.example", to: "china.txt")
    scene.use(ListSource(.file(path)), ListSource(.file(other)))
    scene.store.start()
    scene.loop.advance(by: .seconds(1))
    // As a download in place does that fails.
    change(scene, "")
    #expect(scene.report(0).state == .failing("no line of it can be used") && scene.report(0).names == 1)
    #expect(scene.log.all.last == "error list \(path): no line of it can be used; the last good text stays in use")
    files.write("other.example\nmore.example", to: "other.txt")
    scene.touch?()
    scene.loop.advance(by: .seconds(2))
    #expect(scene.table[.file(path)] == ["a.example"] && scene.table[.file(other)]?.count == 2)
    files.remove("china.txt")
    scene.touch?()
    scene.loop.advance(by: .seconds(2))
    #expect(scene.report(0).state == .failing("No such file or directory"))
    scene.state.leave()

    let second = Scene(in: state)
    second.use(ListSource(.file(path)), ListSource(.file(other)))
    #expect(second.table[.file(path)] == ["a.example"])
    #expect(
      second.log.all.first
        == "error list \(path): No such file or directory; the last good text stays in use")
    second.store.start()
    change(second, "b.example")
    #expect(second.table[.file(path)] == ["b.example"] && second.report(0).state == .loaded)
  }

  @Test func `a failing file is logged once, and read again only when it changes`() {
    let (scene, _) = started()
    change(scene, "<html>")
    change(scene, "<html> ")
    for _ in 0..<5 {
      scene.touch?()
      scene.loop.advance(by: .seconds(2))
    }
    #expect(scene.log.all.count { $0.hasPrefix("error") } == 1)
    change(scene, "a.example")
    #expect(scene.log.all.last?.hasSuffix("available again, unchanged") == true)
  }

  @Test func `a restart uses the copy without a further reading`() {
    let state = TemporaryFolder()
    let (scene, path) = started(in: state)
    scene.state.leave()
    let second = Scene(in: state)
    second.use(ListSource(.file(path)))
    #expect(second.store.texts[.file(path)]?.isPrivate == true && second.table[.file(path)] == ["a.example"])
  }

  @Test func `a file that changes between the start and its copy is built again`() {
    let (scene, path) = scene()
    files.write("a.example", to: "china.txt")
    scene.use(ListSource(.file(path)))
    // The same file, with as many octets.
    files.write("b.example", to: "china.txt")
    scene.store.start()
    scene.loop.advance(by: .seconds(3))
    #expect(scene.table[.file(path)] == ["b.example"])
  }

  @Test func `a file that does not exist yet is used as soon as it does`() {
    let (scene, path) = scene()
    scene.use(ListSource(.file(path)))
    scene.store.start()
    scene.loop.advance(by: .seconds(1))
    #expect(scene.log.all == ["error list \(path): No such file or directory; it has no names"])
    change(scene, "a.example")
    #expect(scene.table[.file(path)] == ["a.example"])
  }

  @Test func `files that cannot be watched are looked at every 30 seconds`() {
    let (scene, path) = scene(canWatch: false)
    files.write("a.example", to: "china.txt")
    scene.use(ListSource(.file(path)))
    scene.store.start()
    scene.loop.advance(by: .seconds(1))
    files.write("b.example", to: "china.txt")
    scene.loop.advance(by: .seconds(32))
    #expect(scene.table[.file(path)] == ["b.example"])
  }

  @Test func `two rules with one path have one list, and a name of its own wins`() {
    let (scene, path) = scene()
    files.write("a.example", to: "china.txt")
    scene.use(ListSource(.file(path)), ListSource(.file(path), name: "china"), ListSource(.file(path)))
    #expect(scene.store.reports.map(\.name) == ["china"])
  }

  @Test func `a reload that changes the settings of a list reads its file again`() {
    let (scene, path) = scene()
    files.write(String(repeating: "a.example\n", count: 200), to: "china.txt")
    scene.use(ListSource(.file(path), maxSize: 1024))
    scene.store.start()
    scene.loop.advance(by: .seconds(1))
    #expect(scene.report().state == .failing("larger than 1 KiB"))
    // With the reload itself, not only with the next reading.
    scene.use(ListSource(.file(path), maxSize: 2048))
    #expect(scene.report().state == .loaded && scene.report().names == 1)
    files.write(String(repeating: "b.example\n", count: 300), to: "china.txt")
    scene.touch?()
    scene.loop.advance(by: .seconds(2))
    #expect(scene.report().state == .failing("larger than 2 KiB"))
    scene.use(ListSource(.file(path), maxSize: 4096))
    scene.loop.advance(by: .seconds(2))
    #expect(scene.report().state == .loaded && scene.table[.file(path)]?.first == "b.example")
  }

  @Test func `after a reload only the files of its lists are followed`() {
    let (scene, path) = started()
    let other = files.write("other.example", to: "other.txt")
    scene.use(ListSource(.file(other)))
    scene.loop.advance(by: .seconds(1))
    #expect(scene.watched == [other])
    change(scene, "b.example")
    #expect(scene.builds.isEmpty && scene.store.texts[.file(path)] == nil)
    scene.store.stop()
    files.write("more.example", to: "other.txt")
    scene.touch?()
    scene.loop.advance(by: .seconds(3))
    #expect(scene.builds.isEmpty)
  }

  @Test func `the kernel's watch notices a file that is replaced`() throws {
    let state = TemporaryFolder()
    let path = files.write("a.example", to: "china.txt")
    let files = files
    try onLoop { loop in
      let folder = StateFolder(path: state.path) { _ in }
      folder.use()
      let shelf = ListFolder(folder) { _, _ in }
      let store = ListStore(in: shelf, fetcher: ScriptedFetcher(on: loop), on: loop, seed: 1) {
        PathWatch($0, on: loop, changed: $1)
      } note: { _, _ in
      }
      let sources = [ListSource(.file(path))]
      let texts = shelf.load(sources)
      store.use(sources, texts)
      store.loaded(
        [.file(path): .success(ListLoaded(names: 1, leftOut: .init(), added: 1, removed: 0))], of: texts, in: .zero)
      store.start()
      var builds = 0
      store.changed = { builds += 1 }
      #expect(await loop.until { store.texts[.file(path)]?.isPrivate == true })
      files.write("b.example", to: "next")
      files.move("next", to: "china.txt")
      #expect(await loop.until { builds == 1 })
      #expect(store.texts[.file(path)].map(lines(of:)) == ["b.example"])
      store.stop()
    }
  }
}
