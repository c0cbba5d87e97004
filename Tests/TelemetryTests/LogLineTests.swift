// LogLineTests.swift -- an event of any contents as text and as JSON.

import Foundation
import Logging
import Testing

@testable import Telemetry

@Suite struct `A log line` {
  private let time = LogTime(nanoseconds: 1_795_253_779_042_999_999)

  private func json(_ message: String, _ fields: [LogField] = []) throws -> [String: Any] {
    let line = LogLine(time: time, level: .warning, message: message, fields: fields).written(
      as: .json, isJournal: false)
    #expect(line.hasSuffix("}\n"))
    #expect(line.utf8.filter { $0 < 0x20 }.count == 1, "one line break, at the end")
    return try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
  }

  @Test func `a log line has its time in UTC with milliseconds`() {
    #expect(time.text == "2026-11-21T09:36:19.042Z")
    #expect(LogTime(nanoseconds: 0).text == "1970-01-01T00:00:00.000Z")
    #expect(LogTime(nanoseconds: 951_782_399_999_000_000).text == "2000-02-28T23:59:59.999Z")
  }

  @Test func `a JSON log line has time, level and message, and a member for each field`() throws {
    let object = try json("marker", [LogField("name", .text("n")), LogField("ms", .number("0.042"))])
    #expect(object["time"] as? String == "2026-11-21T09:36:19.042Z")
    #expect(object["level"] as? String == "warning")
    #expect(object["message"] as? String == "marker")
    #expect(object["name"] as? String == "n")
    #expect(object["ms"] as? Double == 0.042)
    #expect(object.count == 5)
  }

  @Test func `a JSON log line preserves every octet as a character`() throws {
    for octet in UInt8.min...UInt8.max {
      let text = "a" + String(UnicodeScalar(octet)) + "b"
      #expect(try json(text)["message"] as? String == text)
      #expect(try json("m", [LogField(text, .text(text))])[text] as? String == text)
    }
  }

  @Test func `a JSON log line preserves non-ASCII characters and repairs invalid UTF-8`() throws {
    for text in ["例え.テスト", "\u{2028}\u{2029}\u{1F600}", "e\u{301}", "\r\n"] {
      #expect(try json(text)["message"] as? String == text)
    }
    for first in UInt8(0x80)...0xFF {
      let text = String(decoding: [0x61, first, 0x22, 0x5C], as: UTF8.self)
      #expect(try json(text)["message"] as? String == text)
    }
  }

  @Test func `a JSON log line has no duplicate key`() throws {
    let object = try json("marker", ["time", "level", "message"].map { LogField($0, .text("other")) })
    #expect(object["message"] as? String == "marker")
    #expect(object["message_"] as? String == "other")
    #expect(object.count == 6)
  }

  @Test func `a JSON log line nests lists and tables of values`() throws {
    let metadata: Logger.Metadata = ["list": ["a", ["k": "v\""]], "number": .stringConvertible(7)]
    let object = try json("marker", LogField.sorted(metadata))
    let list = try #require(object["list"] as? [Any])
    #expect(list[0] as? String == "a")
    #expect(list[1] as? [String: String] == ["k": "v\""])
    #expect(object["number"] as? String == "7")
  }

  @Test func `a JSON log line for the journal begins with the priority`() {
    let line = LogLine(time: time, level: .error, message: "m").written(as: .json, isJournal: true)
    #expect(line == "<3>{\"time\":\"2026-11-21T09:36:19.042Z\",\"level\":\"error\",\"message\":\"m\"}\n")
  }

  @Test func `a text log line is one line, whatever it contains`() {
    for octet in UInt8.min...UInt8.max {
      let text = "a" + String(UnicodeScalar(octet)) + "b"
      let line = LogLine(time: time, level: .info, message: text, fields: [LogField("k", .text(text))])
        .written(as: .text, isJournal: false)
      #expect(line.utf8.count { $0 == 0x0A } == 1)
      #expect(line.unicodeScalars.dropLast().allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F ~= $0.value) })
    }
  }
}
