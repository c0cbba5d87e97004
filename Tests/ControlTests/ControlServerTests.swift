// ControlServerTests.swift -- the commands over a real socket, right ones and wrong ones.

import Configuration
import DNSWire
import EventLoop
import Fleet
import Store
import Glibc
import HTTPTestSupport
import MessageCache
import Resolver
import Synchronization
import Telemetry
import Testing

@testable import Control
@testable import Forwarder
@testable import Upstreams

@Suite struct `The control socket` {
  @Test func `only the user and the group of the control socket have access to it`() throws {
    let scene = try ControlScene()
    var status = stat()
    #expect(lstat(scene.folder.socket, &status) == 0)
    #expect(status.st_mode == S_IFSOCK | 0o660)
  }

  @Test func `the control socket returns the file that a reload reads and the one that is in use`() throws {
    let scene = try ControlScene()
    let file = "/etc/httpdnsd/httpdnsd.toml"
    #expect(try scene.client.file() == file)
    #expect(try scene.client.reload(.text).content.hasPrefix("configuration reloaded from \(file) in "))
    #expect(try scene.client.reload(.json).content.contains("\"file\":\"\(file)\""))
  }

  @Test func `the control socket returns the address by which the daemon is known`() throws {
    let scene = try ControlScene()
    #expect(try scene.client.instance()?.address == IPAddress(text: "240.1.2.3"))
  }

  @Test func `a flush removes everything, some names, or names with all names below`() throws {
    var answers = Answers()
    (answers.counts.entries, answers.counts.failures, answers.counts.notListed) = (12, 1, 2)
    let scene = try ControlScene(answers)
    let text = "removed: 12 cached answers, 1 remembered failure, 2 \"not listed\" replies\n"
    #expect(try scene.client.flush([], below: false, .text) == ControlAnswer(content: text))
    #expect(
      try scene.client.flush(["a.example"], below: false, .json).content
        == "{\"entries\":12,\"failures\":1,\"not_listed\":2}\n")
    _ = try scene.client.flush(["a.example", "B.example."], below: true, .text)
    let seen = scene.journal.flushed.withLock { $0 }
    #expect(seen.count == 3)
    let names = ["a.example", "x.a.example", "b.example", "c.example"].map { DomainName(text: $0)! }
    #expect(
      seen.map { selection in names.map { selection.covers($0) } } == [
        [true, true, true, true], [true, false, false, false], [true, true, true, false],
      ])
  }

  @Test func `a flush notifies the fleet unless it is local, and says how many daemons`() throws {
    var answers = Answers()
    answers.reach = .notified(2)
    let scene = try ControlScene(answers)
    let done = try scene.client.flush([], below: false, .text)
    #expect(done.content.hasSuffix("\nnotified: 2 other daemons of the fleet\n") && !done.isIncomplete)
    #expect(try scene.client.flush([], below: false, .json).content.hasSuffix(",\"notified\":2,\"cannot_read\":0}\n"))
    #expect(try !scene.client.flush(["a.example"], below: true, isLocal: true, .text).content.contains("fleet"))
    let reaches: [(FlushReach, String)] = [
      (.notified(nil), "\nnotified: the other daemons of the fleet; the store does not say how many\n"),
      (
        .notified(3, strangers: 1),
        "\nnotified: 3 other daemons of the fleet; 1 more with a different secret cannot read it\n"
      ),
    ]
    for (reach, text) in reaches {
      answers.reach = reach
      let other = try ControlScene(answers)
      let content = try other.client.flush([], below: false, .text).content
      #expect(content.hasSuffix(text), "\(content)")
    }
    answers.reach = .failed("the store is not reached")
    let failing = try ControlScene(answers)
    let failed = try failing.client.flush([], below: false, .text)
    #expect(failed.content.hasSuffix("\nother daemons of the fleet were not notified: the store is not reached\n"))
    #expect(failed.isIncomplete)
  }

  @Test func `the fleet is shown with its store, its savings and its members`() throws {
    let alone = try ControlScene()
    let none = try alone.client.fleet(.text)
    #expect(none.content == "no store: cache.redis is empty, or the cache is off\n" && none.isIncomplete)
    let own = FleetMember(id: "aa", version: "0.2.0", fingerprint: "a.b.c", host: "web-1")
    var report = FleetReport(
      store: StoreReport(
        state: "in use", isUp: true, since: BootInstant(nanoseconds: 0), latency: .microseconds(200)), own: own)
    (report.droppedWrites, report.clockDifference, report.knowsFlushes) = (1, 0, true)
    report.place = "redis://127.0.0.1:6379/0"
    report.counters.rejected = [FleetRejection.seal: 4]
    (report.counters.leases.won, report.counters.leases.lost, report.counters.leases.expired) = (7, 6, 1)
    report.members = [(own, 3)]
    for (number, fingerprint) in ["x.y.z", "a.x.c", "a.b.x", "f2"].enumerated() {
      let other = FleetMember(id: "b\(number)", version: "0.1.0", fingerprint: fingerprint, host: "web-\(2 + number)")
      report.members.append((other, 40))
    }
    var answers = Answers()
    answers.fleet = report
    var provider = ProviderReport(name: "ali")
    (provider.fleetUnits, provider.unitsPerDay) = (340, 1_000)
    answers.reports = [provider]
    let scene = try ControlScene(answers)
    let shown = try scene.client.fleet(.text)
    #expect(!shown.isIncomplete)
    for part in [
      "redis://127.0.0.1:6379/0: in use, answers in 200 us",
      "7 won, 6 lost (1 without an answer in time)",
      "not sealed: fleet.secret_file is not set", "ali: 340 of 1000 today, by all daemons of the fleet",
      "4 not sealed with this secret",
      "web-1 (this one)  0.2.0    3 s ago    the same\n",
      "different secret: neither answers nor flushes are shared with it",
      "different site: no answers are shared with it",
      "40 s ago   different providers, rules or limits: no answers are shared with it\nweb-5",
    ] { #expect(shown.content.contains(part), "\(shown.content)") }
    let json = try scene.client.fleet(.json).content
    for part in [
      "\"is_up\":true", "\"dropped_writes\":1", "\"seal\":4", "\"units\":{\"ali\":340}", "\"is_this\":true",
      "\"difference\":\"secret\"",
    ] { #expect(json.contains(part), "\(json)") }
    (report.knowsFlushes, report.flushFailure) = (false, "XREAD failed: NOPERM")
    answers.fleet = report
    let unread = try ControlScene(answers)
    let said = try unread.client.fleet(.text)
    #expect(said.content.contains("not used: flushes are not read: XREAD failed: NOPERM\n") && said.isIncomplete)
  }

  @Test func `daemons with one host name, and a store that takes no writes, can be told`() throws {
    let own = FleetMember(id: "0123456789abcdef", version: "0.2.0", fingerprint: "f1", host: "copy")
    var store = StoreReport(state: "up, without writes", isUp: true, since: BootInstant(nanoseconds: 0))
    store.complaint = "OOM command not allowed"
    var report = FleetReport(store: store, own: own)
    (report.clockDifference, report.knowsFlushes) = (0, true)
    let other = FleetMember(id: "fedcba9876543210", version: "0.2.0", fingerprint: "f1", host: "copy")
    report.members = [(own, 1), (other, 2)]
    var answers = Answers()
    answers.fleet = report
    let scene = try ControlScene(answers)
    let shown = try scene.client.fleet(.text)
    for part in ["up, without writes: OOM command not allowed\n", "copy 01234567 (this one)", "copy fedcba98 "] {
      #expect(shown.content.contains(part), "\(shown.content)")
    }
    #expect(shown.isIncomplete)
  }

  @Test func `a store that is not used says why, by what it is now`() {
    let own = FleetMember(id: "aa", version: "1", fingerprint: "f", host: "h")
    func state(_ store: StoreReport, _ change: (inout FleetReport) -> Void) -> String {
      var report = FleetReport(store: store, own: own)
      (report.clockDifference, report.knowsFlushes) = (0, true)
      change(&report)
      #expect(!report.isUsed)
      return report.state
    }
    let since = BootInstant(nanoseconds: 0)
    let up = StoreReport(state: "up", isUp: true, since: since)
    #expect(state(up) { $0.clockDifference = nil } == "not used: no valid TIME reply")
    #expect(
      state(up) { ($0.clockDifference, $0.isClockRefused) = (-400, true) }
        == "not used: its clock differs from this machine's by 400 s")
    #expect(state(up) { $0.knowsFlushes = false } == "not used: flushes are not read yet")
    var down = StoreReport(state: "not used", isUp: false, since: since)
    down.lastFailure = "connection lost: closed by the store"
    #expect(
      state(down) { ($0.clockDifference, $0.isClockRefused) = (-400, true) }
        == "not used; connection lost: closed by the store")
  }

  @Test func `providers are shown as a table and as JSON`() throws {
    var first = ProviderReport(name: "alidns")
    (first.server, first.unitsToday, first.unitsPerDay, first.counters.transfers) = ("223.5.5.5", 7, 100, 9)
    first.counters.failures.count(.noResponse(.timeout))
    first.counters.roundTrips.observe(.milliseconds(12))
    var second = ProviderReport(name: "b")
    second.state = .pausing("it refuses the credentials", until: 1_800_000_000)
    second.advice = "check token"
    var third = ProviderReport(name: "c")
    third.state = .unreachable(since: nil, "a \"quoted\" reason")
    var fourth = ProviderReport(name: "d")
    fourth.state = .noUnits(until: 86_400)
    var fifth = ProviderReport(name: "e")
    fifth.state = .noAnswers(since: 0)
    (fifth.lastFailure, fifth.lastFailureAge) = ("192.0.2.1: timeout", .seconds(1))
    var answers = Answers()
    answers.reports = [first, second, third, fourth, fifth]
    answers.reports[2].remark = "a remark"
    answers.reports[2].nextAttempt = .milliseconds(4200)
    (answers.reports[2].lastFailure, answers.reports[2].lastFailureAge) = ("192.0.2.1: refused", .seconds(3))
    let scene = try ControlScene(answers)
    let lines = try scene.client.providers(.text).content.split(separator: "\n").map(String.init)
    try #require(lines.count == 10)
    #expect(lines[0].hasPrefix("provider  state "))
    #expect(
      lines[1].split(separator: " ").map(String.init) == [
        "alidns", "up", "223.5.5.5", "12.0", "ms", "7", "100", "9", "1",
      ])
    #expect(lines[2].hasPrefix("b         pausing      -") && lines[3].hasPrefix("c         unreachable  -"))
    #expect(lines[5].hasPrefix("e         no answers   -"))
    let backsOff = /b: pausing for another \d+ d( \d+ h)?: it refuses the credentials; check token/
    #expect(lines[6].wholeMatch(of: backsOff) != nil)
    #expect(
      lines[7]
        == "c: unreachable: a \"quoted\" reason; next attempt in 5 s; a remark; last failure 3 s ago: 192.0.2.1: refused"
    )
    #expect(lines[8] == "d: no units for another 0 s: units_per_day is used up")
    #expect(lines[9].hasPrefix("e: no answers for "))
    #expect(lines[9].hasSuffix("; last failure 1 s ago: 192.0.2.1: timeout"))
    let json = try scene.client.providers(.json).content
    #expect(json.contains("\"failures_by_reason\":{\"timeout\":1}"))
    #expect(json.contains("\"round_trip_ms\":{\"count\":1,\"mean\":12,"))
    #expect(json.contains("\"reason\":\"a \\\"quoted\\\" reason\""))
    #expect(json.contains("\"next_attempt_seconds\":4.2,"))
    #expect(json.contains("\"last_failure\":\"192.0.2.1: refused\",\"last_failure_seconds\":3}"))
    #expect(json.contains("\"until\":\"2027-01-15T08:00:00Z\""))
    #expect(json.contains("\"name\":\"e\",\"state\":\"down\""))
    #expect(json.hasPrefix("{\"providers\":[{\"name\":\"alidns\",\"state\":\"up\",\"units_today\":7,"))
  }

  @Test func `the failure that made a provider unreachable is said once`() {
    var report = ProviderReport(name: "a")
    report.state = .unreachable(since: 0, "192.0.2.1: refused; check servers")
    (report.lastFailure, report.lastFailureAge) = ("192.0.2.1: refused", .seconds(60))
    #expect(report.explanation(now: 60) == "unreachable for 1 min: 192.0.2.1: refused; check servers")
    report.lastFailure = "192.0.2.2: timeout"
    #expect(report.explanation(now: 60)?.hasSuffix("; last failure 1 min ago: 192.0.2.2: timeout") == true)
  }

  @Test(arguments: [
    ("GET", "/flush", "", 405), ("POST", "/providers", "", 405), ("GET", "/", "", 404), ("GET", "/stat", "", 404),
    ("POST", "/stats", "", 405), ("GET", "/stats?by", "", 400), ("GET", "/cache?limit=1001", "", 400),
    ("GET", "/cache?limit=x", "", 400),
    ("GET", "/cache?name=", "", 400), ("GET", "/cache?name=a%2", "", 400), ("GET", "/cache?name=a..b", "", 400),
    ("GET", "/cache?all=a", "", 400), ("GET", "/refresh", "", 405), ("POST", "/refresh", "", 400),
    ("POST", "/refresh?now", "a.example\n", 400), ("POST", "/refresh", "a.example\nANY\n", 400),
    ("POST", "/refresh", "a.example\n" + String(repeating: "A\n", count: 17), 400),
    ("GET", "/report", "", 405), ("POST", "/report", "", 400), ("POST", "/report", "{}", 400),
    ("POST", "/report?x", "{}", 400), ("POST", "/report", "{\"reports\":[]}", 400),
    ("POST", "/report", String(repeating: " ", count: 20_000), 413),
    ("POST", "/report-bad", "a.example\n", 400), ("POST", "/report-bad", "a.example\n192.0.2\n", 400),
    ("POST", "/report-bad", "a.example\n192.0.2.1\n192.0.2.2\n", 400), ("POST", "/stats?top", "", 405),
    ("POST", "/flush?all", "", 400), ("POST", "/flush?below", "", 400), ("POST", "/flush", "a..b\n", 400),
    ("POST", "/flush", String(repeating: "a.example\n", count: 257), 400),
    ("POST", "/flush", String(repeating: "a", count: 300_000), 413),
  ]) func `an unknown request is refused in one line and changes nothing`(
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
    #expect(scene.journal.flushed.withLock { $0.isEmpty } && scene.journal.commands.withLock { $0.isEmpty })
  }

  @Test func `names of any octets, types and addresses pass through the control socket`() throws {
    let scene = try ControlScene()
    let odd = "a\\.b\\000%&=\\255 .example."
    _ = try scene.client.cache(odd.replacing(" ", with: "\\032"), .text)
    _ = try scene.client.refresh("WWW.example.com", types: ["aaaa", "TYPE65"], .json)
    _ = try scene.client.refresh("www.example.com", types: [], .text)
    _ = try scene.client.reportBad("www.example.com", "2001:DB8::1", .text)
    #expect(
      scene.journal.commands.withLock { $0 } == [
        "cache a\\.b\\000%&=\\255\\032.example.", "refresh www.example.com. [AAAA, HTTPS]",
        "refresh www.example.com. []", "report-bad www.example.com. 2001:db8::1",
      ])
  }

  @Test func `a response without a result has a field that programs can test`() throws {
    let scene = try ControlScene()
    #expect(
      try scene.client.cache("a.example", .text)
        == ControlAnswer(content: "the cache has nothing for a.example.\n", isIncomplete: true))
    #expect(try scene.client.refresh("a.example", types: [], .json).isIncomplete)
    #expect(try scene.client.reportBad("a.example", "192.0.2.1", .json).isIncomplete)
    #expect(try !scene.client.providers(.json).isIncomplete)
    var answers = Answers()
    answers.counts.saveProblem = "no room"
    let other = try ControlScene(answers)
    let answer = try other.client.flush([], below: false, .text)
    #expect(answer.isIncomplete && answer.content.contains("cannot replace the cache file: no room"))
  }

  @Test func `silent connections up to the limit do not block other clients`() throws {
    let scene = try ControlScene()
    let silent = (0..<(3 * Configuration.httpConnections)).map { _ in scene.raw }
    #expect(silent.allSatisfy { $0 != nil })
    #expect(try scene.client.providers(.text).content.hasPrefix("provider"))
    withExtendedLifetime(silent) {}
  }

  @Test func `a refusal reaches the client with its reason`() throws {
    let scene = try ControlScene()
    #expect(throws: ControlClientError.refused("line 2 is not a domain name")) {
      try scene.client.flush(["a.example", "b..example"], below: false, .text)
    }
  }
}
