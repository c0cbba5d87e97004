// ProblemLog.swift -- logs failures of upstreams, and limits that the daemon has reached.

import EventLoop
import Logging
import Resolver
import Telemetry
import Upstreams

extension OccasionalLog {
  /// Logs why a provider or LocalDNS gave no answer, unless it is logged already: once a minute for each kind of
  /// failure.
  func log(_ failure: UpstreamFailure, of name: String, now: BootInstant) {
    guard !failure.isLogged else { return }
    // The step of LocalDNS names the resolvers that were asked. A provider's reason names the server itself.
    let text =
      name == "localdns"
      ? "localdns: \(failure.steps.last ?? failure.explanation)" : "provider \(name): \(failure.explanation)"
    log(.warning, reason: "\(name): \(failure.kind)", now: now.nanoseconds, text)
  }

  /// Logs that the daemon reached one of its limits: once a minute for each.
  func log(_ bound: ReachedBound, now: BootInstant) {
    log(.warning, reason: bound.word, now: now.nanoseconds, bound.warning)
  }
}
