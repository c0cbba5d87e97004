// HostileTests.swift -- hostile files are refused; none crashes the parser.

import Configuration
import TestSupport
import Testing

private let megabyte = 1 << 20

private let hostile: [(name: String, text: String)] = [
  ("a key of half a million parts", String(repeating: "a.", count: 500_000) + "a = 1"),
  ("a broken key of half a million parts", String(repeating: "a.", count: 500_000) + "="),
  ("quoted keys", String(repeating: "\"a\".", count: 200_000) + "a = 1"),
  ("a header of half a million parts", "[" + String(repeating: "a.", count: 500_000) + "a]"),
  ("open arrays", "a = " + String(repeating: "[", count: 1_000_000)),
  ("open tables", "a = " + String(repeating: "{a=", count: 300_000)),
  (
    "a key of many parts behind a long string",
    "t = { x = \"\"\"a\"\"\"\"\", " + String(repeating: "a.", count: 400_000) + "a = 1 }"
  ),
  (
    "a key of many parts behind a long literal",
    "t = { x = '''a''''', " + String(repeating: "a.", count: 400_000) + "a = 1 }"
  ),
  ("quotes", "x = \"\"\"" + String(repeating: "\"", count: 1_000_000)),
  ("a header that is a point", "[.a]"),
  ("a header behind a byte order mark", "\u{FEFF}[=]"),
  ("a header of three brackets", "a = 1\n \t[[[a]]]"),
  ("a header behind an array", "a = [\n1\n]\n[\n"),
  ("a header behind a comment", "# [a]\r\n[ #"),
  ("a date before a digit", "a = 2026-01-01 3\n"),
  ("a date before a letter", "a = 2026-01-01TA7:32:00"),
  ("a strange date before a digit", "a = [ 2_02a-0é-01 3]"),
  ("a closing brace in an array", "a = [1, }"),
  ("a line end of another alphabet in an array", "a = [\u{85}1]"),
  ("a vertical tab", "a = [\u{B}1]"),
  ("a NUL", "state_directory = \"/a\u{0}b\""),
  ("a NUL in a comment", "# \u{0}"),
  ("an escaped NUL", "state_directory = \"/a\\u0000b\""),
  ("a long escaped NUL in a key", "\"a\\U00000000b\" = 1"),
  ("a huge integer", "listen.workers = 9223372036854775808"),
  ("a long integer", "listen.workers = " + String(repeating: "9", count: 100_000)),
  ("an infinite number", "refresh.at = -inf"),
  ("a thousand providers", String(repeating: "[[provider]]\n", count: 1000)),
  ("ten thousand keys", (0..<10_000).map { "key\($0) = 1\n" }.joined()),
  ("a key of a megabyte", String(repeating: "x", count: megabyte - 10) + " = 1"),
  ("more than a megabyte", String(repeating: "#", count: megabyte + 1)),
  ("a byte order mark inside", "a = \u{FEFF}1"),
  ("a carriage return", "a = 1\rb = 2"),
]

@Test(arguments: hostile.map(\.name))
func `the messages about a hostile text are single lines of limited length`(name: String) throws {
  let text = try #require(hostile.first { $0.name == name }).text
  let found = mistakes(text)
  #expect(!found.isEmpty)
  #expect(found.allSatisfy { isOneLine($0) && $0.utf8.count < 2000 })
  #expect(found.count <= 1001)
}

@Test(arguments: [[0xFF, 0xFE], [0x61, 0x3D, 0x22, 0xC3, 0x28, 0x22], [0xED, 0xA0, 0x80]] as [[UInt8]])
func `a file that is not UTF-8 is refused`(octets: [UInt8]) throws {
  try withFile(octets) { _, path in
    _ = #expect(throws: Mistakes.self) { try Configuration.load(path: path, environment: { _ in nil }) }
  }
}

@Test(arguments: [(1, true), (2, false)])
func `a byte-order mark before a configuration is skipped, and nothing else`(count: Int, isRead: Bool) throws {
  let marks = [[UInt8]](repeating: [0xEF, 0xBB, 0xBF], count: count).flatMap { $0 }
  let text = Array("[[provider]]\nkind = \"json\"\nurl = \"https://dns.google/resolve\"\n".utf8)
  try withFile(marks + text) { _, path in
    let loaded = try? Configuration.load(path: path, environment: { _ in nil })
    #expect((loaded != nil) == isRead)
  }
}

@Test(arguments: ["/nonexistent.toml", "/tmp", "/dev/zero", "a\nb"])
func `an unreadable file is one mistake`(path: String) throws {
  let failure = #expect(throws: Mistakes.self) { try Configuration.load(path: path, environment: { _ in nil }) }
  #expect(failure?.mistakes.count == 1)
  #expect(isOneLine(failure?.description ?? "\n"))
}

@Test func `the message about a file that is too large has the limit`() throws {
  try withFile([UInt8](repeating: 0x23, count: Configuration.maxFileSize + 1)) { _, path in
    let failure = #expect(throws: Mistakes.self) { try Configuration.load(path: path, environment: { _ in nil }) }
    #expect(failure?.description == "\(path): is larger than 1 MiB; expected a TOML file")
  }
}

// In a process of its own, whose memory no other test uses.
@Test func `a file that is read again and again takes no memory`() async {
  await #expect(processExitsWith: .success) {
    let names = (0..<5000).map { "\"name\($0).below.a-long-domain.example\"" }.joined(separator: ", ")
    let text = "[[rule]]\nnames = [\(names)]\nuse = \"local\"\n"
    _ = try? Configuration.parse(text: text, fileName: "a.toml")
    let before = residentOctets()
    for _ in 0..<40 { _ = try? Configuration.parse(text: text, fileName: "a.toml") }
    #expect(residentOctets() - before < 24 << 20)
  }
}

@Test func `each mistake in a mutated sample file is one line`() throws {
  var generator = SeededGenerator(seed: testSeed)
  let original = Array(try sampleText("httpdnsd.toml").utf8)
  for _ in 0..<2000 {
    var octets = original
    for _ in 0..<Int.random(in: 1...4, using: &generator) { mutate(&octets, &generator) }
    let text = String(decoding: octets, as: UTF8.self)
    for line in messages(text) where !isOneLine(line) {
      Issue.record("seed \(testSeed): \(line.debugDescription)")
    }
  }
}

@Test func `each mistake in a random text of TOML tokens is one line`() {
  var generator = SeededGenerator(seed: testSeed)
  for _ in 0..<5000 {
    let opening = Bool.random(using: &generator) ? "k = " : ""
    let count = Int.random(in: 1...14, using: &generator)
    let text = opening + (0..<count).map { _ in alphabet.randomElement(using: &generator)! }.joined()
    for line in mistakes(text) where !isOneLine(line) {
      Issue.record("seed \(testSeed): \(text.debugDescription) → \(line.debugDescription)")
    }
  }
}

private let alphabet = [
  "[", "]", "{", "}", "=", ",", ".", "#", "\n", " ", "\t", "\r\n", "\"", "'", "\"\"\"", "\'\'\'", "\\", "a", "b-1", "_",
  "0", "1", "2026", "-01-01", "-", ":", "T", "Z", "07:32:00", "+", "inf", "nan", "true", "0x", "0b1", "0o7", "e5", "p3",
  "99999999999999999999", "u00e9", "é", "\u{A0}", "\u{FEFF}", "\u{2028}", "\u{85}",
]

private let pieces = [
  "\"", "'", "\"\"\"", "[", "]", "[[", "]]", "{", "}", "=", ".", ",", "#", "\n", "\r\n", "\u{0}", "\u{2028}", "\\u0000",
  "\\n", "true", "-1", "1e400", "nan", "99999999999999999999", "2026-01-01", "[[provider]]\n", "[[rule]]\n",
  "kind = \"doh\"\n",
  "names = [\"\\r\\n\\u2028\"]\n", "é", "😀", "://", "@", "*.",
]

private func mutate(_ octets: inout [UInt8], _ generator: inout SeededGenerator) {
  let start = Int.random(in: 0..<octets.count, using: &generator)
  let end = min(octets.count, start + Int.random(in: 1...40, using: &generator))
  switch Int.random(in: 0..<5, using: &generator) {
  case 0: octets.removeSubrange(start..<end)
  case 1: octets.insert(contentsOf: octets[start..<end], at: Int.random(in: 0..<octets.count, using: &generator))
  case 2: octets[start] = UInt8.random(in: 0...255, using: &generator)
  case 3: octets.replaceSubrange(start..<end, with: pieces.randomElement(using: &generator)!.utf8)
  default: octets.insert(contentsOf: pieces.randomElement(using: &generator)!.utf8, at: start)
  }
  if octets.isEmpty { octets = [0x61] }
}

private func isOneLine(_ text: String) -> Bool {
  !text.unicodeScalars.contains { $0.properties.generalCategory == .control || $0 == "\u{2028}" || $0 == "\u{2029}" }
}
