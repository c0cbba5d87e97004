// FleetPresence.swift -- the list of daemons that share the store, and marks of steps of the store's clock.
//
// The list is a sorted set: each daemon with the time of its last heartbeat, in milliseconds of the store's clock.
//
// If the store's clock is set back, values from before seem younger than they are. A daemon that notices this adds a
// mark with the time before the step to the same set, for daemons that start later.

import EventLoop
import Files
import Store

extension FleetLevel {
  /// A daemon, and the time of its last heartbeat in milliseconds of the store's clock.
  package typealias SignedMember = (member: FleetMember, seenAt: Int64)

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

  // MARK: Heartbeats

  /// Renews our membership, at most every 30 s. Called for each lookup.
  func renewPresenceIfDue() {
    if let heartbeatAt, loop.now - heartbeatAt < FleetLevel.busyPause { return }
    sign()
  }

  /// Sends a heartbeat and, if due, counts the daemons; also starts the timer for the next idle heartbeat.
  package func sign() {
    armPresence()
    guard link.isUp, let now = clock.time else { return }
    if heartbeatAt == nil {
      lookForMarks()
      // By then daemons that started at the same time are listed, too.
      recountTimer.set(after: FleetLevel.recount, on: loop, for: self) { $0.countMembers() }
    }
    heartbeatAt = loop.now
    if link.mayWrite, !clock.isRefused {
      link.post(StoreCommand.zadd.words(keys.members, "\(now)".utf8, member.text.utf8), nil)
      let old = now - FleetMember.lifetime
      link.post(StoreCommand.zremrangebyscore.words(keys.members, "-inf".utf8, "\(old)".utf8), nil)
    }
    let pause = max(FleetLevel.busyPause, FleetLevel.countPause * (memberCount ?? 0))
    if let countedAt, loop.now - countedAt < pause { return }
    countMembers()
  }

  /// Counts the daemons, without waiting for the result.
  private func countMembers() {
    guard link.isUp else { return }
    countedAt = loop.now
    read(FleetLevel.post(link)) { [weak self] members in
      if let members { self?.memberCount = members.count }
    }
  }

  private func armPresence() {
    presence.set(after: FleetLevel.idlePause, on: loop, for: self) { $0.sign() }
  }

  // MARK: Members

  /// The listed daemons. For operators' commands: each page times out after 1 s.
  ///
  /// - Returns: nil if the store or its clock is unusable, or a reply is malformed.
  package func members() async -> [SignedMember]? {
    await withCheckedContinuation { continuation in
      read { [link] words, done in
        link.call(words, timeout: .seconds(1), done)
      } _: {
        continuation.resume(returning: $0)
      }
    }
  }

  /// The listed daemons and the age of their last heartbeat in seconds, the most recent first; empty if unknown.
  package func present() async -> [(member: FleetMember, age: Int64)] {
    guard let found = await members(), let now = clock.time else { return [] }
    return found.map { ($0.member, max(0, (now - $0.seenAt) / 1_000)) }
      .sorted { ($0.1, $0.0.host, $0.0.id) < ($1.1, $1.0.host, $1.0.id) }
  }

  private typealias Send = (_ words: [[UInt8]], _ done: @escaping StoreLink.Completion) -> Void

  /// Fire and forget: a `Send` without a timeout.
  private static func post(_ link: any StoreLink) -> Send { { words, done in link.post(words, done) } }

  /// Reads the members page by page from index `first`; calls `done` with nil if a page fails.
  private func read(
    _ send: @escaping Send, from first: Int = 0, after found: [SignedMember] = [],
    _ done: @escaping ([SignedMember]?) -> Void
  ) {
    send(range(first, first + FleetLevel.page - 1)) { [weak self] result in
      guard let self, let page = FleetLevel.scored(result), let now = clock.time else {
        return done(nil)
      }
      let members = page.members.compactMap { text, score -> SignedMember? in
        guard now - score < FleetMember.lifetime, let member = FleetMember(text: text) else { return nil }
        return (member, score)
      }
      let next = first + FleetLevel.page
      guard page.count >= FleetLevel.page, next < FleetLevel.most else {
        return done(FleetLevel.latest(found + members))
      }
      read(send, from: next, after: found + members, done)
    }
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

  /// Adds a mark: the store's clock went back, and would show `time` without that.
  func leaveMark(of time: Int64) {
    guard link.isUp, link.mayWrite else { return }
    let time = (time / FleetLevel.markUnit + 1) * FleetLevel.markUnit
    link.post(
      StoreCommand.zadd.words(
        keys.members, "\(time + FleetLevel.markLifetime)".utf8, "\(FleetLevel.markPrefix)\(time)".utf8), nil)
  }

  /// Checks whether the store's clock went back while this daemon was not connected. Either there is a mark, or another
  /// daemon's last heartbeat is in the future.
  private func lookForMarks() {
    link.post(range(-16, -1)) { [weak self] result in
      guard let self, let now = clock.time, let scored = FleetLevel.scored(result) else {
        return
      }
      // No valid heartbeat or mark has a later score: such members were added while the clock was wrong by more than a
      // day.
      let latest = now + FleetLevel.markLifetime + StoreClock.longestStep + FleetLevel.markUnit
      if scored.members.contains(where: { $0.score > latest }), link.mayWrite {
        link.post(StoreCommand.zremrangebyscore.words(keys.members, "\(latest)".utf8, "+inf".utf8), nil)
      }
      for (text, score) in scored.members where score <= latest {
        let end: Int64
        if text.hasPrefix(FleetLevel.markPrefix) {
          guard let time = text.dropFirst(FleetLevel.markPrefix.count).number(in: StoreClock.times) else { continue }
          end = time
        } else if score > now + StoreClock.leastStep {
          end = score + FleetLevel.longestUse
        } else {
          continue
        }
        follower.ignoreValues(until: min(end, now + StoreClock.longestStep))
      }
    }
  }
}
