// ListFolderTests.swift -- copies: written, found again, damaged, of another list, on a full disk, and files in their place.

import DNSWire
import Files
import Glibc
import Lists
import Persistence
import TestSupport
import Testing

@testable import ListStore

@Suite struct `The copies of lists` {
  private let folder = TemporaryFolder()
  private let log = LogLines()

  private func shelf(mayWrite: Bool = true) -> ListFolder {
    let state = StateFolder(path: folder.path) { _ in }
    if mayWrite { state.use() }
    return ListFolder(state) { [log] in log.logger.log(level: $0, "\($1)") }
  }

  private let source = ListSource(.url("https://user:secret@lists.example/cn.txt?key=secret"))

  private func draft(
    _ text: String, of source: ListSource? = nil, in shelf: ListFolder, tag: String? = "\"a\"",
    after present: ListText? = nil
  ) -> ListOutcome {
    let draft = ListDraft(of: source ?? self.source, room: ListFolder.mostNames, in: shelf)
    for part in Array(text.utf8).chunks(of: 50_000) { _ = part.withUnsafeBytes { draft.append($0) } }
    return draft.finish(ListDraft.Origin(entityTag: tag, lastModified: "yesterday"), after: present)
  }

  private var copyName: String { "lists/\(source.place.fingerprint)" }

  private func octets(_ name: String) -> String { String(decoding: folder.read(name) ?? [], as: UTF8.self) }

  @Test func `a copy has the text, where it comes from, and mode 0600`() throws {
    let outcome = draft("a.example\r", in: shelf())
    let text = try #require(outcome.changed)
    #expect(!text.isInMemory && lines(of: text) == ["a.example\r"])
    #expect(folder.mode(copyName) == 0o600 && folder.mode("lists") == 0o700)
    #expect(
      octets(copyName)
        == "a.example\r\n# httpdnsd list 1\thttps://lists.example/cn.txt\n# \(source.place.fingerprint)\t10\t1\t\"a\"\tyesterday\t\n"
    )
    #expect(source.name == "https://lists.example/cn.txt")
    let copy = try #require(shelf(mayWrite: false).copy(of: source))
    #expect(copy.details == text.details && lines(of: copy) == ["a.example\r"])
  }

  @Test func `a text stays as it is when its copy is replaced or removed`() throws {
    let first = try #require(draft("a.example\nb.example", in: shelf()).changed)
    let second = try #require(draft("c.example", in: shelf(), after: first).changed)
    folder.remove("lists")
    #expect(lines(of: first) == ["a.example", "b.example"] && lines(of: second) == ["c.example"])
    #expect(first.version != second.version)
  }

  @Test func `a text is compared with the one in use octet by octet`() throws {
    let long = String(repeating: "a.example\n", count: 30_000)
    let first = try #require(draft(long, in: shelf()).changed)
    for mayWrite in [true, false] {
      guard case .unchanged(let same) = draft(long, in: shelf(mayWrite: mayWrite), tag: "\"b\"", after: first) else {
        Issue.record("not the same")
        return
      }
      #expect(same?.version == first.version && same?.isInMemory == !mayWrite)
    }
    #expect(draft(long.dropLast(2) + "f\n", in: shelf(), after: first).changed != nil)
    #expect(draft(long + "b\n", in: shelf(), after: first).changed != nil)
  }

  @Test func `a damaged copy is not used`() throws {
    _ = draft("a.example\nb.example\n", in: shelf())
    let whole = try #require(folder.read(copyName))
    #expect(shelf().copy(of: source) != nil)
    for cut in stride(from: 0, to: whole.count, by: 3) {
      folder.write(Array(whole[..<cut]), to: copyName)
      #expect(shelf().copy(of: source) == nil)
    }
    // More or less text than the record says.
    folder.write(Array("x".utf8) + whole, to: copyName)
    #expect(shelf().copy(of: source) == nil)
    folder.write(Array(whole.dropFirst()), to: copyName)
    #expect(shelf().copy(of: source) == nil)
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<300 {
      var damaged = whole
      damaged[Int.random(in: 0..<whole.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      folder.write(damaged, to: copyName)
      if let copy = shelf().copy(of: source) { #expect(copy.octets == 20) }
    }
  }

  @Test func `a copy of another URL is not used`() throws {
    _ = draft("a.example", in: shelf())
    let other = ListSource(.url("https://lists.example/cn.txt?key=other"))
    folder.move(copyName, to: "lists/\(other.place.fingerprint)")
    #expect(shelf().copy(of: other) == nil)
  }

  @Test func `what is no file is no copy`() {
    folder.make("lists")
    folder.make(copyName)
    #expect(shelf().copy(of: source) == nil)
    folder.remove(copyName)
    mkfifo(folder.path(of: copyName), 0o600)
    #expect(shelf().copy(of: source) == nil)
  }

  @Test func `copies of lists that are not configured are removed, and other files are not`() {
    let shelf = shelf()
    _ = draft("a.example", in: shelf)
    let other = ListSource(.file("/etc/httpdnsd/other.txt"))
    _ = draft("b.example", of: other, in: shelf)
    folder.write("", to: "lists/\(other.place.fingerprint).new")
    folder.write("mine", to: "lists/README")
    shelf.clean(keeping: [source])
    #expect(Folder.names(in: folder.path(of: "lists")).map(Set.init) == [source.place.fingerprint, "README"])
    shelf.clean(keeping: [])
    #expect(Folder.names(in: folder.path(of: "lists")) == ["README"])
  }

  @Test func `a process that may not write keeps texts in memory, and warns once`() throws {
    let shelf = shelf(mayWrite: false)
    let text = try #require(draft("a.example", in: shelf).changed)
    #expect(text.isInMemory && lines(of: text) == ["a.example"])
    _ = draft("b.example", in: shelf)
    #expect(folder.names.isEmpty && log.all.count == 1)
    #expect(log.all[0].hasPrefix("warning lists are held in memory and fetched again after a restart: "))
  }

  @Test func `a second process with the same state directory leaves the copies as they are`() throws {
    let first = StateFolder(path: folder.path) { _ in }
    first.use()
    _ = draft("a.example", in: ListFolder(first) { _, _ in })
    let second = try #require(draft("b.example", in: shelf()).changed)
    #expect(second.isInMemory)
    #expect(shelf().copy(of: source).map(lines(of:)) == ["a.example"])
  }

  @Test(.enabled(if: SmallDisk.isAvailable, "this user may not mount a file system"))
  func `on a full disk the text is used from memory, and the old copy stays`() throws {
    let disk = try #require(SmallDisk(on: folder))
    let shelf = shelf()
    let first = try #require(draft("a.example", in: shelf).changed)
    let long = (0..<20_000).map { "\($0).example" }
    let second = try #require(draft(long.joined(separator: "\n"), in: shelf, after: first).changed)
    #expect(second.isInMemory && lines(of: second) == long)
    #expect(shelf.copy(of: source).map(lines(of:)) == ["a.example"])
    #expect(folder.read("\(copyName).new") == nil)
    #expect(log.all.count == 1 && log.all[0].contains("No space left on device"))
    // It does not count as the copy, and a smaller one is written again.
    let third = try #require(draft("c.example", in: shelf, after: second).changed)
    #expect(!third.isInMemory)
    withExtendedLifetime(disk) {}
  }

  @Test func `a text is cut off at its limit, whatever its parts`() {
    let small = ListSource(source.place, maxSize: 1024)
    let draft = ListDraft(of: small, room: 1000, in: shelf())
    let part = Array(repeating: UInt8(ascii: "a"), count: 1000)
    #expect(part.withUnsafeBytes { draft.append($0) })
    #expect(!part.withUnsafeBytes { draft.append($0) })
    #expect(draft.fault == .tooLarge(1024))
    let names = ListDraft(of: source, room: 3, in: shelf())
    #expect(!Array("a\nb\nc\nd\n".utf8).withUnsafeBytes { names.append($0) })
    #expect(names.fault == .tooManyNames(ListFolder.mostNames))
  }

  @Test func `tags that a request cannot carry are not stored`() throws {
    for tag in ["\"a\tb\"", String(repeating: "x", count: 600), "\"ä\"", ""] {
      let text = try #require(draft("a.example", in: shelf(), tag: tag).changed)
      #expect(text.details.entityTag == nil)
      #expect(shelf().copy(of: source)?.details.entityTag == nil)
    }
  }
}

@Suite struct `Files of lists` {
  private let folder = TemporaryFolder()

  private func load(_ path: String, maxSize: Int = 1 << 20) -> ListTexts {
    let state = StateFolder(path: folder.path) { _ in }
    return ListFolder(state) { _, _ in }.load([ListSource(.file(path), maxSize: maxSize)])
  }

  private func fault(_ path: String, maxSize: Int = 1 << 20) -> String? {
    load(path, maxSize: maxSize).faults[.file(path)]?.description
  }

  @Test func `what is no file, or no list, is refused with a reason`() {
    folder.make("folder")
    mkfifo(folder.path(of: "fifo"), 0o600)
    folder.write("<html>", to: "page")
    folder.write("a\0b", to: "binary")
    folder.write("", to: "empty")
    folder.write(String(repeating: "a.example\n", count: 103), to: "large")
    #expect(fault(folder.path(of: "folder")) == "it is a folder")
    #expect(fault(folder.path(of: "fifo")) == "it is a FIFO")
    #expect(fault("/dev/null") == "it is a device")
    #expect(fault(folder.path(of: "none")) == "No such file or directory")
    #expect(fault("\(folder.path(of: "page"))/below") == "Not a directory")
    #expect(fault(folder.path(of: "page")) == "it is a web page")
    #expect(fault(folder.path(of: "binary")) == "it is not text")
    #expect(fault(folder.path(of: "empty")) == "no line of it can be used")
    #expect(fault(folder.path(of: "large"), maxSize: 1024) == "larger than 1 KiB")
  }

  @Test func `a socket is refused`() {
    let path = folder.path(of: "socket")
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let length = socklen_t(MemoryLayout<sockaddr_un>.size)
    let bound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, .init(__sockaddr__: $0), length) }
    }
    #expect(bound == 0 && fault(path) == "it is a socket")
    close(descriptor)
  }

  @Test(.enabled(if: geteuid() != 0, "root can read every file"))
  func `a file without permission is refused`() {
    folder.write("a.example", to: "list", mode: 0)
    #expect(fault(folder.path(of: "list")) == "Permission denied")
  }

  @Test func `a file of 257 MiB is not read`() {
    let path = folder.write("a.example\n", to: "list")
    truncate(path, 257 << 20)
    #expect(fault(path, maxSize: 256 << 20) == "larger than 256 MiB")
  }

  @Test(.enabled(if: geteuid() != 0, "root can read every file"))
  func `a copy without permission is told apart from none`() throws {
    let shelf = ListFolder(StateFolder(path: folder.path) { _ in }) { _, _ in }
    let source = ListSource(.url(url))
    folder.make("lists")
    #expect(try shelf.textNow(source) == nil && shelf.load([source]).faults.isEmpty)
    folder.write("a.example", to: "lists/\(source.place.fingerprint)", mode: 0)
    #expect(throws: ListFault.hiddenCopy) { try shelf.textNow(source) }
    #expect(shelf.load([source]).faults == [source.place: .hiddenCopy])
    // A file needs no copy.
    let file = ListSource(.file(folder.write("a.example", to: "list")))
    folder.write("a.example", to: "lists/\(file.place.fingerprint)", mode: 0)
    #expect(shelf.load([file]).faults.isEmpty && shelf.load([file])[file.place] != nil)
  }

  @Test func `a file is read in place before it has a copy`() throws {
    let path = folder.write("a.example\nb.example", to: "list")
    let text = try #require(load(path)[.file(path)])
    #expect(!text.isPrivate && text.details.names == 2 && folder.names == ["list"])
    let names = try text.names(ListKey(), blocks: true)
    #expect(names.leftOut.total == 0)
  }

  @Test func `at a reload the texts in use have their names before those of new lists`() {
    let shelf = ListFolder(StateFolder(path: folder.path) { _ in }, mostNames: 3) { _, _ in }
    let present = ListSource(.file(folder.write("a.example\nb.example", to: "present")))
    let new = ListSource(.file(folder.write("c.example\nd.example", to: "new")))
    let texts = shelf.load([new, present], keeping: shelf.load([present]))
    #expect(texts.names == 2 && texts.faults == [new.place: .tooManyNames(3)])
  }

  @Test func `check reads a file as it is, and copies of URLs`() throws {
    let state = StateFolder(path: folder.path) { _ in }
    let shelf = ListFolder(state) { _, _ in }
    let path = folder.write("a.example", to: "list")
    #expect(try shelf.textNow(ListSource(.file(path)))?.details.names == 1)
    #expect(try shelf.textNow(ListSource(.url(url))) == nil)
    #expect(throws: ListFault.noFile("folder")) { try shelf.textNow(ListSource(.file(folder.path))) }
  }
}

extension ListOutcome {
  var changed: ListText? {
    guard case .changed(let text) = self else { return nil }
    return text
  }
}

extension Array {
  func chunks(of count: Int) -> [ArraySlice<Element>] {
    stride(from: 0, to: self.count, by: count).map { self[$0..<Swift.min($0 + count, self.count)] }
  }
}
