// ServerOrder.swift -- which server of a provider is asked first, which ones are left out, and when a handshake is due.
//
// A question that has failed at one server goes to the next one. Only a verdict from that server puts it first.
// Failures alone do not, so that names that hang cannot lead other names to a dead server. A server is left out only
// because of its connections, which no client and no zone can influence: an address that refuses them, or a server that
// gives no sign of life. Handshakes are not billed.

import EventLoop

/// The servers of one provider, by number. Pure: times are parameters.
struct ServerOrder: ~Copyable {
  /// Why a server is left out.
  struct Loss: Hashable {
    var since: BootInstant
    /// Human-readable.
    var reason: String
    /// What helps, human-readable; empty if nothing is known.
    var advice = ""
    /// Whether this machine has no route to it: no handshake shows more before the network changes.
    var hasNoRoute = false
  }

  /// A handshake that is due.
  struct Handshake: Hashable {
    var server: Int
    /// How long it may take.
    var time = ServerOrder.longestHandshake
  }

  private struct State {
    /// Transfers without a verdict that began after its last one.
    var failures = 0
    var verdictAt = BootInstant(nanoseconds: .min)
    var loss: Loss?
    /// When the oldest request was sent after which nothing has come from it.
    var unansweredSince: BootInstant?
    var lastHandshake = BootInstant(nanoseconds: .min)
    var isShakingHands = false
  }

  private var states: [State]
  private var current = 0
  private var movedAt: BootInstant?
  /// Whether the first server has shaken hands, so that the next question goes there.
  private var isReturning = false
  /// Clients that have asked the first server since a verdict put another one first; nil if it lost its place otherwise.
  private var triedFirst: Set<UInt64>?
  private var wantedAt = BootInstant(nanoseconds: .min)
  private let attemptsBeforeSwitch: Int
  private let returnToFirst: Duration

  /// Handshakes with servers that are left out: one round in this time, each with this many servers at most …
  static let interval = Duration.seconds(1)
  private static let mostInRound = 3
  /// … and less often when the last question that they would have got is this old.
  private static let (idleInterval, idleTime) = (Duration.seconds(10), Duration.seconds(600))
  static let longestHandshake = Duration.seconds(3)
  /// The most clients that try the first server once more.
  private static let mostTries = 64
  /// A server that was heard within this time is alive, whatever becomes of a new connection; with an open connection, on
  /// which questions without answers may keep it from saying anything, it has longer.
  static func moment(isConnected: Bool) -> Duration { .seconds(isConnected ? 10 : 1) }

  init(count: Int, attemptsBeforeSwitch: Int, returnToFirst: Duration) {
    states = Array(repeating: State(), count: count)
    self.attemptsBeforeSwitch = attemptsBeforeSwitch
    self.returnToFirst = returnToFirst
  }

  /// The servers to ask, the preferred one first, then those with the fewest failures: a question asks a few of them, and
  /// every one gets its turn.
  var servers: [Int] {
    guard states.count > 1 else { return isOutOfReach ? [] : [0] }
    let others = (1..<states.count).map { (current + $0) % states.count }
    return ([current] + others.sorted { states[$0].failures < states[$1].failures }).filter { states[$0].loss == nil }
  }

  /// The server that is asked first; nil if every server is left out.
  var first: Int? { servers.first }

  /// Whether every server is left out; true without servers.
  var isOutOfReach: Bool { states.allSatisfy { $0.loss != nil } }

  /// The latest loss, if every server is left out: since then the provider is not asked.
  var loss: Loss? { isOutOfReach ? states.compactMap(\.loss).max { $0.since < $1.since } : nil }

  /// Whether any server is left out.
  var hasLosses: Bool { states.contains { $0.loss != nil } }

  /// The reasons why servers are left out.
  var losses: [(server: Int, loss: Loss)] {
    states.indices.compactMap { index in states[index].loss.map { (index, $0) } }
  }

  /// Whether a question goes to the first server, and after a while to the present one: the next question of all when a
  /// handshake with the first one has succeeded, and one of each client when a verdict has put another one first. That may
  /// have been a name that only this one answers, and the first one still answers the names of others. Asked once a question.
  ///
  /// - Parameter client: the client's share; 0 for the daemon's own questions, which do not try.
  mutating func takeReturn(of client: UInt64) -> Bool {
    defer { isReturning = false }
    guard current != 0, states[0].loss == nil else { return false }
    guard client != 0, (triedFirst?.count ?? .max) < ServerOrder.mostTries else { return isReturning }
    return triedFirst?.insert(client).inserted == true || isReturning
  }

  // MARK: What happens

  /// A request goes to a server, from which something came last at `heardAt`.
  mutating func sent(to server: Int, heardAt: BootInstant, now: BootInstant) {
    if let since = states[server].unansweredSince, heardAt < since { return }
    states[server].unansweredSince = now
  }

  /// A request has ended without a reply, and not because its time was over: nothing waits for the server.
  mutating func isOver(_ server: Int) { states[server].unansweredSince = nil }

  /// A server has given a verdict. It is asked first from now on if the one that was has failed too often since its own.
  ///
  /// - Parameter endsSilence: whether no server gave one before, for a while; then this one is asked first.
  /// - Returns: whether it has got the place of a server that comes before it.
  @discardableResult
  mutating func gaveVerdict(_ server: Int, endsSilence: Bool = false, now: BootInstant) -> Bool {
    (states[server].failures, states[server].verdictAt) = (0, now)
    states[server].loss = nil
    if server == 0 { (current, movedAt) = (0, nil) }
    guard server != current, endsSilence || states[current].failures >= attemptsBeforeSwitch else { return false }
    if current == 0 { triedFirst = [] }
    (current, movedAt) = (server, now)
    return true
  }

  /// A transfer ended without a verdict for which another server may do better. Names that hang say nothing about a server
  /// that has given a verdict meanwhile.
  mutating func failed(_ server: Int, sentAt: BootInstant, now: BootInstant) {
    if server == 0, current != 0 { movedAt = now }
    if sentAt >= states[server].verdictAt { states[server].failures += 1 }
  }

  /// A server cannot be reached.
  ///
  /// - Returns: whether that is news.
  mutating func lose(_ server: Int, _ loss: Loss) -> Bool {
    guard states[server].loss == nil else { return false }
    states[server] = State(loss: loss, lastHandshake: loss.since, isShakingHands: states[server].isShakingHands)
    wantedAt = max(wantedAt, loss.since)
    if isOutOfReach {
      // Whichever comes back first is asked; the order begins again.
      (current, movedAt) = (0, nil)
    } else if server == current {
      (current, movedAt, triedFirst) = (servers[0], loss.since, nil)
    }
    return true
  }

  /// Questions that servers which are left out would have got.
  mutating func isWanted(now: BootInstant) { wantedAt = now }

  /// Everything is open again on another network.
  mutating func networkHasChanged() { states = Array(repeating: State(), count: states.count) }

  // MARK: Handshakes

  /// The handshakes that are due, which count as begun.
  ///
  /// - Parameters:
  ///   - silence: after this time without anything from a server, a handshake shows whether it is there.
  ///   - time: how long that handshake may take.
  ///   - isUrgent: whether a question waits for any server.
  ///   - heardAt: when something came from a server last.
  mutating func takeHandshakes(
    silence: Duration, time: Duration = ServerOrder.interval, isUrgent: Bool = false, now: BootInstant,
    heardAt: (Int) -> BootInstant
  ) -> [Handshake] {
    for index in states.indices {
      if let since = states[index].unansweredSince, heardAt(index) >= since { states[index].unansweredSince = nil }
    }
    var due = states.indices.filter { silenceEnds($0, silence).map { $0 <= now } ?? false }.map {
      Handshake(server: $0, time: time)
    }
    if let round = nextRound(isUrgent, now), round <= now {
      let oldest = lost(isUrgent).sorted { states[$0].lastHandshake < states[$1].lastHandshake }
      due += oldest.prefix(ServerOrder.mostInRound).map { Handshake(server: $0) }
    }
    if let returnIsDue, returnIsDue <= now { due.append(Handshake(server: 0)) }
    for handshake in due {
      (states[handshake.server].isShakingHands, states[handshake.server].lastHandshake) = (true, now)
    }
    return due
  }

  /// When the next handshake is due; nil if none is.
  func nextHandshake(silence: Duration, now: BootInstant) -> BootInstant? {
    (states.indices.map { silenceEnds($0, silence) } + [nextRound(false, now), returnIsDue]).compactMap(\.self).min()
  }

  /// A handshake has ended: successfully, or the server was heard meanwhile, or neither. What was sent after that is still
  /// unanswered.
  mutating func ended(_ server: Int, _ isAlive: Bool, now: BootInstant) {
    states[server].isShakingHands = false
    if isAlive { states[server].loss = nil }
    guard server == 0, let returnIsDue, returnIsDue <= now else { return }
    (isReturning, movedAt) = (isAlive, now)
  }

  private func silenceEnds(_ server: Int, _ silence: Duration) -> BootInstant? {
    let state = states[server]
    guard let since = state.unansweredSince, state.loss == nil, !state.isShakingHands else { return nil }
    return max(since + silence, state.lastHandshake + ServerOrder.interval)
  }

  /// The servers that are left out and may get a handshake.
  private func lost(_ isUrgent: Bool) -> [Int] {
    losses.filter { !states[$0.server].isShakingHands && (isUrgent || !$0.loss.hasNoRoute) }.map(\.server)
  }

  /// When some of them get one; nil if there are none.
  private func nextRound(_ isUrgent: Bool, _ now: BootInstant) -> BootInstant? {
    guard !lost(isUrgent).isEmpty, let last = losses.map({ states[$0.server].lastHandshake }).max() else { return nil }
    let isIdle = !isUrgent && now >= wantedAt + ServerOrder.idleTime
    return last + (isIdle ? ServerOrder.idleInterval : ServerOrder.interval)
  }

  private var returnIsDue: BootInstant? {
    guard current != 0, states[0].loss == nil, !states[0].isShakingHands, !isReturning else { return nil }
    return movedAt.map { $0 + returnToFirst }
  }
}
