// OrderedQuestion.swift -- one question to several resolvers, of which the earlier ones take precedence.
//
// On the loop's thread only. The next resolver is asked when one has failed, or has said nothing for 300 ms. Data that
// a later one has is given at once. Its negative answer is not: the network's first resolver knows the network's names,
// and a later one denies them. Such an answer waits a second for the earlier resolvers, a tenth for silent ones, and
// says that they had none. A resolver that seems silent is asked beside the first of the others, for a sign of life.
// Besides that, three resolvers are waited for at once; before a fourth, the earliest one makes room.

import DNSWire
import EventLoop

/// Asks resolvers until one answers.
final class OrderedQuestion: @unchecked Sendable {
  /// The time of silence after which the next resolver is asked as well.
  private static let patience = Duration.milliseconds(300)
  /// How long an answer waits for a better one.
  private static let longestHold = Duration.seconds(1)
  /// The same for a resolver that seems silent: if it is alive, it has the network's names at hand.
  private static let silentHold = Duration.milliseconds(100)
  /// Maximum resolvers in flight, without one that is asked for a sign of life.
  static let mostTurns = 3

  private let client: LocalDNSClient
  private let asked: PlainQuestion
  private let servers: [PlainResolver]
  /// The places of the servers in the order in which they are asked.
  private let order: [Int]
  private let end: BootInstant
  private let objection: (Message) -> String?
  private var next = 0
  /// The place of a silent resolver that is asked beside the others; nil if none is.
  private var sign: Int?
  /// Those that are waited for, by their place in `order`; so are the failures.
  private var turns: [Int: Turn] = [:]
  private var failures: [Int: LocalDNSFailure] = [:]
  private var latest = LocalDNSFailure.timedOut
  private let timer = OwnedTimer()
  private let hold = OwnedTimer()
  /// Answers that are given if there is no better one, with the place of their server; in this order.
  private var truncated: (message: Message, place: Int)?
  private var negative: (message: Message, place: Int)?
  private var lame: (message: Message, place: Int)?
  private var continuation: CheckedContinuation<Result<LocalDNSAnswer, UnansweredQuestion>, Never>?

  private var clock: any Loop { client.sockets.clock }

  /// - Parameter objection: why a response cannot be used.
  init(
    _ client: LocalDNSClient, _ asked: PlainQuestion, _ servers: [PlainResolver], timeout: Duration,
    _ objection: @escaping (Message) -> String?
  ) {
    let now = client.sockets.clock.now
    (self.client, self.asked, self.servers) = (client, asked, servers)
    order = client.known.order(servers, at: now)
    end = now + timeout
    self.objection = objection
  }

  /// Returns the answer, or the failures.
  func run() async -> Result<LocalDNSAnswer, UnansweredQuestion> {
    let clock = self.clock
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        self.continuation = continuation
        if Task.isCancelled { cancel() } else { begin() }
      }
    } onCancel: {
      Task(executorPreference: clock) { self.cancel() }
    }
  }

  private func cancel() {
    for turn in turns.values { turn.close() }
    finish(.failure(UnansweredQuestion(reason: .cancelled)))
  }

  private func begin() {
    sign = order.indices.dropFirst().first { client.known.isDemoted(servers[order[$0]]) }
    if let sign { ask(sign) }
    if next == 0, continuation != nil { askNext() }
  }

  private func askNext() {
    timer.cancel()
    if next == sign { next += 1 }
    guard next < order.count, clock.now < end else { return turns.isEmpty ? conclude() : () }
    let counting = turns.keys.filter { $0 != sign }
    if counting.count == Self.mostTurns, let earliest = counting.min() {
      turns.removeValue(forKey: earliest)?.dismiss()
      failures[earliest] = .timedOut
    }
    let place = next
    next += 1
    if next < order.count {
      let share = (end - clock.now) / (order.count - place)
      timer.set(after: min(Self.patience, share), on: clock) { [self] in askNext() }
    }
    ask(place)
  }

  private func ask(_ place: Int) {
    let turn = Turn(client, asked, servers[order[place]], until: end) { [self] in heard($0, from: place) }
    turns[place] = turn
    turn.start()
  }

  private func heard(_ report: Turn.Report, from place: Int) {
    switch checked(report) {
    case .truncated(var message):
      message.header.tc = false
      guard objection(message) == nil else { return }
      truncated = truncated ?? (message, place)
      return holdOn()
    case .answer(let message) where message.hasData(for: asked.question): return give(message, place)
    case .answer(let message) where message.isLame:
      lame = lame ?? (message, place)
      failed(place, .referral)
    case .answer(let message): negative = negative ?? (message, place)
    case .failure(let reason): failed(place, reason)
    }
    turns[place] = nil
    guard let negative else {
      // The others have not had their time yet.
      return place == sign && timer.isSet ? () : askNext()
    }
    // A silent resolver, which is asked last, is asked too: another client's slow names may have made it seem silent.
    let silent = (next..<order.count).first { order[$0] < order[negative.place] && $0 != sign }
    if let silent {
      next = silent
      askNext()
    }
    timer.cancel()
    let earlier = turns.keys.filter { order[$0] < order[negative.place] }
    guard !earlier.isEmpty else { return conclude() }
    holdOn(for: earlier.allSatisfy { $0 == silent || $0 == sign } ? Self.silentHold : Self.longestHold)
  }

  private func checked(_ report: Turn.Report) -> Turn.Report {
    guard case .answer(let message) = report, let reason = objection(message) else { return report }
    return .failure(.unusable(.content(reason)))
  }

  private func failed(_ place: Int, _ reason: LocalDNSFailure) {
    failures[place] = reason
    latest = reason
  }

  private func holdOn(for time: Duration = longestHold) {
    if !hold.isSet { hold.set(after: time, on: clock) { [self] in conclude() } }
  }

  /// Gives the best of what there is.
  private func conclude() {
    if let (message, place) = truncated, place < negative?.place ?? .max {
      return give(message, place, isTruncated: true)
    }
    if let (message, place) = negative ?? lame { return give(message, place) }
    let steps = failures.sorted { $0.key < $1.key }.map {
      UnansweredQuestion.Step(server: servers[order[$0.key]], reason: $0.value)
    }
    finish(.failure(UnansweredQuestion(reason: latest, steps: steps)))
  }

  private func give(_ message: Message, _ place: Int, isTruncated: Bool = false) {
    var answer = LocalDNSAnswer(message: message, server: servers[order[place]])
    answer.isTruncated = isTruncated
    if !message.hasData(for: asked.question) {
      // A silent server that was not asked has precedence as well; not so one to which this machine has no way.
      let wayless = failures.filter(\.value.isWayless).map { servers[order[$0.key]] }
      let earlier = servers[..<order[place]].filter { !wayless.contains($0) }
      answer.isOutOfOrder = !earlier.isEmpty || message.isLame && servers.count > 1
      // The name exists.
      if earlier.contains(where: { client.known.hasGiven($0, asked.question.name) }) { answer.message.header.rcode = 0 }
    }
    finish(.success(answer))
  }

  private func finish(_ result: Result<LocalDNSAnswer, UnansweredQuestion>) {
    guard let continuation else { return }
    self.continuation = nil
    timer.cancel()
    hold.cancel()
    for turn in turns.values { turn.dismiss() }
    turns = [:]
    continuation.resume(returning: result)
  }
}
