// NamesTextTests.swift -- names are hostile text: what a page gets is printable, and JSON.

import DNSWire
import EventLoop
import JSON
import Testing

@testable import BusyNames
@testable import Dashboard
@testable import Forwarder
@testable import Frontend
@testable import Resolver

@Suite struct `Names for the page` {
  private static let hostile: [[UInt8]] = [
    Array("<img src=x onerror=alert(1)>".utf8), Array("\"'&</script>".utf8), [0, 1, 10, 13, 27, 127, 255],
    Array("\u{202E}moc.elpmaxe".utf8), Array("\u{2028}\u{2029}".utf8), Array(repeating: 0x5C, count: 63),
  ]

  @Test(arguments: hostile) func `reach it as printable ASCII`(label: [UInt8]) throws {
    let octets = [UInt8(label.count)] + label + Array("\u{7}example".utf8) + [0]
    let name = try #require(DomainName(octets: octets))
    var numbers = DaemonNumbers(statistics: .at(BootInstant(nanoseconds: 0)), counts: NameCounts(), network: "")
    numbers.failing = [FailingName(name: name, type: .a, count: 3, reason: "no answer in time", age: .seconds(5))]
    let report = NameReport(name: name, type: .a, time: .seconds(60), counts: NameCounts())
    let text = NamesText(names: [report], overview: CacheOverview(), numbers: numbers, now: 0).json
    #expect(text.utf8.allSatisfy { 0x20...0x7E ~= $0 })
    struct Unreadable: Error {}
    let names = try withJSON(Array(text.utf8), orThrow: { _ in Unreadable() }) { root throws(Unreadable) in
      ["names", "failing"].compactMap { root.member(named: $0)?.onlyElement?.member(named: "name")?.text }
    }
    #expect(names == [name.text, name.text])
  }

  @Test func `those that failed longer ago than a minute are left out`() {
    var numbers = DaemonNumbers(statistics: .at(BootInstant(nanoseconds: 0)), counts: NameCounts(), network: "")
    let name = DomainName(text: "www.example.com")!
    numbers.failing = [FailingName(name: name, type: .a, count: 3, reason: "no answer in time", age: .seconds(61))]
    let text = NamesText(names: [], overview: CacheOverview(), numbers: numbers, now: 0).json
    #expect(text.contains(#""failing":[]"#) && text.contains(#""fleet":null"#))
  }
}
