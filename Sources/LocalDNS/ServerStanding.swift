// ServerStanding.swift -- remembers silent servers, which are asked after the others for a while.

import EventLoop

/// The recent silences and answers of servers. On the loop's thread only.
struct ServerStanding {
  private struct Silence {
    var until: BootInstant
    var pause: Duration
  }

  private var silences: [SocketAddress: Silence] = [:]
  private var answers: [SocketAddress: BootInstant] = [:]

  /// The first demotion of a silent server; each further silence doubles it up to `longestPause`.
  static let shortestPause = Duration.seconds(10)
  static let longestPause = Duration.seconds(300)
  /// A server that answered within this time is slow with one name, not silent.
  private static let moment = Duration.seconds(1)
  /// Maximum servers remembered; a machine has few.
  private static let limit = 256

  /// Moves demoted servers to the end; both groups keep the given order.
  func order(_ servers: [SocketAddress], at now: BootInstant) -> [SocketAddress] {
    guard servers.contains(where: { isSilent($0, at: now) }) else { return servers }
    return servers.filter { !isSilent($0, at: now) } + servers.filter { isSilent($0, at: now) }
  }

  /// Whether the server is currently demoted.
  func isSilent(_ server: SocketAddress, at now: BootInstant) -> Bool {
    silences[server].map { now < $0.until } ?? false
  }

  /// Records that a server did not answer in time, or not before a server that was asked later.
  ///
  /// - Returns: whether this demotes the server. False if it is demoted already.
  mutating func wasSilent(_ server: SocketAddress, at now: BootInstant) -> Bool {
    if let answer = answers[server], now - answer < ServerStanding.moment { return false }
    guard !isSilent(server, at: now) else { return false }
    let pause = silences[server].map { min($0.pause * 2, ServerStanding.longestPause) } ?? ServerStanding.shortestPause
    if silences.count >= ServerStanding.limit { silences = [:] }
    silences[server] = Silence(until: now + pause, pause: pause)
    return true
  }

  /// Records an answer with any response code; ends a demotion.
  mutating func answered(_ server: SocketAddress, at now: BootInstant) {
    silences[server] = nil
    if answers.count >= ServerStanding.limit { answers = [:] }
    answers[server] = now
  }
}
