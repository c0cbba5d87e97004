// Preload.swift -- resolves questions before a client asks, several per transfer if the provider supports that.
//
// Resolver's loop only.

import MessageCache

/// One run through a list of questions.
struct Preload {
  let refresher: Refresher
  /// The heat of questions that may have no entry any more; for others it is that of the entry.
  let heat: [RoutedQuestion: Heat]
  /// Whether the refresh budget applies; at start it does not.
  let isBudgeted: Bool

  /// The maximum number of concurrent transfers: more would displace clients' questions.
  private static let maxInFlight = 8

  /// Resolves the questions, a few transfers at a time.
  ///
  /// - Returns: the number of questions that have an answer.
  func resolve(_ names: [RoutedQuestion]) async -> Int {
    var waiting = batches(names)[...]
    return await withTaskGroup(of: Int.self) { group in
      func startNext() {
        guard let batch = waiting.popFirst() else { return }
        group.addTask(executorPreference: refresher.loop) { [self] in
          isBudgeted ? await sendWithinBudget(batch) : await send(batch)
        }
      }
      for _ in 0..<Preload.maxInFlight { startNext() }
      var answered = 0
      while let count = await group.next() {
        answered += count
        startNext()
      }
      return answered
    }
  }

  private func batches(_ names: [RoutedQuestion]) -> [RefreshBatch] {
    var (alone, gathered) = ([RefreshBatch](), RefreshBatches())
    for asked in names {
      let question = refreshed(asked)
      if let source = refresher.source(for: asked, after: .unknown) {
        if let batch = gathered.add(question, to: source, deadline: .min) { alone.append(batch) }
      } else {
        alone.append(RefreshBatch(source: nil, questions: [question]))
      }
    }
    return alone + gathered.takeClosed(now: .max)
  }

  private func sendWithinBudget(_ batch: RefreshBatch) async -> Int {
    guard let source = batch.source else { return 0 }
    let isPaid = refresher.takeFromBudget(batch.questions.map(\.asked), source)
    let paid = zip(batch.questions, isPaid).filter(\.1).map(\.0)
    return paid.isEmpty ? 0 : await ask(paid, source).count { $0 }
  }

  /// Sends a batch. Questions that get no answer are then resolved one by one as for a client, with retries and fallback.
  private func send(_ batch: RefreshBatch) async -> Int {
    // A client's question or a refresh may have brought an answer since the list was made.
    var rest = batch.questions.filter { !refresher.isFresh($0.asked) }
    if let source = batch.source, rest.count > 1 { rest = zip(rest, await ask(rest, source)).filter { !$1 }.map(\.0) }
    var answered = batch.questions.count - rest.count
    for question in rest {
      let isFresh = refresher.isFresh(question.asked)
      if isFresh { answered += 1 } else if await refresher.resolver.askAgain(question.asked) { answered += 1 }
    }
    return answered
  }

  private func ask(_ questions: [RefreshedQuestion], _ source: EntrySource) async -> [Bool] {
    // Their entries may have got hits in the meantime.
    await refresher.resolver.refresh(questions.map { refreshed($0.asked) }, from: source)
  }

  private func refreshed(_ asked: RoutedQuestion) -> RefreshedQuestion { refresher.refreshed(asked, heat: heat[asked]) }
}
