// ListPreparationTests.swift -- the lists of the next configuration: when their table is made again, and what it has of each.

import Configuration
import DNSWire
import EventLoop
import Glibc
import ListStore
import Lists
import Persistence
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport

@Suite struct `The lists of the next configuration` {
  private let folder = TemporaryFolder()
  private let surroundings = Preparation.Surroundings.quiet

  private func configuration(_ rules: String) throws -> Configuration {
    try Configuration.parse(
      text: "\(rules)\n[names]\nhosts_file = \"\"\n", fileName: "", environment: { _ in nil }
    ).configuration
  }

  private func rule(_ lists: String..., use: String = "nxdomain", more: String = "") -> String {
    let paths = lists.map { "\"\(folder.path(of: $0))\"" }.joined(separator: ", ")
    return "[[rule]]\nlists = [\(paths)]\nuse = \"\(use)\"\n\(more)\n"
  }

  /// The next preparation, with the texts that the store has.
  private func preparation(_ rules: String, after old: Preparation? = nil) throws -> Preparation {
    try Preparation(
      configuration(rules), old?.numbers ?? ServiceNumbers(), surroundings,
      lists: old.map { ($0.plan.lists.texts, $0.plan.lists) } ?? (ListTexts(), LoadedLists()))
  }

  private func isBlocked(_ text: String, _ preparation: Preparation) -> Bool {
    let decision = name(text).octets.withUnsafeBufferPointer {
      preparation.plan.table.find($0.baseAddress!, length: $0.count, type: 1).decision
    }
    return if case .route = decision { false } else { true }
  }

  /// What the table has of a list.
  private func loaded(_ file: String, _ preparation: Preparation) throws -> ListLoaded {
    try #require(preparation.plan.lists.results[place(file)]).get()
  }

  private func place(_ file: String) -> ListSource.Place { .file(folder.path(of: file)) }

  @Test func `the same texts keep their table, also for other rules and on another network`() throws {
    folder.write("a.example\n", to: "one")
    let first = try preparation(rule("one"))
    let table = try #require(first.plan.lists.table)
    let second = try preparation(rule("one") + "[[rule]]\nnames = [\"b.example\"]\nuse = \"refused\"\n", after: first)
    #expect(second.plan.lists.table === table && isBlocked("b.example", second))
    // As a change of network makes it.
    let third = try Preparation(
      second.configuration, second.numbers, surroundings, hostsOf: second, lists: second.plan.lists.texts)
    #expect(third.plan.lists.table === table && isBlocked("www.a.example", third))
    #expect(third.plan.lists.results[place("one")] == first.plan.lists.results[place("one")])
  }

  @Test func `a file is read again only where its text is not handed over`() throws {
    folder.write("a.example\n", to: "one")
    let first = try preparation(rule("one"))
    folder.write("b.example\n", to: "fresh")
    folder.move("fresh", to: "one")
    let same = try preparation(rule("one"), after: first)
    #expect(isBlocked("a.example", same) && !isBlocked("b.example", same))
    let read = try Preparation(
      configuration(rule("one")), first.numbers, surroundings, lists: (ListTexts(), first.plan.lists))
    #expect(!isBlocked("a.example", read) && isBlocked("b.example", read))
    let result = try loaded("one", read)
    #expect(result.names == 1 && result.added == 1 && result.removed == 1)
  }

  @Test func `another use of a list takes another table: public suffixes block nothing`() throws {
    folder.write("com\na.example\n", to: "one")
    let first = try preparation(rule("one"))
    #expect(!isBlocked("www.com", first) && isBlocked("a.example", first))
    let blocked = try loaded("one", first)
    #expect(blocked.names == 1 && blocked.leftOut[.publicSuffix] == 1)
    let second = try preparation(rule("one", use: "localdns"), after: first)
    #expect(second.plan.lists.table !== first.plan.lists.table)
    let routed = try loaded("one", second)
    #expect(routed.names == 2 && routed.leftOut.total == 0)
  }

  @Test func `a list that is added counts its names as new, one that is removed leaves the others alone`() throws {
    folder.write("a.example\nb.example\n", to: "one")
    folder.write("b.example\nc.example\n", to: "two")
    let first = try preparation(rule("one"))
    let second = try preparation(rule("one", "two"), after: first)
    let (one, two) = (try loaded("one", second), try loaded("two", second))
    #expect((one.names, one.added, one.removed) == (2, 0, 0) && (two.names, two.added, two.removed) == (2, 2, 0))
    let third = try preparation(rule("two"), after: second)
    #expect(!isBlocked("a.example", third) && isBlocked("b.example", third) && isBlocked("c.example", third))
    let kept = try loaded("two", third)
    #expect((kept.names, kept.added, kept.removed) == (2, 0, 0))
    #expect(try preparation("", after: third).plan.lists.table == nil)
  }

  @Test func `a list without a text has a fault and no names, and the others have theirs`() throws {
    folder.write("a.example\n", to: "one")
    folder.write("<html>\n", to: "page")
    let first = try preparation(rule("one", "page", "missing"))
    let lists = first.plan.lists
    #expect(isBlocked("a.example", first))
    #expect(lists.texts.faults[place("page")] == .refused(.markup))
    #expect(lists.texts.faults[place("missing")] == .unreadable(ENOENT))
    #expect(lists.results.count == 1 && lists.table != nil)
  }
}
