// ControlServerTests.swift -- the commands over a real socket, right ones and wrong ones.

import DNSWire
import Glibc
import HTTPTestSupport
import MessageCache
import Synchronization
import Testing

@testable import Control
@testable import Forwarder

@Suite struct `The control socket` {
  @Test func `is its user's and its group's`() throws {
    let scene = try ControlScene()
    var status = stat()
    #expect(lstat(scene.folder.socket, &status) == 0)
    #expect(status.st_mode == S_IFSOCK | 0o660)
  }

  @Test func `forgets everything, names, or names and what is below`() throws {
    var counts = FlushCounts()
    (counts.entries, counts.failures, counts.notListed) = (12, 1, 2)
    let scene = try ControlScene(counts: counts)
    let text = "removed: 12 cached answers, 1 remembered failure, 2 \"not listed\" of providers\n"
    #expect(try scene.client.flush([], below: false, .text) == text)
    #expect(
      try scene.client.flush(["a.example"], below: false, .json)
        == "{\"entries\":12,\"failures\":1,\"not_listed\":2}\n")
    _ = try scene.client.flush(["a.example", "B.example."], below: true, .text)
    let seen = scene.journal.flushed.withLock { $0 }
    #expect(seen.count == 3)
    let names = ["a.example", "x.a.example", "b.example", "c.example"].map { DomainName(text: $0)! }
    #expect(
      seen.map { selection in names.map { selection.contains($0) } } == [
        [true, true, true, true], [true, false, false, false], [true, true, true, false],
      ])
  }

  @Test func `shows the providers as a table and as JSON`() throws {
    var first = ProviderReport(name: "alidns")
    (first.server, first.unitsToday, first.unitsPerDay, first.transfers) = ("223.5.5.5", 7, 100, 9)
    first.failureCounts.count(.timeout)
    var second = ProviderReport(name: "b")
    second.state = .aside("it refuses the credentials", until: 1_800_000_000)
    var third = ProviderReport(name: "c")
    third.state = .down("a \"quoted\" reason")
    var fourth = ProviderReport(name: "d")
    fourth.state = .spent(until: 86_400)
    let scene = try ControlScene(reports: [first, second, third, fourth])
    let lines = try scene.client.providers(.text).split(separator: "\n").map(String.init)
    try #require(lines.count == 5)
    #expect(lines[0].hasPrefix("provider  state "))
    #expect(lines[1].split(separator: " ").map(String.init) == ["alidns", "up", "223.5.5.5", "7", "100", "9", "1"])
    #expect(lines[2].contains("left alone until 2027-01-15T08:00:00Z: it refuses the credentials"))
    #expect(lines[3].contains("down: a \"quoted\" reason"))
    #expect(lines[4].contains("left alone until 1970-01-02T00:00:00Z: units_per_day are spent"))
    let json = try scene.client.providers(.json)
    #expect(json.contains("\"reason\":\"a \\\"quoted\\\" reason\""))
    #expect(json.contains("\"until\":\"2027-01-15T08:00:00Z\""))
    #expect(json.hasPrefix("{\"providers\":[{\"name\":\"alidns\",\"state\":\"up\",\"units_today\":7,"))
  }

  @Test(arguments: [
    ("GET", "/flush", "", 405), ("POST", "/providers", "", 405), ("GET", "/", "", 404), ("GET", "/stats", "", 404),
    ("POST", "/flush?all", "", 400), ("POST", "/flush?below", "", 400), ("POST", "/flush", "a..b\n", 400),
    ("POST", "/flush", String(repeating: "a.example\n", count: 257), 400),
    ("POST", "/flush", String(repeating: "a", count: 300_000), 413),
  ]) func `refuses what it does not know, in one line, and does nothing`(
    _ method: String, _ target: String, _ body: String, _ status: Int
  ) throws {
    let scene = try ControlScene()
    let client = try #require(scene.raw)
    let response = try #require(client.exchange(method, target, body: body))
    #expect(response.status == status)
    if status != 413 {
      #expect(response.text.hasSuffix("\n") && response.text.filter { $0 == "\n" }.count == 1)
      #expect(response.field("Allow") == (status == 405 ? (method == "GET" ? "POST" : "GET") : nil))
    }
    #expect(scene.journal.flushed.withLock { $0.isEmpty })
  }

  @Test func `a client is told why it is refused`() throws {
    let scene = try ControlScene()
    #expect(throws: ControlClientError.refused("line 2 is not a domain name")) {
      try scene.client.flush(["a.example", "b..example"], below: false, .text)
    }
  }
}
