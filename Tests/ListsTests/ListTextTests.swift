// ListTextTests.swift -- what holds for every text: lines and pieces do not know each other.

import TestSupport
import Testing

@testable import Lists

@Suite struct `Any text of a list` {
  /// What lines are made of.
  private static let parts: [String] = [
    "||", "@@", "@@||", "^", "^|", "$", "$important", "$client=", "0.0.0.0 ", "127.0.0.1\t", ":: ", "::1 ", "192.0.2.1",
    "2001:db8::1", "/24", "server=/", "address=/", "nftset=/", "/", "domain:", "full:", "keyword:", "regexp:",
    "include:",
    "DOMAIN-SUFFIX,", "DOMAIN,", "DOMAIN-KEYWORD,", "IP-CIDR,", ",", "=", "+.", "*.", ".", "*", "- ", "-", "'", "\"",
    "#", " #",
    "##", "#@#", "!", "[", "payload:", " ", "\t", ":@cn", " @ads", " &x", "a", "b.example", "EXAMPLE", "com", "_",
    "xn--p1ai", "%",
    "\u{FEFF}", "\u{1}", "ü", "<", "a.example", "x.example", "1", "0.0.0.0",
  ]

  private static let fronts = [
    "", "||", "@@||", "0.0.0.0 ", "::1\t", "server=/", "domain:", "full:", "DOMAIN-SUFFIX,", "DOMAIN,", "- '", "+.",
    "*.", "=",
  ]
  private static let names = [
    "a.example", "b.a.example", "X.Example.", "com", "192.0.2.1", "a.*", "a..b", "_x.xn--p1ai",
  ]
  private static let backs = [
    "", "^", "^|", "^$important", "^$client=x", " b.example", "/1.1.1.1", ",P", "'", " # x", " @ads",
  ]

  private func text(_ random: inout SeededGenerator) -> [UInt8] {
    var text: [UInt8] = random.oneIn(5) ? Array("\u{FEFF}".utf8) : []
    for _ in 0..<Int.random(in: 0...40, using: &random) {
      switch Int.random(in: 0..<100, using: &random) {
      case 0: text += [UInt8](repeating: 0x78, count: Int.random(in: 4080...4110, using: &random))
      case 1: text += random.octets(3)
      case 2..<30:
        for _ in 0..<Int.random(in: 0..<6, using: &random) {
          text += Array(Self.parts.randomElement(using: &random)!.utf8)
        }
      default:
        for choice in [Self.fronts, Self.names, Self.backs] {
          text += Array(choice.randomElement(using: &random)!.utf8)
        }
      }
      if !random.oneIn(20) { text += Array((random.oneIn(4) ? "\r\n" : "\n").utf8) }
    }
    return text
  }

  @Test func `pieces of any size give the same names, counts and first lines as the whole text`() {
    var random = SeededGenerator(seed: testSeed)
    for round in 0..<500 {
      let text = text(&random)
      let whole = Reading(text)
      let cuts = (0..<8).map { _ in Int.random(in: 0...text.count, using: &random) }.sorted()
      #expect(Reading(text, cuts: cuts) == whole, "seed \(testSeed), round \(round)")
      if text.count < 2000 { #expect(Reading(text, cuts: Array(text.indices)) == whole, "\(testSeed), \(round)") }
    }
  }

  @Test func `a text has the names and the lines left out that its lines have, each read apart`() {
    var random = SeededGenerator(seed: testSeed)
    var total = 0
    for round in 0..<500 {
      let text = text(&random)
      let whole = Reading(text)
      var names: [Reading.Name] = []
      var counts = [Int](repeating: 0, count: LeftOutReason.allCases.count)
      var first = [LeftOut.Line?](repeating: nil, count: counts.count)
      let lines = text.split(separator: 0x0A, omittingEmptySubsequences: false)
      for (index, line) in lines.enumerated() {
        // A byte order mark is one in the first line only.
        let apart = Reading((index == 0 ? [] : [0x0A]) + Array(line))
        names += apart.names.map { Reading.Name(form: $0.form, text: $0.text, line: index + 1) }
        for reason in LeftOutReason.allCases where apart.leftOut[reason] > 0 {
          counts[Int(reason.rawValue)] += 1
          let text = apart.leftOut.first(reason)!.text
          first[Int(reason.rawValue)] = first[Int(reason.rawValue)] ?? LeftOut.Line(number: index + 1, text: text)
        }
        #expect(apart.leftOut.total <= 1)
      }
      #expect(whole.names == names, "seed \(testSeed), round \(round)")
      #expect(LeftOutReason.allCases.map { whole.leftOut[$0] } == counts, "seed \(testSeed), round \(round)")
      #expect(LeftOutReason.allCases.map { whole.leftOut.first($0) } == first, "seed \(testSeed), round \(round)")
      #expect(
        first.allSatisfy {
          $0.map { $0.text.utf8.count <= 80 && $0.text.utf8.allSatisfy { 0x20..<0x7F ~= $0 } } ?? true
        })
      #expect(whole.lines == lines.count - (lines.last!.isEmpty ? 1 : 0))
      #expect((whole.refusal == .binary) == text.contains(0))
      total += names.count
    }
    #expect(total > 500, "\(total)")
  }
}
