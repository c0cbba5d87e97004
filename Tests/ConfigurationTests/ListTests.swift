// ListTests.swift -- `lists` of rules and `[[list]]`: what is read, what is refused, what is warned of.

import Configuration
import Testing

private let rule = "[[rule]]\nuse = \"nodata\"\n"

@Test func `lists that would be shown alike have numbers`() throws {
  let url = "https://lists.example/cn.txt"
  let text = "[[rule]]\nlists = [\"\(url)?key=a\", \"\(url)?key=b\", \"\(url)\"]\nuse = \"default\"\n"
  let read = try Configuration.parse(text: text, fileName: "", environment: { _ in nil }).configuration
  #expect(read.usedLists().lists.map(\.name) == [url, "\(url) (2)", "\(url) (3)"])
}

@Test func `a rule names paths, URLs and lists`() throws {
  let read = try configuration(
    """
    [[list]]
    name = "office"
    url = "https://user:pass@lists.example:8443/split.txt?token=secret"
    interval = "12h"
    max_size = "1MiB"
    proxy = "socks5h://192.0.2.1:1080"
    [[list]]
    name = "home"
    file = "/dev/null"
    [[rule]]
    lists = ["office", "/dev/null", "https://lists.example/cn.txt"]
    use = "alidns"
    [[rule]]
    names = ["example"]
    lists = ["https://lists.example/cn.txt", "home", "office"]
    use = "nxdomain"
    """)
  let (lists, ofRules) = read.usedLists()
  #expect(lists.map(\.name) == ["office", "/dev/null", "https://lists.example/cn.txt", "home"])
  #expect(ofRules == [[0, 1, 2], [2, 3, 0]])
  #expect(lists[0].maxSize == 1 << 20)
  #expect(lists[0].interval == .seconds(43_200))
  #expect(lists[2].interval == .seconds(86_400))
  let url = try #require(lists[0].url)
  #expect(url.description == "https://lists.example:8443/split.txt")
  #expect(url.text.reveal == Array("https://user:pass@lists.example:8443/split.txt?token=secret".utf8))
}

@Test(arguments: [
  (rule, "test.toml: rule[#1].names: missing; expected an array of at least 1, each element \"example.com\""),
  (rule + "lists = []", "test.toml: rule[#1].lists: an empty array is not enough; expected names or lists"),
  (
    rule + "lists = [\"a/b\"]",
    "test.toml: rule[#1].lists[#1]: \"a/b\" is not valid; expected an absolute path, an http(s)"
  ),
  (rule + "lists = [\"ftp://a/b\"]", "test.toml: rule[#1].lists[#1]: \"ftp://a/b\" is not valid; expected an absolute"),
  (
    rule + "lists = [\"none\"]",
    "test.toml: rule[#1].lists: an array has \"none\", which is no [[list]]; expected absolute"
  ),
  (rule + "lists = [\"/a\", \"/a\"]", "test.toml: rule[#1].lists[#2]: \"/a\" is listed twice; remove one"),
  ("[[list]]\nfile = \"/a\"", "test.toml: list[#1].name: missing; expected 1 to 63 letters"),
  ("[[list]]\nname = \"a\"", "test.toml: list[\"a\"].url: missing; expected file or url"),
  (
    "[[list]]\nname = \"a\"\nfile = \"/a\"\nurl = \"https://a/b\"",
    "test.toml: list[\"a\"].file: not possible with url; remove"
  ),
  (
    "[[list]]\nname = \"a\"\nfile = \"/a\"\ninterval = \"1d\"",
    "test.toml: list[\"a\"].interval: only valid with url; remove"
  ),
  (
    "[[list]]\nname = \"a\"\nurl = \"https://a/b\"\ninterval = \"9m\"",
    "test.toml: list[\"a\"].interval: \"9m\" is not a duration from"
  ),
  (
    "[[list]]\nname = \"a\"\nfile = \"/a\"\nmax_size = \"257MiB\"",
    "test.toml: list[\"a\"].max_size: \"257MiB\" is not a size"
  ),
  (
    "[[list]]\nname = \"a\"\nurl = \"https://a/b\"\nproxy = \"http://proxy.example:80\"",
    "test.toml: list[\"a\"].proxy: \"http://proxy.example:80\" has a name as its host; expected an address"
  ),
  (
    "[[list]]\nname = \"a\"\nfile = \"/a\"\n[[list]]\nname = \"a\"\nfile = \"/b\"",
    "test.toml: list[\"a\"].name: \"a\" is the name of an earlier list; expected another name"
  ),
])
func `a list that cannot be meant is refused`(text: String, line: String) {
  #expect(mistakes(text).contains { $0.hasPrefix(line) }, "\(mistakes(text))")
}

@Test func `all rules together have at most 64 lists`() {
  func rules(_ count: Int) -> String {
    let paths = (0..<count).map { "\"/dev/null/\($0)\"" }.joined(separator: ", ")
    return rule + "lists = [\(paths)]\n"
  }
  #expect(mistakes(rules(64)) == [])
  #expect(mistakes(rules(60) + rules(5)).map { $0.prefix(36) } == ["test.toml: rule[#2].lists: an array "])
}

@Test(arguments: [
  (
    rule + "lists = [\"http://lists.example/a?token=x\"]",
    "rule[#1].lists: http://lists.example/a: everyone on the path"
  ),
  (rule + "lists = [\"/nowhere/list\"]", "rule[#1].lists: /nowhere/list: no such file"),
  (rule + "lists = [\"/\"]", "rule[#1].lists: /: is a directory"),
  ("[[list]]\nname = \"a\"\nfile = \"/dev/null\"", "list[\"a\"]: no rule uses it"),
])
func `a list that may not be meant is warned of`(text: String, line: String) {
  #expect(warnings(text).contains { $0.hasPrefix("test.toml: " + line) }, "\(warnings(text))")
}

@Test(arguments: [rule + "lists = [\"http://127.0.0.1/a\"]", rule + "lists = [\"https://lists.example/a\"]"])
func `a list that no one else can change needs no warning`(text: String) {
  #expect(messages(text) == [])
}
