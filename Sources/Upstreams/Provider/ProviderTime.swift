// ProviderTime.swift -- finds the time for checking certificates, if the machine's clock cannot be right.

import EventLoop
import HTTPClient
import HTTPDNS

extension HTTPDNSProvider {
  /// The pause after a request that did not yield the time.
  private static let timeCheckPause = Duration.seconds(5)

  /// Whether it has only servers whose certificates cannot be checked yet. If so, sends the question in the background.
  func awaitsTime(toAsk question: HTTPDNSQuestion) -> Bool {
    loop.assertCurrent()
    guard let certificateClock, !certificateClock.isTimeKnown, !servers.isEmpty, servers.allSatisfy(\.isVerified)
    else { return false }
    wasAway = true
    if let next = nextTimeCheck, loop.now >= next {
      nextTimeCheck = nil
      Task(executorPreference: loop) { [self] in await askForTime(question) }
    }
    return true
  }

  /// The certificate is checked at least against the day of the build, so that the `Date` of the response can be
  /// trusted.
  private func askForTime(_ question: HTTPDNSQuestion) async {
    let asking = OwnQuestion(question.name, now: loop.now)
    for server in servers {
      _ = await ask(server, .one(question), for: asking, timeout: timeout)
      if certificateClock?.isTimeKnown == true { break }
    }
    nextTimeCheck = loop.now + HTTPDNSProvider.timeCheckPause
  }
}
