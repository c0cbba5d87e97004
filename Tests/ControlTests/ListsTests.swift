// ListsTests.swift -- what `httpdnsd lists` and `httpdnsd sets` ask for and print.

import Configuration
import DNSWire
import EventLoop
import FirewallSets
import Foundation
import Lists
import TestSupport
import Testing

@testable import Control
@testable import FirewallSets
@testable import Forwarder
@testable import ListStore

@Suite struct ListsTests {
  private static let file = ListSource(.file("/etc/china.txt"))
  private static let url = ListSource(.url("https://user:secret@lists.example/ads?token=secret"), name: "office")

  /// The state of a list that was read or fetched a hundred seconds ago, with a text and a table of it.
  private static func loaded(
    _ source: ListSource, _ lines: String, fault: ListFault? = nil, due: Int? = nil
  ) throws -> ListReport {
    let entry = ListEntry(source) { _, _ in }
    let text = ListText(Array(lines.utf8), ListText.Details(octets: lines.utf8.count, names: 1))
    let names = try text.names(ListKey(), blocks: true)
    entry.take(.changed(text), at: 900)
    entry.take(
      .success(ListLoaded(names: 12_345, leftOut: names.leftOut, added: 0, removed: 0)), version: text.version)
    if let fault { entry.take(.fault(fault), at: 950) }
    entry.due = due.map { BootInstant(nanoseconds: Int64($0) * 1_000_000_000) }
    return ListReport(entry, now: BootInstant(nanoseconds: 0), wallTime: 1_000)
  }

  private static let waiting = ListReport(
    ListEntry(ListSource(.url("https://lists.example/cn"))) { _, _ in }, now: BootInstant(nanoseconds: 0),
    wallTime: 1_000)

  private func object(_ json: String) throws -> [[String: Any]] {
    let object = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
    return try #require(object.values.first as? [[String: Any]])
  }

  @Test func `lists are a table, with the reasons of failures below it`() throws {
    let reports = [
      try ListsTests.loaded(ListsTests.file, "a.example\nregexp:^a\nregexp:^b\ncom\n"), ListsTests.waiting,
      try ListsTests.loaded(ListsTests.url, "a.example\n", fault: .failed("status 500"), due: 7_200),
    ]
    let text = ListsText(reports: reports)
    #expect(
      text.text == """
        list                      names  left out  age         next fetch  state
        /etc/china.txt            12345  3         -           -           loaded, in memory
        https://lists.example/cn  0      0         -           -           waiting
        office                    12345  0         1 min 40 s  2 h         failing, in memory

        office: status 500

        """)
    #expect(!text.isIncomplete)
    #expect(ListsText(reports: []).text == "no rule uses a list\n")
  }

  @Test func `the JSON has the numbers, and null for what is not known`() throws {
    let objects = try object(
      ListsText(reports: [
        try ListsTests.loaded(ListsTests.url, "a.example\nregexp:^a\n", fault: .failed("status 500"), due: 7_200),
        ListsTests.waiting,
      ]).json)
    #expect(objects[0]["name"] as? String == "office" && objects[0]["names"] as? Int == 12_345)
    #expect(objects[0]["left_out"] as? [String: Int] == ["regular expression": 1])
    #expect(objects[0]["age_seconds"] as? Double == 100 && objects[0]["next_fetch_seconds"] as? Double == 7_200)
    #expect(objects[0]["state"] as? String == "failing" && objects[0]["reason"] as? String == "status 500")
    #expect(objects[0]["in_memory"] as? Bool == true)
    #expect(objects[1]["state"] as? String == "waiting" && objects[1]["reason"] is String == false)
    #expect(objects[1]["age_seconds"] is Double == false && objects[1]["in_memory"] as? Bool == false)
    #expect(try object(ListsText(reports: []).json).isEmpty)
  }

  @Test func `updates are lines if all have succeeded, and reasons otherwise`() throws {
    let changed = ListUpdate(name: "office", result: .changed(names: 1))
    let unchanged = ListUpdate(name: "/etc/china.txt", result: .unchanged)
    let failed = ListUpdate(name: "https://lists.example/cn", result: .fault(.failed("status 500")))
    let all = ListUpdatesText(updates: [changed, unchanged], name: nil)
    #expect(all.status == 200 && all.text == "list office: 1 name in use\nlist /etc/china.txt: unchanged\n")
    let objects = try object(all.json)
    #expect(objects.map { $0["changed"] as? Bool } == [true, false] && objects[0]["names"] as? Int == 1)
    let some = ListUpdatesText(updates: [changed, failed, failed], name: nil)
    let line = "list https://lists.example/cn: status 500"
    #expect(some.status == 502 && some.text == "\(line); \(line)\n")
    #expect(ListUpdatesText(updates: [], name: "office").status == 404)
    #expect(ListUpdatesText(updates: [], name: "office").text == "no list is called office\n")
    #expect(ListUpdatesText(updates: [], name: nil).text == "no rule uses a list\n")
    // A client shows one line of at most 255 octets of ASCII.
    let long = ListUpdate(name: "/列\(String(repeating: "n", count: 100))", result: .fault(.unreadable(2)))
    let many = ListUpdatesText(updates: [long, failed, failed, failed], name: nil).text
    #expect(many.hasPrefix("list /?nnn") && many.hasSuffix("status 500; 1 more list failed\n") && many.utf8.count < 256)
  }

  @Test func `hits have list, line and rules`() throws {
    let hits = [
      ListHit(
        list: "office", finding: ListFinding(line: 7, text: "||a.example^", isException: false),
        rules: ["rule 1", "rule 2 \"ads\""]),
      ListHit(
        list: "/etc/allow", finding: ListFinding(line: 9, text: "@@||\"a\".example^", isException: true),
        rules: ["rule 3"]),
    ]
    let name = try #require(DomainName(text: "a.example"))
    let text = ListHitsText(name: name, hits: hits)
    #expect(
      text.text == """
        office: line 7: ||a.example^; rule 1, rule 2 "ads"
        /etc/allow: line 9, which takes it out: @@||"a".example^; rule 3

        """)
    #expect(!text.isIncomplete)
    let objects = try object(text.json)
    #expect(objects[1]["text"] as? String == "@@||\"a\".example^" && objects[1]["exception"] as? Bool == true)
    #expect(objects[0]["line"] as? Int == 7 && objects[0]["rules"] as? [String] == ["rule 1", "rule 2 \"ads\""])
    let none = ListHitsText(name: name, hits: [])
    #expect(none.text == "no list has a.example.\n" && none.isIncomplete)
  }

  @Test func `requests reach the actions with their names`() throws {
    var answers = Answers()
    answers.lists = [ListsTests.waiting]
    answers.updates = [ListUpdate(name: "office", result: .unchanged)]
    let scene = try ControlScene(answers)
    #expect(try scene.client.lists(.text).content.contains("https://lists.example/cn"))
    #expect(try scene.client.updateLists(nil, .text).content == "list office: unchanged\n")
    _ = try scene.client.updateLists("office", .json)
    let none = try scene.client.findInLists("www.a.example", .text)
    #expect(none.content == "no list has www.a.example.\n" && none.isIncomplete)
    _ = try scene.client.sets(refilled: false, .text)
    _ = try scene.client.sets(refilled: true, .json)
    #expect(
      scene.journal.commands.withLock { $0 } == [
        "update all", "update office", "find www.a.example.", "sets", "refill",
      ])
  }

  @Test func `a failed update and a name that does not exist are refused with their reason`() throws {
    var answers = Answers()
    answers.updates = [ListUpdate(name: "office", result: .fault(.refused(.markup)))]
    let scene = try ControlScene(answers)
    #expect { try scene.client.updateLists("office", .text) } throws: {
      "\($0)".contains("list office: it is a web page")
    }
    #expect { try scene.client.findInLists("a..b", .text) } throws: { "\($0)".contains("`find` needs a domain name") }
    #expect(scene.journal.commands.withLock { $0 } == ["update office"])
  }

  private static func status(_ name: String, _ key: SetDescription.Key?, _ failure: SetFailure? = nil) throws
    -> SetStatus
  {
    SetStatus(
      name: try FirewallSetName(text: name),
      description: key.map { SetDescription($0, hasTimeouts: true, isInterval: false) }, added: 10, failed: 2, late: 1,
      failure: failure)
  }

  @Test func `sets are a table, and incomplete if one of them gets no addresses`() throws {
    let good = [try ListsTests.status("inet#fw#four", .ipv4), try ListsTests.status("ip6#fw#new", nil)]
    let text = SetsText(statuses: good)
    #expect(
      text.text == """
        set           type       added  failed  late  state
        inet#fw#four  ipv4_addr  10     2       1     ok
        ip6#fw#new    -          10     2       1     waiting

        """)
    #expect(!text.isIncomplete)
    let bad = SetsText(statuses: good + [try ListsTests.status("ip#fw#gone", nil, .missing)])
    #expect(bad.isIncomplete && bad.text.contains("ip#fw#gone    -          10     2       1     missing\n"))
    #expect(SetsText(statuses: []).text == "no rule has sets\n" && !SetsText(statuses: []).isIncomplete)
    let objects = try object(bad.json)
    #expect(objects.map { $0["state"] as? String } == ["ok", "waiting", "missing"])
    #expect(objects[0]["type"] as? String == "ipv4_addr" && objects[0]["timeouts"] as? Bool == true)
    #expect(objects[1]["type"] is String == false && objects[0]["late"] as? Int == 1)
  }
}
