// ProviderProbe.swift -- finds out without a client's query whether a provider's servers are well again.

import EventLoop
import HTTPClient
import HTTPDNS

extension HTTPDNSProvider {
  /// Sets the timer for the next probe, where one is needed.
  func armProbe() {
    guard !isRetired, let probe = health.probe else { return }
    let time = BootInstant(nanoseconds: probe.at)
    // One that is set may be the way back to the first server, minutes away, and now every server is down.
    if let probeTimer, probeTimer.deadline <= time { return }
    probeTimer?.cancel()
    probeTimer = loop.schedule(at: time) { [weak self] in self?.beginProbe() }
  }

  private func beginProbe() {
    probeTimer = nil
    // A success may have made it needless, a failure may have put it off.
    guard let probe = health.probe, let first = probeQuestion else { return }
    let known = good.all
    let question = known.isEmpty ? first : known[probeNumber % known.count]
    probeNumber &+= 1
    guard loop.now.nanoseconds >= probe.at else { return armProbe() }
    Task(executorPreference: loop) { [self] in await run(probe, question) }
  }

  private func run(_ probe: Probe, _ question: HTTPDNSQuestion) async {
    defer {
      tellStanding()
      armProbe()
    }
    // It is paid for like any other question.
    guard hasUnits else { return health.probeWasPutOff(now: loop.now.nanoseconds) }
    let servers = servers
    for index in probe.servers where servers.indices.contains(index) {
      let result = await ask(servers[index], .one(question), timeout: timeout)
      // What old servers say is nothing to the new ones, whose numbers are others.
      guard isCurrent(servers) else { return }
      counters.probes += 1
      switch verdict(result) {
      case .isWell:
        health.probeSucceeded(index, now: loop.now.nanoseconds)
        return replied(index)
      case .refuses(let refusal):
        // The others would say the same.
        setAside(for: refusal)
        return health.probeWasPutOff(now: loop.now.nanoseconds)
      case .saysNothing:
        counters.probes -= 1
        return health.probeWasPutOff(now: loop.now.nanoseconds)
      case .isNotWell: servers[index].connectionFailed(now: loop.now)
      }
    }
    health.probeFailed(now: loop.now.nanoseconds)
    // Clients' questions no longer come so far: only probes can tell that a new list is due.
    if health.fitness(now: loop.now.nanoseconds) == .down { schedule?.allHaveFailed() }
  }
}

extension HTTPDNSProvider {
  /// How long after an attempt that told no time the next one may begin.
  private static let timeCheckPause = Duration.seconds(5)

  /// Whether all it has are certificates that nobody can date; then the question is asked beside the client's way.
  func awaitsTime(toAsk question: HTTPDNSQuestion) -> Bool {
    guard let certificateClock, !certificateClock.isTimeKnown, !servers.isEmpty, servers.allSatisfy(\.isVerified)
    else { return false }
    hasTrouble = true
    if let next = nextTimeCheck, loop.now >= next {
      nextTimeCheck = nil
      Task(executorPreference: loop) { [self] in await askForTime(question) }
    }
    return true
  }

  /// The certificate is checked by the day of the build at least, so that the `Date` of the response can be believed.
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
  /// For people.
  var text: String {
    switch self {
    case .authentication: "it refuses the credentials"
    case .account: "it does not serve the account"
    case .parameters: "it refuses the parameters"
    case .quota: "its quota is used up"
    }
  }
}
