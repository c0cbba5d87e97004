// ProviderProbe.swift -- finds out without a client's query whether a provider's servers are well again.

import EventLoop
import HTTPDNS
import ProviderPool

extension HTTPDNSProvider {
  /// Sets the timer for the next probe, where one is needed.
  func armProbe() {
    guard probeTimer == nil, let probe = health.probe else { return }
    probeTimer = loop.schedule(at: BootInstant(nanoseconds: probe.at)) { [weak self] in self?.beginProbe() }
  }

  private func beginProbe() {
    probeTimer = nil
    // A success may have made it needless, a failure may have put it off.
    guard let probe = health.probe, let question = probeQuestion else { return }
    guard loop.now.nanoseconds >= probe.at else { return armProbe() }
    Task(executorPreference: loop) { [self] in await run(probe, question) }
  }

  private func run(_ probe: Probe, _ question: HTTPDNSQuestion) async {
    let servers = servers
    for index in probe.servers where servers.indices.contains(index) {
      counters.probes += 1
      if case .success = await ask(servers[index], .one(question), timeout: timeout) {
        health.probeSucceeded(index, now: loop.now.nanoseconds)
        return armProbe()
      }
    }
    health.probeFailed(now: loop.now.nanoseconds)
    armProbe()
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
