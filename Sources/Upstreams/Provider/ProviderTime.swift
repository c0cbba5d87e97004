// ProviderTime.swift -- finds the time for checking certificates, if the machine's clock cannot be right.

import EventLoop
import HTTPClient
import HTTPDNS

extension HTTPDNSProvider {
  /// The pauses after requests that did not yield the time: the first one, and the longest.
  static let (timeCheckPause, longestTimeCheckPause) = (Duration.seconds(5), Duration.seconds(60))

  /// Whether it has only servers whose certificates cannot be checked yet. If so, sends the question in the background.
  func awaitsTime(toAsk question: HTTPDNSQuestion) -> Bool {
    loop.assertCurrent()
    guard let certificateClock, !certificateClock.isTimeKnown, !servers.isEmpty, servers.allSatisfy(\.isVerified)
    else { return false }
    wasAway = true
    if let next = nextTimeCheck, loop.now >= next, pause.left(now: loop.now) == nil {
      nextTimeCheck = nil
      Task(executorPreference: loop) { [self] in await askForTime(question) }
    }
    return true
  }

  /// The certificate is checked at least against the day of the build, so that the `Date` of the response can be
  /// trusted.
  private func askForTime(_ question: HTTPDNSQuestion) async {
    let asking = OwnQuestion(question.name, now: loop.now)
    let before = counters.values.transfers
    for server in servers {
      _ = await ask(server, .one(question), for: asking, timeout: timeout)
      if certificateClock?.isTimeKnown == true { break }
    }
    nextTimeCheck = loop.now + timeCheckPause
    // What did not reach a server cost nothing.
    if counters.values.transfers > before { timeCheckPause = min(timeCheckPause * 2, Self.longestTimeCheckPause) }
  }
}
