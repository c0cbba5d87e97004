// ListReaderTests.swift -- how a text is cut into lines, what is shown of those left out, and which texts are refused.

import Testing

@testable import Lists

@Suite struct `The reader of a list` {
  private func x(_ count: Int) -> String { String(repeating: "x", count: count) }

  @Test(arguments: ["\n", "\r\n"]) func `lines end with a newline, or a carriage return and a newline`(end: String) {
    let lines = ["a.example", "", "full:b.example", "@@||c.example^", "0.0.0.0 d.example e.example", "# f", "*"]
    let reading = Reading(lines.joined(separator: end))
    #expect(
      reading.names.map(\.description) == [
        "1: subtree a.example", "3: alone b.example", "4: exception c.example", "5: alone d.example",
        "5: alone e.example",
      ])
    #expect(reading.lines == 7 && reading.leftOut.first(.wildcard) == LeftOut.Line(number: 7, text: "*"))
    #expect(Reading(lines.joined(separator: end) + end) == reading)
  }

  @Test func `a byte order mark in front is ignored, and only there`() {
    #expect(Reading("\u{FEFF}a.example\n\u{FEFF}b.example").text == "subtree a.example")
    #expect(Reading("\u{FEFF}\n# x\n\u{FEFF}").refusal == .empty)
    #expect(Reading("\u{FEFF}! x\na.example").leftOut == LeftOut())
  }

  @Test(arguments: ["", "\r", "\n", "\r\n"]) func `a line of 4,096 octets is read, and one of 4,097 is not`(end: String)
  {
    let blanks = String(repeating: " ", count: 4096 - 9)
    for mark in ["", "\u{FEFF}"] {
      for cuts in [[], [1], [4000], [4096], [4097], [4095, 4096]] {
        let fits = Reading(Array((mark + "a.example" + blanks + end).utf8), cuts: cuts)
        #expect(fits.text == "subtree a.example" && fits.leftOut == LeftOut(), "\(cuts)")
        let long = Reading(Array((mark + " a.example" + blanks + end).utf8), cuts: cuts)
        #expect(long.text == "" && long.reason == .tooLong, "\(cuts)")
        #expect(long.leftOut.first(.tooLong) == LeftOut.Line(number: 1, text: "a.example"))
      }
    }
  }

  @Test func `the lines around one that is too long are read, whatever its length`() {
    for count in [4097, 4100, 4101, 4102, 8192, 100_000] {
      let octets = Array("a.example\n\(x(count))\nb.example".utf8)
      for cuts in [[], [10], [11, 4000, 4108, 4111], [octets.count - 10], [octets.count - 9]] {
        let reading = Reading(octets, cuts: cuts)
        #expect(reading.text == "subtree a.example, subtree b.example")
        #expect(reading.names.last?.line == 3 && reading.leftOut[.tooLong] == 1 && reading.leftOut.total == 1)
        #expect(reading.leftOut.first(.tooLong) == LeftOut.Line(number: 2, text: x(77) + "..."))
      }
    }
  }

  @Test(arguments: [
    ("/x", "/x"), (" \t/x\t ", "/x"), ("/\u{1}\u{1F}\u{7F}", "/\\x01\\x1f\\x7f"), ("/ü", "/\\xc3\\xbc"),
    ("/\u{1B}[2J", "/\\x1b[2J"), ("/\\x", "/\\x"),
    ("/" + String(repeating: "x", count: 79), "/" + String(repeating: "x", count: 79)),
    ("/" + String(repeating: "x", count: 80), "/" + String(repeating: "x", count: 76) + "..."),
    ("/" + String(repeating: "\u{1}", count: 80), "/" + String(repeating: "\\x01", count: 19) + "..."),
    ("/" + String(repeating: "x", count: 75) + "\u{1}", "/" + String(repeating: "x", count: 75) + "\\x01"),
    ("/" + String(repeating: "x", count: 76) + "\u{1}", "/" + String(repeating: "x", count: 76) + "..."),
  ])
  func `at most 80 printable characters are shown of a line`(line: String, shown: String) {
    let reading = Reading("\(line)\r\n/y\n")
    #expect(reading.leftOut.first(.noName) == LeftOut.Line(number: 1, text: shown))
    #expect(reading.leftOut[.noName] == 2)
  }

  @Test func `each reason has its own count and first line`() {
    let reading = Reading("*\n\n/x/\n*.*\n/y/\nkeyword:x\n/z/\na.example")
    #expect(
      reading.leftOut[.wildcard] == 2 && reading.leftOut[.regularExpression] == 3 && reading.leftOut[.keyword] == 1)
    #expect(reading.leftOut.total == 6)
    #expect(reading.leftOut.first(.regularExpression) == LeftOut.Line(number: 3, text: "/x/"))
    #expect(reading.leftOut.first(.keyword) == LeftOut.Line(number: 6, text: "keyword:x"))
    #expect(reading.leftOut.first(.noName) == nil)
  }

  @Test(arguments: [
    ("", ListRefusal.empty), ("\n", .empty), ("# x\n", .empty), ("*\n/\n", .empty), ("\u{FEFF}", .empty),
    ("<html>", .markup), ("\u{FEFF}<html>", .markup), (" \r\n\t<!DOCTYPE html>\na.example\n", .markup),
    ("a.example\n\0", .binary), ("\0", .binary), ("a\0.example\nb.example\n", .binary), ("<html>\0", .binary),
    ("<" + String(repeating: "x", count: 5000) + "\na.example", .markup),
  ])
  func `a web page, a text with a zero octet, and a text without a usable line are refused`(
    text: String, refusal: ListRefusal
  ) {
    #expect(Reading(text).refusal == refusal)
    let octets = Array(text.utf8)
    #expect(Reading(octets, cuts: Array(octets.indices)).refusal == refusal)
  }

  @Test(arguments: ["a.example\n<html>", "# x\n<html>\na.example", "@@||a.example^"])
  func `a text with a usable line is not refused`(text: String) { #expect(Reading(text).refusal == nil) }
}
