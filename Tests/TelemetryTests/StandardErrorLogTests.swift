// StandardErrorLogTests.swift -- one line an event, for the journal and for others.

import Glibc
import Logging
import Testing

@testable import Telemetry

@Suite(.serialized) struct `The log on standard error` {
  @Test(
    arguments: [
      (.trace, "<7>"), (.debug, "<7>"), (.info, "<6>"), (.notice, "<5>"), (.warning, "<4>"), (.error, "<3>"),
      (.critical, "<2>"),
    ] as [(Logger.Level, String)])
  func `gives the journal its priorities`(level: Logger.Level, prefix: String) throws {
    #expect(try lines(isJournal: true, level: .trace) { $0.log(level: level, "marker one") } == ["\(prefix)marker one"])
  }

  @Test func `gives others the time and the level`() throws {
    let line = try #require(try lines(isJournal: false) { $0.warning("marker two") }.first)
    let words = line.split(separator: " ", maxSplits: 2).map(String.init)
    #expect(words[1...] == ["WARNING", "marker two"])
    let digits = words[0].utf8.map { $0 >= 0x30 && $0 <= 0x39 ? "0" : String(UnicodeScalar($0)) }.joined()
    #expect(digits == "0000-00-00T00:00:00Z")
  }

  @Test func `leaves out what is below its level`() throws {
    let all = try lines(isJournal: true) { logger in
      logger.debug("marker debug")
      logger.info("marker info")
      logger.error("marker error")
    }
    #expect(all == ["<6>marker info", "<3>marker error"])
  }

  @Test func `writes values behind the message, in the order of their keys, those of the event first`() throws {
    let all = try lines(isJournal: true) { logger in
      var logger = logger
      logger[metadataKey: "server"] = "s"
      logger[metadataKey: "attempt"] = "1"
      logger.info("marker", metadata: ["attempt": "2", "name": "n"])
      #expect(logger[metadataKey: "attempt"] == "1")
    }
    #expect(all == ["<6>marker attempt=2 name=n server=s"])
  }

  @Test func `writes the error of an event`() throws {
    let all = try lines(isJournal: true) { $0.error("marker", error: Failure()) }
    #expect(all == ["<3>marker error=it broke"])
  }

  @Test func `makes one line of what has line breaks and control characters`() throws {
    let all = try lines(isJournal: true) { logger in
      logger.info("marker a\nb\r\u{1B}[31m\u{7F}c", metadata: ["k": "x\ny\u{0}z"])
    }
    #expect(all == ["<6>marker a b  [31m c k=x y z"])
  }

  @Test func `takes the journal for connected only where standard error is what systemd connected`() throws {
    var ends: [Int32] = [-1, -1]
    try #require(pipe2(&ends, O_CLOEXEC) == 0)
    defer { ends.forEach { close($0) } }
    var status = stat()
    try #require(fstat(ends[1], &status) == 0)
    let stream = "\(status.st_dev):\(status.st_ino)"
    #expect(StandardErrorLog.isJournal(stream, descriptor: ends[1]))
    #expect(!StandardErrorLog.isJournal("\(status.st_dev):\(status.st_ino + 1)", descriptor: ends[1]))
    // A shell that the journal's reader started hands its variable on to whatever runs in it.
    #expect(!StandardErrorLog.isJournal("8:12345", descriptor: ends[1]))
    for nonsense in ["", ":", "8", "x:y"] { #expect(!StandardErrorLog.isJournal(nonsense, descriptor: ends[1])) }
    #expect(!StandardErrorLog.isJournal(nil, descriptor: ends[1]))
  }

  @Test func `a threshold that changes counts for every logger that goes by it`() throws {
    let threshold = LogThreshold(.warning)
    let first = Logger(label: "test") { _ in StandardErrorLog(threshold, isJournal: false) }
    var second = first
    #expect(first.logLevel == .warning)
    threshold.level = .debug
    #expect([first.logLevel, second.logLevel] == [.debug, .debug])
    // A level of its own stays.
    second.logLevel = .error
    threshold.level = .info
    #expect([first.logLevel, second.logLevel] == [.info, .error])
    for level in Logger.Level.allCases {
      threshold.level = level
      #expect(first.logLevel == level)
    }
  }

  private struct Failure: Error, CustomStringConvertible {
    let description = "it\nbroke"
  }

  /// What `body` logs. Lines that others write meanwhile are passed on.
  private func lines(isJournal: Bool, level: Logger.Level = .info, _ body: (Logger) -> Void) throws -> [String] {
    let logger = Logger(label: "test") { _ in StandardErrorLog(LogThreshold(level), isJournal: isJournal) }
    var ends: [Int32] = [-1, -1]
    try #require(pipe2(&ends, O_CLOEXEC) == 0)
    let saved = fcntl(2, F_DUPFD_CLOEXEC, 3)
    dup2(ends[1], 2)
    body(logger)
    dup2(saved, 2)
    close(saved)
    close(ends[1])
    var octets = [UInt8](repeating: 0, count: 65_536)
    let count = read(ends[0], &octets, octets.count)
    close(ends[0])
    let all = String(decoding: octets[..<max(0, count)], as: UTF8.self).split(separator: "\n").map(String.init)
    for line in all where !line.contains("marker") { _ = write(2, "\(line)\n", line.utf8.count + 1) }
    return all.filter { $0.contains("marker") }
  }
}
