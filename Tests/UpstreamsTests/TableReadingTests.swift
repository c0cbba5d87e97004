// TableReadingTests.swift -- reading a large table does not block the loop.

import DNSWire
import EventLoop
import HTTPDNS
import Persistence
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `A large table` {
  @Test func `a large table is read off the loop, and the first questions wait for it`() throws {
    let folder = TemporaryFolder()
    let entries = (0..<50_000).map { "{\"domain\":\"host\($0).example.com\",\"ips\":[\"192.0.2.1\"]}" }
    let text = "{\"service\":\"s\",\"enable\":1,\"domainlist\":[\(entries.joined(separator: ","))]}"
    StateFile(path: "\(folder.path)/table") { _ in }.saveNow(Array(text.utf8))
    let loop = try EventLoop()
    nonisolated(unsafe) let provider = TableProvider(
      .table, .file("\(folder.path)/table"), interval: .seconds(300), ttl: 60, loop: loop, watch: { _, _ in nil }
    ) { _, _ in }
    nonisolated(unsafe) var seen: (atOnce: Int?, later: Int?) = (nil, nil)
    nonisolated(unsafe) var answer: Result<UpstreamAnswer, UpstreamFailure>?
    loop.execute {
      provider.start()
      seen.atOnce = provider.table?.count
      loop.startTask {
        let question = HTTPDNSQuestion(name: name("host7.example.com"), type: .a)
        answer = await provider.ask(question, deadline: loop.now + .seconds(60), isLastResort: false)
        seen.later = provider.table?.count
        loop.stop()
      }
    }
    loop.run()
    #expect(seen.atOnce == nil && seen.later == 50_000)
    #expect(try answer?.get().answer.answers.count == 1)
  }
}
