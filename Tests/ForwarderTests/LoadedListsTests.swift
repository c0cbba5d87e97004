// LoadedListsTests.swift -- when another table of lists is made, and what of the earlier one stays.

import Configuration
import Glibc
import Lists
import Persistence
import TestSupport
import Testing

@testable import Forwarder
@testable import ListStore

@Suite struct `The lists of a configuration` {
  private let files = TemporaryFolder()
  private let key = ListKey()
  private let uses = [ListUse(list: 0, blocks: false), ListUse(list: 1, blocks: false)]
  private let folder: ListFolder

  init() {
    files.write("a.example\nb.example", to: "first")
    files.write("c.example", to: "second")
    let state = StateFolder(path: files.path(of: "state")) { _ in }
    state.use()
    folder = ListFolder(state) { _, _ in }
  }

  private func place(_ name: String) -> ListSource.Place { .file(files.path(of: name)) }

  private func loaded(_ texts: ListTexts = ListTexts(), after earlier: LoadedLists = LoadedLists()) throws
    -> LoadedLists
  {
    let lists = ["first", "second"].map { "\"\(files.path(of: $0))\"" }.joined(separator: ", ")
    let text = "[[rule]]\nlists = [\(lists)]\nuse = \"localdns\"\n"
    let configuration = try Configuration.parse(text: text, fileName: "", environment: { _ in nil }).configuration
    return LoadedLists(configuration, uses, folder, key, keeping: texts, after: earlier)
  }

  /// The text of a file in a copy.
  private func copy(_ name: String, after present: ListText? = nil) throws -> ListText {
    let source = ListSource(place(name))
    return try #require(
      ListFile.copy(files.path(of: name), of: source, room: 100, after: present, to: folder).text)
  }

  @Test func `a copy of the same octets makes no table`() throws {
    let first = try loaded()
    var texts = first.texts
    texts.texts[place("first")] = try copy("first", after: texts[place("first")])
    #expect(texts[place("first")] !== first.texts[place("first")])
    #expect(try loaded(texts, after: first).table === first.table)
    files.write("d.example", to: "first")
    texts.texts[place("first")] = try copy("first")
    let second = try loaded(texts, after: first)
    #expect(second.table !== first.table && second.table?.nameCounts == [1, 1])
  }

  @Test func `the table stays while a list in it cannot be read, and takes no change of another list`() throws {
    let first = try loaded()
    #expect(first.table?.nameCounts == [2, 1] && first.unread.isEmpty)
    // A text in place, before it has a copy.
    truncate(files.path(of: "first"), 3)
    files.write("d.example\ne.example", to: "second")
    var texts = first.texts
    texts.texts[place("second")] = try copy("second")
    let second = try loaded(texts, after: first)
    #expect(second.table === first.table && second.unread == [place("first"): .changing])
    #expect(second.texts[place("second")]?.version == first.texts[place("second")]?.version)
    // The store has dropped the text, and the file is no list.
    files.write("<html>", to: "first")
    texts.texts[place("first")] = nil
    let third = try loaded(texts, after: second)
    #expect(third.table === first.table && third.unread == [place("first"): .refused(.markup)])
    files.write("a.example", to: "first")
    let fourth = try loaded(texts, after: third)
    #expect(fourth.table?.nameCounts == [1, 2] && fourth.unread.isEmpty)
  }

  @Test func `a list that could not be read is read again`() throws {
    var texts = folder.load([ListSource(place("first"))])
    truncate(files.path(of: "first"), 3)
    let first = try loaded(texts)
    #expect(first.table?.nameCounts == [0, 1])
    #expect(first.results[place("first")].map { (try? $0.get()) == nil } == true)
    // The same object.
    texts = first.texts
    files.write("a.example\nb.example", to: "first")
    #expect(try loaded(texts, after: first).table?.nameCounts == [2, 1])
  }
}
