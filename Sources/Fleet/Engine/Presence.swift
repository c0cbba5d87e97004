// Presence.swift -- the list of daemons that share the store, and marks of steps of the store's clock.
//
// The list is a sorted set: each daemon with the time of its last heartbeat, in milliseconds of the store's clock.
//
// If the store's clock is set back, values written before seem younger than they are. A daemon that notices this adds a
// mark with the old time to the same set, for daemons that start later. Resolver's loop only.

import EventLoop
import Files
import Store

/// This daemon's heartbeats, and the other daemons that have sent one.
package final class Presence {
  /// A daemon, and the time of its last heartbeat in milliseconds of the store's clock.
  typealias SignedMember = (member: FleetMember, seenAt: Int64)

  private let loop: any Loop
  private let link: any StoreLink
  private let clock: StoreClockSync
  private let follower: FlushFollower
  private let keys: FleetKeys
  private let member: FleetMember
  /// When this daemon last sent a heartbeat over this connection; nil before the first one.
  private var heartbeatAt: BootInstant?
  /// Sends heartbeats while the store is not used.
  private let idleTimer = OwnedTimer()
  /// When the daemons were last counted.
  private var countedAt: BootInstant?
  /// Counts the daemons again soon after the first heartbeat, for daemons that start together.
  private let recountTimer = OwnedTimer()
  /// The number of daemons at the last count.
  private(set) var memberCount: Int?

  /// The intervals of heartbeats while the store is used, and while it is not.
  private static let (busyPause, idlePause) = (Duration.seconds(30), Duration.seconds(600))
  /// The interval of counts is at least this for each member, so that large fleets count less often.
  private static let countPause = Duration.milliseconds(300)
  /// The time from the first heartbeat over a connection to the second count.
  private static let recount = Duration.seconds(3)
  /// Members per ZRANGE: a reply must be smaller than 64 KiB.
  private static let page = 256
  /// The most members that are read in all.
  private static let most = 4_096

  /// - Parameter member: this daemon's entry.
  init(
    _ member: FleetMember, _ keys: FleetKeys, over link: any StoreLink, on loop: any Loop, clock: StoreClockSync,
    follower: FlushFollower
  ) {
    (self.member, self.keys, self.link, self.loop) = (member, keys, link, loop)
    (self.clock, self.follower) = (clock, follower)
  }

  func close() { for timer in [idleTimer, recountTimer] { timer.cancel() } }

  // MARK: Heartbeats

  /// Forgets the last heartbeat: the connection is new, or the store has lost the list.
  func restart() { heartbeatAt = nil }

  /// Sends a heartbeat if none was sent since `restart`.
  func begin() { if heartbeatAt == nil { sendHeartbeat() } }

  /// Renews our membership, at most every 30 s. Called for each lookup.
  func renewIfDue() {
    if let heartbeatAt, loop.now - heartbeatAt < Presence.busyPause { return }
    sendHeartbeat()
  }

  /// Sends a heartbeat and, if due, counts the daemons; also starts the timer for the next idle heartbeat.
  package func sendHeartbeat() {
    idleTimer.set(after: Presence.idlePause, on: loop, for: self) { $0.sendHeartbeat() }
    guard link.isUp, let now = clock.time else { return }
    if heartbeatAt == nil {
      lookForMarks()
      // By then daemons that started at the same time are listed, too.
      recountTimer.set(after: Presence.recount, on: loop, for: self) { $0.countMembers() }
    }
    heartbeatAt = loop.now
    if link.mayWrite, !clock.isRefused {
      link.post(StoreCommand.zadd.words(keys.members, "\(now)".utf8, member.text.utf8), nil)
      let old = now - FleetMember.lifetime
      link.post(StoreCommand.zremrangebyscore.words(keys.members, "-inf".utf8, "\(old)".utf8), nil)
    }
    let pause = max(Presence.busyPause, Presence.countPause * (memberCount ?? 0))
    if let countedAt, loop.now - countedAt < pause { return }
    countMembers()
  }

  /// Counts the daemons, without waiting for the result.
  private func countMembers() {
    guard link.isUp else { return }
    countedAt = loop.now
    read { [weak self] in if let members = $0 { self?.memberCount = members.count } }
  }

  // MARK: Members

  /// The listed daemons. For operators' commands: each page times out after 1 s.
  ///
  /// - Returns: nil if the store or its clock is unusable, or a reply is malformed.
  func members() async -> [SignedMember]? {
    await withCheckedContinuation { continuation in read(timeout: .seconds(1)) { continuation.resume(returning: $0) } }
  }

  /// The listed daemons and the age of their last heartbeat in seconds, the most recent first; empty if unknown.
  package func present() async -> [(member: FleetMember, age: Int64)] {
    guard let found = await members(), let now = clock.time else { return [] }
    return found.map { ($0.member, max(0, (now - $0.seenAt) / 1_000)) }
      .sorted { ($0.1, $0.0.host, $0.0.id) < ($1.1, $1.0.host, $1.0.id) }
  }

  /// Reads the members page by page from index `first`; calls `done` with nil if a page fails.
  private func read(
    timeout: Duration? = nil, from first: Int = 0, after found: [SignedMember] = [],
    _ done: @escaping ([SignedMember]?) -> Void
  ) {
    let words = range(first, first + Presence.page - 1)
    let received: StoreLink.Completion = { [weak self] result in
      guard let self, let page = Presence.scored(result), let now = clock.time else { return done(nil) }
      let members = page.members.compactMap { text, score -> SignedMember? in
        guard now - score < FleetMember.lifetime, let member = FleetMember(text: text) else { return nil }
        return (member, score)
      }
      let next = first + Presence.page
      guard page.count >= Presence.page, next < Presence.most else { return done(Presence.latest(found + members)) }
      read(timeout: timeout, from: next, after: found + members, done)
    }
    if let timeout { link.call(words, timeout: timeout, received) } else { link.post(words, received) }
  }

  /// The last heartbeat of each daemon: after a reload with another fingerprint, a daemon is listed twice.
  private static func latest(_ members: [SignedMember]) -> [SignedMember] {
    var latest: [String: SignedMember] = [:]
    for found in members where latest[found.member.id].map({ $0.seenAt <= found.seenAt }) ?? true {
      latest[found.member.id] = found
    }
    return Array(latest.values)
  }

  /// ZRANGE with scores; negative indices count from the end.
  private func range(_ first: Int, _ last: Int) -> [[UInt8]] {
    StoreCommand.zrange.words(keys.members, "\(first)".utf8, "\(last)".utf8, "WITHSCORES".utf8)
  }

  /// Parses a ZRANGE … WITHSCORES reply; nil if malformed. `count` includes members with an invalid score.
  private static func scored(
    _ result: Result<RESPValue, StoreFailure>
  ) -> (members: [(text: String, score: Int64)], count: Int)? {
    guard case .success(.array(let words)) = result else { return nil }
    let members = stride(from: 0, to: words.count - 1, by: 2).compactMap { index -> (text: String, score: Int64)? in
      guard case .bulk(let text) = words[index], case .bulk(let score) = words[index + 1],
        let time = String(decoding: score, as: UTF8.self).number(in: StoreClock.times)
      else { return nil }
      return (String(decoding: text, as: UTF8.self), time)
    }
    return (members, words.count / 2)
  }

  // MARK: Steps of the store's clock

  /// How long a mark is needed, in milliseconds: answers from before it have expired by then.
  private static let markLifetime: Int64 = 86_400_000
  /// Times in marks are rounded up to this, in milliseconds, so that daemons that notice the same step add the same
  /// mark.
  private static let markUnit: Int64 = 10_000
  private static let markPrefix = "clock|"
  /// How long after its last heartbeat a daemon may have written answers, in milliseconds: the busy interval and a
  /// margin.
  private static let longestUse: Int64 = 40_000

  /// Adds a mark: the store's clock was set back; `time` is what it would show otherwise.
  func leaveMark(of time: Int64) {
    guard link.isUp, link.mayWrite else { return }
    let time = (time / Presence.markUnit + 1) * Presence.markUnit
    link.post(
      StoreCommand.zadd.words(
        keys.members, "\(time + Presence.markLifetime)".utf8, "\(Presence.markPrefix)\(time)".utf8), nil)
  }

  /// Checks whether the store's clock went back while this daemon was not connected. Signs of that are a mark, or a
  /// heartbeat in the future.
  private func lookForMarks() {
    link.post(range(-16, -1)) { [weak self] result in
      guard let self, let now = clock.time, let scored = Presence.scored(result) else { return }
      // No valid heartbeat or mark has a later score: such members were added while the clock was wrong by more than a
      // day.
      let latest = now + Presence.markLifetime + StoreClock.longestStep + Presence.markUnit
      if scored.members.contains(where: { $0.score > latest }), link.mayWrite {
        link.post(StoreCommand.zremrangebyscore.words(keys.members, "\(latest)".utf8, "+inf".utf8), nil)
      }
      for (text, score) in scored.members where score <= latest {
        let end: Int64
        if text.hasPrefix(Presence.markPrefix) {
          guard let time = text.dropFirst(Presence.markPrefix.count).number(in: StoreClock.times) else { continue }
          end = time
        } else if score > now + StoreClock.leastStep {
          end = score + Presence.longestUse
        } else {
          continue
        }
        follower.ignoreValues(until: min(end, now + StoreClock.longestStep))
      }
    }
  }
}
