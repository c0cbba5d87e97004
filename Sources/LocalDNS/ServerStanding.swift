// ServerStanding.swift -- which servers keep silent, and are asked after the others for a while.

import EventLoop

/// How servers have fared. On the loop's thread only.
struct ServerStanding {
  private struct Silence {
    var until: BootInstant
    var pause: Duration
  }

  private var silences: [SocketAddress: Silence] = [:]
  private var answers: [SocketAddress: BootInstant] = [:]

  /// For so long a server goes behind the others at first; twice as long each time that it is silent again.
  static let shortestPause = Duration.seconds(10)
  static let longestPause = Duration.seconds(300)
  /// A server that has answered something a moment ago is not silent but slow with one name.
  private static let moment = Duration.seconds(1)
  /// A bound on memory: the servers of a machine are few.
  private static let limit = 256

  /// Those that answer, and then those that keep silent, each in the given order.
  func order(_ servers: [SocketAddress], at now: BootInstant) -> [SocketAddress] {
    guard servers.contains(where: { isSilent($0, at: now) }) else { return servers }
    return servers.filter { !isSilent($0, at: now) } + servers.filter { isSilent($0, at: now) }
  }

  /// Whether the server goes behind the others.
  func isSilent(_ server: SocketAddress, at now: BootInstant) -> Bool {
    silences[server].map { now < $0.until } ?? false
  }

  /// The server has not answered in its time, or not before another one that was asked later.
  ///
  /// - Returns: whether it goes behind the others from now on, and has not before.
  mutating func wasSilent(_ server: SocketAddress, at now: BootInstant) -> Bool {
    if let answer = answers[server], now - answer < ServerStanding.moment { return false }
    guard !isSilent(server, at: now) else { return false }
    let pause = silences[server].map { min($0.pause * 2, ServerStanding.longestPause) } ?? ServerStanding.shortestPause
    if silences.count >= ServerStanding.limit { silences = [:] }
    silences[server] = Silence(until: now + pause, pause: pause)
    return true
  }

  /// The server has answered, whatever it said.
  mutating func answered(_ server: SocketAddress, at now: BootInstant) {
    silences[server] = nil
    if answers.count >= ServerStanding.limit { answers = [:] }
    answers[server] = now
  }
}
