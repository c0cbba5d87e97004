// FlightRecorderTests.swift -- the last events in order, limited in number and size.

import Glibc
import Logging
import Testing

@testable import Telemetry

@Suite struct `The flight recorder` {
  private func time(_ number: Int) -> LogTime { LogTime(nanoseconds: Int64(number)) }

  @Test func `the flight recorder holds events with time and level in order`() {
    let recorder = FlightRecorder(capacity: 4)
    #expect(recorder.events == [])
    for (number, level) in Logger.Level.allCases.prefix(3).enumerated() {
      recorder.record(time(number), level, "event \(number)")
    }
    #expect(
      recorder.events
        == Logger.Level.allCases.prefix(3).enumerated().map {
          RecordedEvent(time: time($0.offset), level: $0.element, text: "event \($0.offset)")
        })
  }

  @Test(arguments: [1, 2, 3, 4, 5, 8, 11])
  func `the flight recorder overwrites the oldest events`(count: Int) {
    let recorder = FlightRecorder(capacity: 4)
    for number in 0..<count { recorder.record(time(number), .info, "\(number)") }
    #expect(recorder.events.map(\.text) == (max(0, count - 4)..<count).map { "\($0)" })
  }

  @Test func `the flight recorder truncates long texts between characters`() {
    let recorder = FlightRecorder(capacity: 2)
    let text = "a" + String(repeating: "é", count: 200)
    recorder.record(time(0), .info, text)
    let kept = recorder.events[0].text
    #expect(kept.utf8.count <= FlightRecorder.longestText)
    #expect(kept.utf8.count >= FlightRecorder.longestText - 1)
    #expect(text.hasPrefix(kept))
    recorder.record(time(1), .info, "")
    #expect(recorder.events[1].text == "")
  }

  @Test func `the flight recorder takes at most a megabyte`() {
    #expect(FlightRecorder.usualCapacity * (FlightRecorder.longestText + 10) <= 1 << 20)
  }

  @Test func `the flight recorder keeps the order of each of several threads`() {
    let recorder = FlightRecorder(capacity: 2048)
    final class Job: Sendable {
      let recorder: FlightRecorder
      let number: Int
      init(_ recorder: FlightRecorder, _ number: Int) { (self.recorder, self.number) = (recorder, number) }
    }
    let threads = (0..<4).map { number in
      var thread = pthread_t()
      let context = Unmanaged.passRetained(Job(recorder, number)).toOpaque()
      pthread_create(
        &thread, nil,
        { context in
          let job = Unmanaged<Job>.fromOpaque(context!).takeRetainedValue()
          for step in 0..<2000 { job.recorder.record(.now, .debug, "\(job.number) \(step)") }
          return nil
        }, context)
      return thread
    }
    for thread in threads { pthread_join(thread, nil) }
    let events = recorder.events.map { $0.text.split(separator: " ").compactMap { Int($0) } }
    #expect(events.count == 2048)
    for number in 0..<4 {
      let steps = events.filter { $0[0] == number }.map { $0[1] }
      #expect(steps == steps.sorted())
      if let last = steps.last { #expect(last == 1999) }
    }
  }
}
