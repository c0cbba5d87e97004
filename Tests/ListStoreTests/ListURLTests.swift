// ListURLTests.swift -- URLs of lists and where redirects lead.

import DNSWire
import Testing

@testable import ListStore

@Suite struct `The URL of a list` {
  @Test func `a URL is taken apart`() throws {
    let whole = try #require(ListURL("HTTPS://us%65r:p@ss@Lists.Example:8443/a/b.txt?x=1&y#part"))
    #expect(whole.scheme == .https && whole.host == "lists.example" && whole.port == 8443)
    #expect(whole.target == "/a/b.txt?x=1&y" && whole.user == Array("user:p@ss".utf8))
    #expect(whole.shown == "https://lists.example:8443/a/b.txt")
    let short = try #require(ListURL("http://[2001:db8::1]?x"))
    #expect(short.host == "2001:db8::1" && short.port == 80 && short.target == "/?x")
    #expect(short.shown == "http://[2001:db8::1]/")
    #expect(ListURL("https://lists.example:/ä b")?.target == "/%C3%A4%20b")
  }

  @Test(arguments: [
    "", "lists.example", "ftp://lists.example/", "https://", "https:///path", "https://host:0/", "https://host:65536/",
    "https://host:+1/", "https://[::1/", "https://[::1]x/", "https:lists.example", "://x",
  ])
  func `what cannot be fetched is no URL`(text: String) { #expect(ListURL(text) == nil) }

  @Test(arguments: [
    ("https://other.example/x", "https://other.example/x"), ("//other.example/x?y", "https://other.example/x"),
    ("/x/../y", "https://lists.example/y"), ("c.txt", "https://lists.example/a/c.txt"),
    ("./c.txt?../d", "https://lists.example/a/c.txt"), ("../../c", "https://lists.example/c"),
    ("..", "https://lists.example/"), ("?q", "https://lists.example/a/b"), ("", "https://lists.example/a/b"),
    ("#x", "https://lists.example/a/b"), ("c:8/d", ""), ("javascript:x", ""), ("ftp://x/", ""),
    ("c/d:e", "https://lists.example/a/c/d:e"),
  ])
  func `a redirect is followed relative to where it was found`(location: String, shown: String) throws {
    let base = try #require(ListURL("https://lists.example/a/b?c"))
    #expect(base.following(location)?.shown ?? "" == shown)
  }

  @Test func `a URL shows no secret, however it is printed`() {
    let place = ListSource.Place.url("https://user:secret@lists.example/cn.txt?key=secret")
    let source = ListSource(place)
    for text in ["\(place)", "\(source)", String(reflecting: place), String(reflecting: source)] {
      #expect(!text.contains("secret") && text.contains("https://lists.example/cn.txt"))
    }
    #expect(ListSource.Place.url("https://user:secret@").description == "a URL that cannot be fetched")
  }

  @Test func `numbers have commas, and the texts of strangers are short and printable`() {
    #expect([0, 999, 1000, 110_769, 4_000_000].map(grouped) == ["0", "999", "1,000", "110,769", "4,000,000"])
    #expect(shortened("a\nb\u{1B}[31mä") == "a?b?[31m?")
    #expect(shortened(String(repeating: "x", count: 100)).count == 80)
    #expect(
      ["", "f", "fo", "foo", "foob", "user:p@ss"].map { Base64.encode(Array($0.utf8)) }
        == ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "dXNlcjpwQHNz"])
  }
}
