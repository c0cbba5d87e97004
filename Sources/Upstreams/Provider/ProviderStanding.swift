// ProviderStanding.swift -- tells in the log's details when a provider goes down, comes back, or another server takes over.

import EventLoop
import Logging

/// How a provider stands.
struct ProviderStanding: Equatable {
  var isDown = false
  /// The number of the server that is asked first.
  var server = 0
}

extension HTTPDNSProvider {
  /// Says what has changed since the last time, for who looks for the course of events.
  func tellStanding() {
    let fitness = health.fitness(now: loop.now.nanoseconds)
    // That it is left alone has been told, and says nothing about its servers.
    if case .aside = fitness { return }
    let standing = ProviderStanding(isDown: fitness == .down, server: health.rotation.current)
    guard standing != toldStanding else { return }
    let hasComeBack = toldStanding.isDown && !standing.isDown
    toldStanding = standing
    guard !standing.isDown else { return note(.debug, "provider \(name): all of its servers are down") }
    let server = servers.indices.contains(standing.server) ? "\(servers[standing.server])" : "none"
    note(.debug, "provider \(name): \(hasComeBack ? "is back; " : "")\(server) is asked first")
  }
}
