// ProviderStateLog.swift -- logs at level debug when a provider goes down, recovers or switches to another server.

import EventLoop
import Logging

/// The state of a provider that was logged last.
struct LoggedProviderState: Equatable {
  var isDown = false
  /// The number of the server that is asked first.
  var server = 0
}

extension HTTPDNSProvider {
  /// Logs what has changed since the last call.
  func logStateChange() {
    let fitness = health.fitness(now: loop.now.nanoseconds)
    // Backing off is logged elsewhere and says nothing about the servers.
    if case .aside = fitness { return }
    let standing = LoggedProviderState(isDown: fitness == .down, server: health.rotation.current)
    guard standing != loggedState else { return }
    let hasComeBack = loggedState.isDown && !standing.isDown
    loggedState = standing
    guard !standing.isDown else { return note(.debug, "provider \(name): all of its servers are down") }
    let server = servers.indices.contains(standing.server) ? "\(servers[standing.server])" : "none"
    note(.debug, "provider \(name): \(hasComeBack ? "is back; " : "")\(server) is asked first")
  }
}
