// OverviewTests.swift -- `httpdnsd cache` without a name.

import HTTPTestSupport
import MessageCache
import Resolver
import Synchronization
import Testing

@testable import Control
@testable import Forwarder

@Suite struct `The whole cache` {
  @Test func `the summary of the cache has a few figures, as text and as JSON`() throws {
    var answers = Answers()
    (answers.overview.fresh, answers.overview.stale, answers.overview.negative, answers.overview.hits) = (40, 6, 5, 900)
    answers.overview.statistics.entries = 46
    (answers.overview.statistics.insertions, answers.overview.statistics.evictions) = (1, 2)
    answers.overview.failures = 1
    (answers.overview.statistics.maxEntries, answers.overview.statistics.octets) = (100, 2049)
    let scene = try ControlScene(answers)
    let answer = try scene.client.cache(limit: 3, .text)
    #expect(!answer.isIncomplete)
    #expect(
      answer.content.hasPrefix(
        "entries   46 of 100: 40 fresh, 6 stale; 5 of them negative\nmemory    3 of 0 KiB\n"))
    #expect(
      answer.content.contains(
        "so far    1 insertion, 2 evictions\nfailures  1 question failed recently and is not retried yet\n"),
      "\(answer.content)")
    let json = try scene.client.cache(limit: 0, .json).content
    #expect(json.hasPrefix("{\"summary\":{\"entries\":46,\"max_entries\":100,"))
    #expect(json.hasSuffix("\"busiest\":[]}\n"))
    #expect(scene.raw?.exchange("GET", "/cache")?.status == 200)
    #expect(scene.journal.commands.withLock { $0 } == ["overview 3", "overview 0", "overview 50"])
  }
}
