// FleetPresence.swift -- which daemons share the store, and marks of steps of its clock.
//
// The members of a sorted set are daemons, by the time of their last sign of life in milliseconds of the store's clock. After
// the store's clock was set back, the set also has a mark of when that was: a daemon that starts later finds it there.

import EventLoop
import Files
import Fleet
import Store

extension FleetLevel {
  /// A daemon, and when it gave its last sign of life, in milliseconds of the store's clock.
  package typealias SignedMember = (member: FleetMember, seenAt: Int64)

  /// The pause between signs of life while the store is used, and while it is not.
  private static let (busyPause, idlePause) = (Duration.seconds(30), Duration.seconds(600))
  /// The pause between counts of the members, for each of them: in a large fleet all count less often.
  private static let countPause = Duration.milliseconds(300)
  /// When they are counted again after the first sign of life over a connection.
  private static let recount = Duration.seconds(3)
  /// How many members are read at once: a reply has to be less than 64 KiB.
  private static let page = 256
  /// The most members that are read.
  private static let most = 4_096

  // MARK: Signs of life

  /// A question is being looked for: the others see that this daemon is there.
  func renewPresenceIfDue() {
    if let heartbeatAt, loop.now - heartbeatAt < FleetLevel.busyPause { return }
    sign()
  }

  /// Gives a sign of life, and looks who else does.
  package func sign() {
    armPresence()
    guard link.isUp, let now = clock.time(at: loop.now.nanoseconds) else { return }
    if heartbeatAt == nil {
      lookForMarks()
      // Others that have just started are there by then.
      recountTimer.set(after: FleetLevel.recount, on: loop, for: self) { $0.countMembers() }
    }
    heartbeatAt = loop.now
    if link.mayWrite, !clock.isOff || !keys.hasSecret {
      link.post([FleetLevel.add, keys.members, Array("\(now)".utf8), Array(member.text.utf8)], nil)
      let old = now - FleetMember.lifetime
      link.post([FleetLevel.removeByTime, keys.members, Array("-inf".utf8), Array("\(old)".utf8)], nil)
    }
    let pause = max(FleetLevel.busyPause, FleetLevel.countPause * (memberCount ?? 0))
    if let countedAt, loop.now - countedAt < pause { return }
    countMembers()
  }

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

  /// The daemons that are there. For a person, who waits for up to a second.
  ///
  /// - Returns: nil if the store does not say.
  package func members() async -> [SignedMember]? {
    await withCheckedContinuation { continuation in
      read { [link] words, done in
        link.call(words, timeout: .seconds(1), done)
      } _: {
        continuation.resume(returning: $0)
      }
    }
  }

  /// The daemons that are there, the one seen last first, and how many seconds ago that was.
  package func present() async -> [(member: FleetMember, age: Int64)] {
    guard let found = await members(), let now = clock.time(at: loop.now.nanoseconds) else { return [] }
    return found.map { ($0.member, max(0, (now - $0.seenAt) / 1_000)) }
      .sorted { ($0.1, $0.0.host, $0.0.id) < ($1.1, $1.0.host, $1.0.id) }
  }

  private typealias Send = (_ words: [[UInt8]], _ done: @escaping StoreLink.Completion) -> Void

  /// Sends a command that nobody waits for.
  private static func post(_ link: any StoreLink) -> Send { { words, done in link.post(words, done) } }

  /// Reads the members page by page, from one of them on; nil if the store does not say.
  private func read(
    _ send: @escaping Send, from first: Int = 0, after found: [SignedMember] = [],
    _ done: @escaping ([SignedMember]?) -> Void
  ) {
    send(range(first, first + FleetLevel.page - 1)) { [weak self] result in
      guard let self, let page = FleetLevel.scored(result), let now = clock.time(at: loop.now.nanoseconds) else {
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

  /// One sign of life for each daemon: after a reload it has another fingerprint.
  private static func latest(_ members: [SignedMember]) -> [SignedMember] {
    var latest: [String: SignedMember] = [:]
    for found in members where latest[found.member.id].map({ $0.seenAt <= found.seenAt }) ?? true {
      latest[found.member.id] = found
    }
    return Array(latest.values)
  }

  private func range(_ first: Int, _ last: Int) -> [[UInt8]] {
    [
      Array("ZRANGE".utf8), keys.members, Array("\(first)".utf8), Array("\(last)".utf8), Array("WITHSCORES".utf8),
    ]
  }

  /// The members of a reply by score, without those whose score is no time, and how many it had; nil if it is none.
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

  private static let add = Array("ZADD".utf8)
  private static let removeByTime = Array("ZREMRANGEBYSCORE".utf8)

  // MARK: Steps of the store's clock

  /// How long a mark stays: by then answers from before it have expired, in milliseconds.
  private static let markLifetime: Int64 = 86_400_000
  /// Daemons that see the same step are to make the same mark, in milliseconds.
  private static let markUnit: Int64 = 10_000
  private static let markPrefix = "clock|"
  /// For how much longer than its last sign of life a daemon may have stored answers, in milliseconds.
  private static let longestUse: Int64 = 40_000

  /// The store's clock has gone back from a time: values from until then seem younger than they are.
  func leaveMark(of time: Int64) {
    guard link.isUp, link.mayWrite else { return }
    let time = (time / FleetLevel.markUnit + 1) * FleetLevel.markUnit
    link.post(
      [
        FleetLevel.add, keys.members, Array("\(time + FleetLevel.markLifetime)".utf8),
        Array("\(FleetLevel.markPrefix)\(time)".utf8),
      ], nil)
  }

  /// Finds out whether the store's clock has gone back while this daemon did not see it: by a mark, or by a daemon that was
  /// there later than now.
  private func lookForMarks() {
    link.post(range(-16, -1)) { [weak self] result in
      guard let self, let now = clock.time(at: loop.now.nanoseconds), let scored = FleetLevel.scored(result) else {
        return
      }
      // Of a time that was never right: what was stored then has expired.
      let latest = now + FleetLevel.markLifetime + StoreClock.longestStep + FleetLevel.markUnit
      if scored.members.contains(where: { $0.score > latest }), link.mayWrite {
        link.post([FleetLevel.removeByTime, keys.members, Array("\(latest)".utf8), Array("+inf".utf8)], nil)
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
        flushes.record(.everything, at: min(end, now + StoreClock.longestStep))
      }
    }
  }
}
