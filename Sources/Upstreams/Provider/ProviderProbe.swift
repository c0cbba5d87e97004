// ProviderProbe.swift -- tests without a client's query whether a provider's servers have recovered.

import EventLoop
import HTTPClient
import HTTPDNS

extension HTTPDNSProvider {
  /// Schedules the next probe if one is needed.
  func armProbe() {
    guard !isRetired, let probe = health.probe else { return }
    let time = BootInstant(nanoseconds: probe.at)
    // The timer may be set for the return to the first server, minutes away, while now every server is down.
    if let probeTimer, probeTimer.deadline <= time { return }
    probeTimer?.cancel()
    probeTimer = loop.schedule(at: time) { [weak self] in self?.beginProbe() }
  }

  private func beginProbe() {
    probeTimer = nil
    // A success may have made the probe unnecessary, or a failure may have postponed it.
    guard let probe = health.probe, let first = probeQuestion else { return }
    let known = good.all
    let question = known.isEmpty ? first : known[probeNumber % known.count]
    probeNumber &+= 1
    guard loop.now.nanoseconds >= probe.at else { return armProbe() }
    Task(executorPreference: loop) { [self] in await run(probe, question) }
  }

  private func run(_ probe: Probe, _ question: HTTPDNSQuestion) async {
    defer {
      logStateChange()
      armProbe()
    }
    // A probe costs units like any other question.
    guard hasUnits else { return health.probeWasPutOff(now: loop.now.nanoseconds) }
    let servers = servers
    for index in probe.servers where servers.indices.contains(index) {
      let result = await ask(servers[index], .one(question), timeout: timeout)
      // The indices of the old servers do not apply to a new list.
      guard isCurrent(servers) else { return }
      counters.probes += 1
      switch verdict(result) {
      case .isWell:
        health.probeSucceeded(index, now: loop.now.nanoseconds)
        return replied(index)
      case .refuses(let refusal):
        // The other servers would reply the same.
        setAside(for: refusal)
        return health.probeWasPutOff(now: loop.now.nanoseconds)
      case .saysNothing:
        counters.probes -= 1
        return health.probeWasPutOff(now: loop.now.nanoseconds)
      case .isNotWell: servers[index].connectionFailed(now: loop.now)
      }
    }
    health.probeFailed(now: loop.now.nanoseconds)
    // While the provider is down it gets no clients' questions, so only probes can trigger a new list of servers.
    if health.fitness(now: loop.now.nanoseconds) == .down { schedule?.allHaveFailed() }
  }
}

extension HTTPDNSProvider {
  /// The pause after a request that did not yield the time.
  private static let timeCheckPause = Duration.seconds(5)

  /// Whether it has only servers whose certificates cannot be checked yet. If so, sends the question in the background.
  func awaitsTime(toAsk question: HTTPDNSQuestion) -> Bool {
    loop.assertCurrent()
    guard let certificateClock, !certificateClock.isTimeKnown, !servers.isEmpty, servers.allSatisfy(\.isVerified)
    else { return false }
    hasTrouble = true
    if let next = nextTimeCheck, loop.now >= next {
      nextTimeCheck = nil
      Task(executorPreference: loop) { [self] in await askForTime(question) }
    }
    return true
  }

  /// The certificate is checked at least against the day of the build, so that the `Date` of the response can be
  /// trusted.
  private func askForTime(_ question: HTTPDNSQuestion) async {
    for server in servers {
      counters.probes += 1
      _ = await ask(server, .one(question), timeout: timeout)
      if certificateClock?.isTimeKnown == true { break }
    }
    nextTimeCheck = loop.now + HTTPDNSProvider.timeCheckPause
  }
}

extension AsideReason {
  /// Human-readable text for logs and reports.
  var text: String {
    switch self {
    case .authentication: "it refuses the credentials"
    case .request: "it refuses the requests"
    case .account: "it does not serve the account"
    case .switchedOff: "its list of servers says that the service is switched off"
    case .parameters: "it refuses the parameters"
    case .quota: "it reports too many requests"
    }
  }
}
