// AnswerWatch.swift -- sums up slow and failed answers for the flight recorder, without names and clients.
//
// Resolver's loop only.

import EventLoop

/// Sums up slow and failed answers, and reports them at most once a second.
package final class AnswerWatch {
  /// An answer that takes longer is slow.
  static let slow = Duration.seconds(1)
  private static let pause = Duration.seconds(1)

  private let loop: any Loop
  private let report: (String) -> Void
  private var reportedAt: BootInstant?
  /// Set while a report is pending.
  private let timer = OwnedTimer()
  private var slowAnswers = 0
  private var longest = Duration.zero
  private var failures: [String: Int] = [:]

  /// Reasons in one report. They name servers and codes, of which there may be any number.
  private static let mostReasons = 16

  /// - Parameter report: receives each report, one line.
  package init(on loop: any Loop, _ report: @escaping (String) -> Void) {
    self.loop = loop
    self.report = report
  }

  /// Notes a client's answer. The first slow or failed one of a burst is reported at once, the others after a second.
  ///
  /// - Parameter failure: the reason for SERVFAIL; nil for any other answer.
  func answered(at now: BootInstant, took: Duration, failure: String?) {
    loop.assertCurrent()
    let isSlow = took > AnswerWatch.slow
    guard isSlow || failure != nil else { return }
    if isSlow {
      slowAnswers += 1
      longest = max(longest, took)
    }
    if let failure {
      let isNew = failures[failure] == nil
      failures[isNew && failures.count >= AnswerWatch.mostReasons ? "other reasons" : failure, default: 0] += 1
    }
    guard !timer.isSet else { return }
    guard let reportedAt, now - reportedAt < AnswerWatch.pause else { return flush(at: now) }
    timer.set(at: reportedAt + AnswerWatch.pause, on: loop, for: self) { $0.flush(at: $0.loop.now) }
  }

  /// Reports what is pending, if anything is.
  package func flush(at now: BootInstant) {
    loop.assertCurrent()
    timer.cancel()
    guard slowAnswers > 0 || !failures.isEmpty else { return }
    reportedAt = now
    report(summary)
    (slowAnswers, longest, failures) = (0, .zero, [:])
  }

  private var summary: String {
    var parts: [String] = []
    if slowAnswers > 0 {
      parts.append("\(slowAnswers) took longer than 1 s, the longest \(longest.nanoseconds / 1_000_000) ms")
    }
    parts += failures.sorted { $0.key < $1.key }.map { "\($0.value) failed: \($0.key)" }
    return "answers that had to wait: \(parts.joined(separator: "; "))"
  }
}
