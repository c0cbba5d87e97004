// TailTests.swift -- readers of answered queries: what they get, how many there are, and how they end.

import DNSWire
import EventLoop
import Glibc
import HTTPTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Control
@testable import Forwarder
@testable import Frontend

@Suite struct `A reader of queries` {
  private static func query(
    _ name: String, code: UInt16 = 0, _ outcome: LoggedQuery.Fate = .atOnce(.hit), reason: String? = nil
  ) -> LoggedQuery {
    LoggedQuery(
      receivedAt: .now, took: .microseconds(1042), client: [192, 0, 2, 7], transport: .udp,
      name: DomainName(text: name)!.octets, type: 1, code: code, outcome: outcome, reason: reason)
  }

  private static let queries = [
    query("www.example.com"), query("Example.com", .asked(.provider("alidns"))),
    query("other.example.org", code: 2, .failed, reason: "no answer in time"),
    query("none.example.com", code: 3), query("bad.example.com", code: 5, .atOnce(.refused)),
  ]

  private func names(_ scene: ControlScene, _ name: String?, onlyFailed: Bool, _ form: ControlForm) throws -> [String] {
    var text = ""
    // Everything comes in one piece, which is shorter than any socket's room.
    try scene.client.tail(name, onlyFailed: onlyFailed, form) { octets in
      text += String(decoding: octets, as: UTF8.self)
      return false
    }
    return text.split(separator: "\n").map(String.init)
  }

  @Test func `tail shows all queries, those of a name and below it, or those that failed`() throws {
    let scene = try ControlScene()
    scene.journal.watches.queries = `A reader of queries`.queries
    let all = try names(scene, nil, onlyFailed: false, .text)
    try #require(all.count == 5)
    #expect(all[0].wholeMatch(of: /2[-\d]+T[\d:]+\.\d{3}Z 192.0.2.7 udp www.example.com. A .*/) != nil)
    #expect(all[0].hasSuffix(" A NOERROR hit 1.042 ms"))
    #expect(all[1].hasSuffix(" Example.com. A NOERROR alidns 1.042 ms"))
    #expect(all[2].hasSuffix(" other.example.org. A SERVFAIL failure 1.042 ms: no answer in time"))
    #expect(try names(scene, "EXAMPLE.com", onlyFailed: false, .text).count == 4)
    #expect(try names(scene, nil, onlyFailed: true, .text).count == 2)
    let failed = try names(scene, "example.com.", onlyFailed: true, .json)
    #expect(failed.count == 1 && failed[0].contains("\"name\":\"bad.example.com.\",\"type\":\"A\""))
    #expect(failed[0].hasPrefix("{\"time\":\"2") && failed[0].contains("\"rcode\":\"REFUSED\""))
  }

  @Test func `at most two tails run at once, and each is logged with its user at start and end`() throws {
    let scene = try ControlScene()
    func lines() -> [String] { scene.journal.commands.withLock { $0 } }
    var first = try #require(scene.raw)
    first.send("GET /tail HTTP/1.1\r\nHost: localhost\r\n\r\n")
    let second = try #require(scene.raw)
    second.send("GET /tail?failed&name=example.com HTTP/1.1\r\nHost: localhost\r\n\r\n")
    #expect(comes { lines().count == 2 })
    let user = geteuid()
    #expect(lines()[1] == "user \(user) watches queries (2 of at most 2 readers)")
    #expect(throws: ControlClientError.refused("2 readers already watch queries, which is the limit")) {
      try scene.client.tail(nil, onlyFailed: false, .text) { _ in true }
    }
    first = try #require(scene.raw)
    #expect(comes { lines().count == 3 })
    #expect(lines()[2] == "user \(user) no longer watches queries")
    first.send("GET /tail HTTP/1.1\r\nHost: localhost\r\n\r\n")
    #expect(comes { lines().count == 4 })
    withExtendedLifetime((first, second)) {}
  }

  @Test func `a tail that reads too slowly is cut off, and the next one is served`() throws {
    let scene = try ControlScene()
    let silent = try #require(scene.raw)
    silent.send("GET /tail HTTP/1.0\r\n\r\n")
    #expect(comes { scene.journal.commands.withLock { $0.count == 1 } })
    let query = `A reader of queries`.query(String(repeating: "a234567.", count: 25) + "example")
    for round in 0..<100 {
      scene.onLoop { [journal = scene.journal] in
        let queries = Array(repeating: query, count: 400)
        for watch in journal.watches.all { watch.take(queries[...], LogClock(), missing: 0) }
        journal.commands.withLock { $0.append("round \(round)") }
      }
      #expect(comes { scene.journal.commands.withLock { $0.last == "round \(round)" } })
    }
    let lines = scene.journal.commands.withLock { $0 }.filter { !$0.hasPrefix("round") }
    #expect(lines.last == "user \(geteuid()) no longer watches queries: cut off because it reads too slowly")
    #expect(silent.end() != .timeout)
    scene.journal.watches.queries = `A reader of queries`.queries
    #expect(try names(scene, nil, onlyFailed: false, .text).count == 5)
  }

  @Test(arguments: ["/tail?all", "/tail?name=a..b", "/tail?name=a&name=b", "/tail?name=%"])
  func `a tail with an unknown parameter is refused`(target: String) throws {
    let scene = try ControlScene()
    #expect(try #require(scene.raw).exchange("GET", target)?.status == 400)
    #expect(try #require(scene.raw).exchange("POST", "/tail")?.status == 405)
    #expect(scene.journal.commands.withLock { $0.isEmpty })
  }

  @Test(.enabled(if: geteuid() != 0, "root may always watch"))
  func `tail requires root unless the configuration allows others`() throws {
    let scene = try ControlScene(isTailOpen: false)
    #expect(throws: ControlClientError.self) { try scene.client.tail(nil, onlyFailed: false, .text) { _ in true } }
  }

  @Test func `a tail ends with the daemon`() throws {
    var scene: ControlScene? = try ControlScene()
    let path = scene!.folder.socket
    scene!.journal.watches.queries = [`A reader of queries`.query("a.example")]
    let client = scene!.client
    #expect(throws: ControlClientError.closed(path: path)) {
      try client.tail(nil, onlyFailed: false, .text) { _ in
        scene = nil
        return true
      }
    }
  }
}

@Suite struct `Answered queries for a reader` {
  @Test func `queries that wait for a tail are bounded, and the others are counted`() {
    var lines: [String] = []
    let watch = QueryWatch(of: nil, onlyFailed: false, asJSON: false) { lines += $0 }
    let query = LoggedQuery(
      receivedAt: .now, took: .zero, client: [192, 0, 2, 7], transport: .tcp, name: [0], type: 1, code: 0,
      outcome: .stale)
    watch.take(Array(repeating: query, count: 600)[...], LogClock(), missing: 7)
    #expect(lines.count == 501 && lines.last == "(107 queries are left out: too many at once)\n")
    lines = []
    watch.take([], LogClock(), missing: 0)
    #expect(lines.isEmpty)
  }
}
