// TableProviderTests.swift -- a self-built table: when it is read or fetched, what it answers, and which one is kept.

import DNSWire
import EventLoop
import Glibc
import HTTPClient
import HTTPDNS
import HTTPMessage
import Persistence
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct TableProviderTests {
  private let loop = SimulatedLoop()
  private let begin = SimulatedLoop().now
  private let folder = TemporaryFolder()
  private let notes = Notes()
  private let listed = HTTPDNSQuestion(name: name("a.example.com"), type: .a)

  private var path: String { "\(folder.path)/table" }

  private func write(_ text: String) { StateFile(path: path) { _ in }.saveNow(Array(text.utf8)) }

  private func provider(
    _ source: TableProvider.Source, interval: Duration = .seconds(300),
    watch: @escaping (String, @escaping () -> Void) -> AnyObject? = { _, _ in nil }
  ) -> TableProvider {
    TableProvider(
      .table, source, interval: interval, ttl: 60, loop: loop, watch: watch
    ) { [notes] in notes.add($1) }
  }

  private func fetching(_ transports: [ScriptedTransport], interval: Duration = .seconds(300)) -> TableProvider {
    let servers = transports.enumerated().map { number, transport in
      ProviderServer("server\(number)", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in transport }
    }
    return provider(.servers(servers, target: "/table.json", host: "table.example"), interval: interval)
  }

  private func server(
    after latency: Duration = .milliseconds(10), _ script: @escaping (Int) -> HTTPResult
  ) -> ScriptedTransport {
    ScriptedTransport(on: loop) { (script($0), latency) }
  }

  private func ask(
    _ provider: TableProvider, _ question: HTTPDNSQuestion? = nil
  ) -> Result<UpstreamAnswer, UpstreamFailure> {
    let question = question ?? listed
    return loop.run { [loop] in
      await provider.ask(question, deadline: loop.now + .milliseconds(4400), isLastResort: false)
    }
  }

  private func failure(_ provider: TableProvider) -> UpstreamFailure? {
    if case .failure(let failure) = ask(provider) { failure } else { nil }
  }

  private func addresses(
    _ provider: TableProvider, _ owner: String = "a.example.com", _ type: RecordType = .a
  ) -> [String]? {
    guard let answer = try? ask(provider, HTTPDNSQuestion(name: name(owner), type: type)).get().answer else {
      return nil
    }
    return answer.answers.compactMap { IPAddress(octets: $0.rdata)?.description }
  }

  @Test func `the first question waits for the table, and what is not listed is not this provider's`() throws {
    let only = server(after: .milliseconds(300)) { _ in .table("192.0.2.1", "192.0.2.2", "2001:db8::1") }
    let provider = fetching([only])
    #expect(provider.serves(listed))
    #expect(addresses(provider) == ["192.0.2.1", "192.0.2.2"])
    #expect(loop.now - begin == .milliseconds(300))
    #expect(addresses(provider, "A.Example.COM", .aaaa) == ["2001:db8::1"])
    #expect(try ask(provider).get().answer.answers.map(\.ttl) == [60, 60])
    #expect(addresses(provider, "b.example.com") == nil)
    #expect(addresses(provider, "x.a.example.com") == nil)
    #expect(!provider.serves(HTTPDNSQuestion(name: name("b.example.com"), type: .a)))
    #expect(!provider.serves(HTTPDNSQuestion(name: name("a.example.com"), type: .txt)))
    #expect(loop.now - begin == .milliseconds(300))
    #expect(only.sent.count == 1)
    #expect(only.sent[0].request.target == "/table.json")
    #expect(only.sent[0].request.fields.contains { $0.name == "Host" && $0.value == "table.example" })
  }

  @Test func `a listed name without addresses of a family has none, and that is certain`() throws {
    let provider = fetching([server { _ in .table("192.0.2.1") }])
    let answer = try ask(provider, HTTPDNSQuestion(name: name("a.example.com"), type: .aaaa)).get().answer
    #expect(answer.isNegative && answer.responseCode == .noError && !answer.isEmptyAmbiguous)
  }

  @Test func `the first load is waited for, and the next ones are not, whether or not there is a table`() {
    let only = server(after: .milliseconds(100)) { $0 < 3 ? .refused : .table("192.0.2.1") }
    let provider = fetching([only])
    let other = HTTPDNSQuestion(name: name("b.example.com"), type: .aaaa)
    #expect(provider.serves(other))
    #expect(addresses(provider) == nil)
    #expect(loop.now - begin == .milliseconds(100))
    // Any name may be listed, so that a client does not take this for NODATA.
    for _ in 0..<605 {
      let before = loop.now
      #expect(provider.serves(listed) && provider.serves(other))
      #expect(failure(provider)?.reason == "no table yet: server0: refused: refused")
      #expect(failure(provider)?.consequence == .notAsked)
      #expect(loop.now == before)
      loop.advance(by: .milliseconds(100))
    }
    #expect(only.sent.count == 3)
    loop.advance(by: .seconds(60))
    #expect(provider.serves(listed) && !provider.serves(other))
    #expect(addresses(provider) == ["192.0.2.1"])
  }

  @Test func `questions wait for the first table no longer than their deadline`() {
    let silent = (0..<5).map { _ in server(after: .seconds(60)) { _ in .refused } }
    let provider = fetching(silent)
    #expect(addresses(provider) == nil)
    #expect(loop.now - begin == .milliseconds(4400))
  }

  @Test func `the table is fetched at every interval, and after a failure sooner, by one timer`() {
    let only = server { $0 == 1 || $0 == 2 ? .refused : .table("192.0.2.\($0)") }
    let provider = fetching([only])
    for _ in 0..<3 { provider.start() }
    loop.advance(by: .seconds(299))
    for _ in 0..<10 { _ = ask(provider) }
    #expect(only.sent.count == 1)
    loop.advance(by: .seconds(600))
    let gaps = zip(only.sent.dropFirst(), only.sent).map { $0.at - $1.at }
    #expect(gaps == [300, 30, 30, 300].map { Duration.seconds($0) + .milliseconds(10) })
    #expect(addresses(provider) == ["192.0.2.4"])
    #expect(loop.timers.count == 1)
  }

  @Test func `changes of the network add no timers`() {
    let only = server { _ in .table("192.0.2.1") }
    let provider = fetching([only])
    provider.start()
    for _ in 0..<8 {
      loop.advance(by: .seconds(10))
      provider.networkHasChanged()
    }
    loop.advance(by: .seconds(1_000))
    // One at the start, one for each change, and three intervals.
    #expect(only.sent.count == 1 + 8 + 3)
    #expect(loop.timers.count == 1)
  }

  @Test func `an interval shorter than the pause after a failure holds after a failure too`() {
    let only = server { _ in .refused }
    let provider = fetching([only], interval: .seconds(10))
    provider.start()
    loop.advance(by: .seconds(25))
    #expect(only.sent.count == 3)
  }

  @Test func `the next server is asked for the table if one fails`() {
    let servers = [server { _ in .refused }, server { _ in .status(500) }, server { _ in .table("192.0.2.3") }]
    #expect(addresses(fetching(servers)) == ["192.0.2.3"])
    #expect(notes.all == ["provider table: a table of 1 name"])
  }

  @Test func `an unchanged table is not sent again`() {
    let only = server { number in
      switch number {
      case 0: .table("192.0.2.1", entityTag: "\"one\"")
      case 1: .status(304)
      default: .table("192.0.2.2", entityTag: nil)
      }
    }
    let provider = fetching([only])
    #expect(addresses(provider) == ["192.0.2.1"])
    loop.advance(by: .seconds(301))
    #expect(addresses(provider) == ["192.0.2.1"])
    loop.advance(by: .seconds(601))
    #expect(addresses(provider) == ["192.0.2.2"])
    let tags = only.sent.map { $0.request.fields.first { $0.name == "If-None-Match" }?.value }
    #expect(tags == [nil, "\"one\"", "\"one\"", nil])
    #expect(notes.all.count == 1)
  }

  @Test func `304 without a table is a failure`() {
    let provider = fetching([server { _ in .status(304) }])
    #expect(addresses(provider) == nil)
    #expect(notes.all.count == 1 && notes.all[0].hasSuffix("no table yet"))
  }

  @Test(arguments: [
    "", "<html>", "[]", #"{"enable":1}"#, #"{"enable":2,"domainlist":[]}"#,
    #"{"enable":1,"domainlist":[{"domain":"a.example.com","ips":["192.0.2.9"]},{"domain":"b.example.com"}]}"#,
    #"{"enable":1,"domainlist":[{"domain":"a.example.com","ips":["192.0.2.999"]}]}"#,
  ])
  func `a body that cannot be read leaves the old table and its tag`(_ text: String) {
    let only = server { $0 == 0 ? .table("192.0.2.1", entityTag: "\"one\"") : .json(text) }
    let provider = fetching([only])
    _ = ask(provider)
    loop.advance(by: .seconds(335))
    #expect(addresses(provider) == ["192.0.2.1"])
    #expect(only.sent.count == 3)
    #expect(only.sent.last?.request.fields.last?.value == "\"one\"")
    // The same reason again is no news.
    #expect(notes.all.count == 2 && notes.all[1].hasSuffix("keeping the old table"))
  }

  @Test func `a table that cannot be fetched has the HTTP status and a remedy`() {
    for (result, text, remedy) in [
      (
        HTTPResult.status(404), "the provider does not know the path (HTTP status 404)",
        "check the path in url or servers"
      ),
      (
        .status(403), "the provider refused the request (HTTP status 403)",
        "check url or servers, and whether the service admits this client"
      ),
      (.status(429), "too many requests (HTTP status 429)", "set a longer interval"),
      (.refused, "refused: refused", "nothing listens there, or a firewall refuses; check url or servers"),
      (.status(500), "HTTP status 500", ""),
    ] {
      let provider = fetching([server { _ in result }])
      let advice = remedy.isEmpty ? "" : "; \(remedy)"
      #expect(failure(provider)?.explanation == "no table yet: server0: \(text)\(advice)")
      #expect(notes.all.last == "provider table: server0: \(text); no table yet\(advice)")
      #expect(provider.report.advice == remedy)
    }
  }

  @Test func `a table's failure is logged once, and its end too`() {
    let provider = fetching([server { (1...3).contains($0) ? .refused : .table("192.0.2.1") }])
    provider.start()
    loop.advance(by: .seconds(1000))
    #expect(
      notes.all == [
        "provider table: a table of 1 name",
        "provider table: server0: refused: refused; keeping the old table; nothing listens there, or a firewall "
          + "refuses; check url or servers",
        "provider table: a table of 1 name",
      ])
  }

  @Test func `a table that is switched off serves nothing, until it is switched on`() {
    let only = server { $0 == 1 ? .json(#"{"enable":0}"#) : .table("192.0.2.1") }
    let provider = fetching([only])
    #expect(addresses(provider) == ["192.0.2.1"])
    loop.advance(by: .seconds(301))
    #expect(addresses(provider) == nil)
    #expect(!provider.serves(listed))
    #expect(notes.all.last == "provider table: its table is switched off")
    loop.advance(by: .seconds(301))
    #expect(provider.serves(listed))
    #expect(addresses(provider) == ["192.0.2.1"])
  }

  @Test func `a file is read at the start and whenever it is replaced, and a broken one changes nothing`() throws {
    write(.table("192.0.2.1"))
    let watch = Watch()
    let provider = provider(.file(path)) { [path] in
      #expect($0 == path)
      watch.changed = $1
      return watch
    }
    #expect(provider.serves(HTTPDNSQuestion(name: name("b.example.com"), type: .a)))
    #expect(addresses(provider) == ["192.0.2.1"])
    #expect(!provider.serves(HTTPDNSQuestion(name: name("b.example.com"), type: .a)))
    let changed = try #require(watch.changed)
    write(.table("192.0.2.2"))
    changed()
    #expect(addresses(provider) == ["192.0.2.2"])
    write("{")
    changed()
    unlink(path)
    changed()
    #expect(addresses(provider) == ["192.0.2.2"])
    #expect(notes.all.suffix(2).allSatisfy { $0.contains(path) && $0.hasSuffix("keeping the old table") })
    write(.table("192.0.2.3"))
    changed()
    #expect(addresses(provider) == ["192.0.2.3"])
    // Where there is a watch there is no timer, and the clock has not moved.
    #expect(loop.timers.count == 0)
    #expect(loop.now == begin)
  }

  @Test func `an unreadable table file answers nothing, and is polled if it cannot be watched`() {
    let provider = provider(.file(path), interval: .seconds(60))
    provider.start()
    #expect(failure(provider)?.extendedError == .noReachableAuthority)
    #expect(loop.now == begin)
    loop.advance(by: .seconds(59))
    write(.table("192.0.2.1"))
    #expect(addresses(provider) == nil)
    loop.advance(by: .seconds(2))
    #expect(addresses(provider) == ["192.0.2.1"])
    loop.advance(by: .seconds(3600))
    #expect(loop.timers.count == 1)
  }

  @Test func `a file longer than a table may be is refused`() {
    write(.table("192.0.2.1") + String(repeating: " ", count: AddressTable.mostOctets))
    let provider = provider(.file(path))
    #expect(addresses(provider) == nil)
    #expect(notes.all.count == 1)
  }
}

/// A watch that a test rings.
private final class Watch {
  var changed: (() -> Void)?
}

extension String {
  /// A table of one name.
  fileprivate static func table(_ addresses: String...) -> String { table(addresses) }

  fileprivate static func table(_ addresses: [String]) -> String {
    let list = addresses.map { "\"\($0)\"" }.joined(separator: ",")
    return #"{"service":"test","enable":1,"domainlist":[{"domain":"a.example.com","ips":[\#(list)]}]}"#
  }
}

extension HTTPResult {
  /// A table of one name.
  fileprivate static func table(_ addresses: String..., entityTag: String? = nil) -> HTTPResult {
    .response(
      HTTPResponse(
        status: 200, contentType: "application/json", entityTag: entityTag, body: Array(String.table(addresses).utf8)))
  }
}
