// StandardErrorLogTests.swift -- one line per event, for the journal and for other readers.

import Glibc
import Logging
import Testing

@testable import Telemetry

@Suite struct `The log on standard error` {
  @Test(
    arguments: [
      (.trace, "<7>"), (.debug, "<7>"), (.info, "<6>"), (.notice, "<5>"), (.warning, "<4>"), (.error, "<3>"),
      (.critical, "<2>"),
    ] as [(Logger.Level, String)])
  func `a line for the journal has its priority`(level: Logger.Level, prefix: String) throws {
    #expect(try lines(isJournal: true, level: .trace) { $0.log(level: level, "marker one") } == ["\(prefix)marker one"])
  }

  @Test func `a line for other readers has time and level`() throws {
    let line = try #require(try lines(isJournal: false) { $0.warning("marker two") }.first)
    let words = line.split(separator: " ", maxSplits: 2).map(String.init)
    #expect(words[1...] == ["WARNING", "marker two"])
    let digits = words[0].utf8.map { $0 >= 0x30 && $0 <= 0x39 ? "0" : String(UnicodeScalar($0)) }.joined()
    #expect(digits == "0000-00-00T00:00:00.000Z")
  }

  @Test func `events below the level are not logged`() throws {
    let all = try lines(isJournal: true) { logger in
      logger.debug("marker debug")
      logger.info("marker info")
      logger.error("marker error")
    }
    #expect(all == ["<6>marker info", "<3>marker error"])
  }

  @Test func `values follow the message in the order of their keys, those of the event first`() throws {
    let all = try lines(isJournal: true) { logger in
      var logger = logger
      logger[metadataKey: "server"] = "s"
      logger[metadataKey: "attempt"] = "1"
      logger.info("marker", metadata: ["attempt": "2", "name": "n"])
      #expect(logger[metadataKey: "attempt"] == "1")
    }
    #expect(all == ["<6>marker attempt=2 name=n server=s"])
  }

  @Test func `the error of an event is written`() throws {
    let all = try lines(isJournal: true) { $0.error("marker", error: Failure()) }
    #expect(all == ["<3>marker error=it broke"])
  }

  @Test func `an event with line breaks and control characters is one line`() throws {
    let all = try lines(isJournal: true) { logger in
      logger.info("marker a\nb\r\u{1B}[31m\u{7F}c\u{9B}\u{2028}d", metadata: ["k": "x\ny\u{0}z"])
    }
    #expect(all == ["<6>marker a b  [31m c  d k=x y z"])
  }

  @Test func `the journal is detected only if standard error is the descriptor that systemd connected`() throws {
    var ends: [Int32] = [-1, -1]
    try #require(pipe2(&ends, O_CLOEXEC) == 0)
    defer { ends.forEach { close($0) } }
    var status = stat()
    try #require(fstat(ends[1], &status) == 0)
    let stream = "\(status.st_dev):\(status.st_ino)"
    #expect(LogOutput.isJournal(stream, descriptor: ends[1]))
    #expect(!LogOutput.isJournal("\(status.st_dev):\(status.st_ino + 1)", descriptor: ends[1]))
    // A shell that systemd started with the journal passes the variable on to all its children.
    #expect(!LogOutput.isJournal("8:12345", descriptor: ends[1]))
    for nonsense in ["", ":", "8", "x:y"] { #expect(!LogOutput.isJournal(nonsense, descriptor: ends[1])) }
    #expect(!LogOutput.isJournal(nil, descriptor: ends[1]))
  }

  @Test func `a changed threshold applies to every logger that shares it`() throws {
    let threshold = LogThreshold(.warning)
    let output = LogOutput(threshold, descriptor: 2, isJournal: false)
    let first = Logger(label: "test") { _ in StandardErrorLog(output) }
    var second = first
    #expect(first.logLevel == .warning)
    threshold.level = .debug
    #expect([first.logLevel, second.logLevel] == [.debug, .debug])
    // A logger's own level is unchanged.
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

  @Test func `level and format can change at run time`() throws {
    let threshold = LogThreshold(.info)
    let all = try lines(threshold) { logger, output in
      logger.debug("one")
      threshold.level = .debug
      logger.debug("two")
      output.format = .json
      logger.debug("three")
    }
    #expect(all[0] == "<7>two")
    #expect(all[1].hasPrefix("<7>{\"time\":\"") && all[1].hasSuffix("\"level\":\"debug\",\"message\":\"three\"}"))
    #expect(all.count == 2)
  }

  @Test func `the recorder gets events below the level too, down to debug`() throws {
    let recorder = FlightRecorder(capacity: 8)
    let all = try lines(LogThreshold(.warning), recorder) { logger, _ in
      logger.trace("one")
      logger.debug("two", metadata: ["k": "v"])
      logger.warning("three")
    }
    #expect(all == ["<4>three"])
    #expect(recorder.events.map(\.text) == ["two k=v", "three"])
    #expect(recorder.events.map(\.level) == [.debug, .warning])
  }

  private func lines(isJournal: Bool, level: Logger.Level = .info, _ body: (Logger) -> Void) throws -> [String] {
    try lines(LogThreshold(level), isJournal: isJournal) { logger, _ in body(logger) }
  }

  /// What `body` logs.
  private func lines(
    _ threshold: LogThreshold, _ recorder: FlightRecorder? = nil, isJournal: Bool = true,
    _ body: (Logger, LogOutput) -> Void
  ) throws -> [String] {
    let pipe = try LogPipe()
    let output = LogOutput(threshold, recorder: recorder, descriptor: pipe.writeEnd, isJournal: isJournal)
    body(Logger(label: "test") { _ in StandardErrorLog(output) }, output)
    return pipe.read().split(separator: "\n").map(String.init)
  }
}
