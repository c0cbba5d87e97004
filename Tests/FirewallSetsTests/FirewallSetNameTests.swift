// FirewallSetNameTests.swift -- the names of sets in the configuration.

import Configuration
@testable import FirewallSets
import Testing

@Suite struct `The name of a firewall set` {
  @Test(arguments: [
    "inet#fw#domestic4", "ip#filter#a", "ip6#f#_a", "inet#.t#a.b/c-d_e9",
    "inet#Z#\(String(repeating: "a", count: 255))",
  ])
  func `a set's name is family, table and set`(text: String) throws {
    let name = try FirewallSetName(text: text)
    #expect(name.description == text)
    #expect([name.family.rawValue, name.table, name.set] == text.split(separator: "#").map(String.init))
    #expect(name.arguments == text.replacing("#", with: " "))
  }

  @Test(arguments: [
    ("", FirewallSetNameMistake.notThreeParts), ("fw#domestic4", .notThreeParts), ("inet#fw#a#4", .notThreeParts),
    ("arp#fw#a", .family("arp")), ("INET#fw#a", .family("INET")), ("#fw#a", .family("")),
    ("inet##a", .identifier("")), ("inet#fw#", .identifier("")), ("inet#fw#4a", .identifier("4a")),
    ("inet#fw#-a", .identifier("-a")), ("inet#f w#a", .identifier("f w")), ("inet#fw#a;b", .identifier("a;b")),
    ("inet#fw#a'b", .identifier("a'b")), ("inet#fw#é", .identifier("é")), ("inet#fw#a\n", .identifier("a\n")),
    (
      "inet#fw#\(String(repeating: "a", count: 256))",
      .identifier(String(repeating: "a", count: 256))
    ),
  ])
  func `a text that names no set is refused for its reason`(text: String, mistake: FirewallSetNameMistake) {
    #expect(throws: mistake) { try FirewallSetName(text: text) }
  }

  @Test func `a mistake in the name of a set says what is allowed`() {
    #expect("\(FirewallSetNameMistake.notThreeParts)" == "it is not family#table#set, such as inet#fw#domestic4")
    #expect("\(FirewallSetNameMistake.family("arp"))" == "its family is 'arp', not inet, ip, ip6")
  }
}
