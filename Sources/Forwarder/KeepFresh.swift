// KeepFresh.swift -- fetches the names of `refresh.keep` at start and again before their TTLs run out.
//
// Resolver's loop only; one timer for the next event.

import DNSWire
import EventLoop
import HTTPDNS
import Refresh

/// Keeps a fixed list of questions answered in the cache.
final class KeepFresh: @unchecked Sendable {
  private let questions: [(question: HTTPDNSQuestion, route: UInt16)]
  private var schedule: KeepSchedule
  private let resolver: Resolver
  private let loop: any Loop
  private var timer: LoopTimer?
  private var waiting: [Int] = []
  private var underWay = 0

  /// Fetches at once: more would crowd out clients' questions.
  private static let mostUnderWay = 8

  init(
    _ questions: [(question: HTTPDNSQuestion, route: UInt16)], fraction: Double, shortest: Duration,
    resolver: Resolver, loop: any Loop
  ) {
    self.questions = questions
    self.resolver = resolver
    self.loop = loop
    schedule = KeepSchedule(count: questions.count, fraction: fraction, shortest: shortest.nanoseconds)
  }

  /// Fetches what is due and sets the timer for what comes next.
  func start() {
    waiting += schedule.take(now: loop.now.nanoseconds)
    fetchWaiting()
    timer?.cancel()
    timer = schedule.nextDue.map { due in
      loop.schedule(at: BootInstant(nanoseconds: due)) { [unowned self] in start() }
    }
  }

  private func fetchWaiting() {
    while underWay < KeepFresh.mostUnderWay, !waiting.isEmpty {
      let index = waiting.removeFirst()
      underWay += 1
      Task(executorPreference: loop) { [self] in await fetch(index) }
    }
  }

  private func fetch(_ index: Int) async {
    let entry = questions[index]
    let answer = await resolver.resolve(entry.question, route: entry.route, fresh: true)
    let now = loop.now.nanoseconds
    if answer.failure == nil, answer.lifetime > 0 {
      schedule.succeeded(index, lifetime: Int64(answer.lifetime) * 1_000_000_000, now: now)
    } else {
      schedule.failed(index, now: now)
    }
    underWay -= 1
    start()
  }
}
