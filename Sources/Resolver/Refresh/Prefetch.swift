// Prefetch.swift -- resolves names before a client asks: at start, after a flush, and after a change of network.
//
// Resolver's loop only.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Refresh

/// The questions of one transfer.
struct RefreshTransfer {
  /// The source to ask; nil if none is fit for a refresh now.
  var source: EntrySource?
  var asked: [RoutedQuestion]
}

/// The source and the route of questions that may share a transfer.
struct RefreshJourney: Hashable {
  var source: EntrySource
  var route: UInt16

  /// The transfers for a group of names. A transfer asks for all its names in all its families, so names that need both
  /// families get a transfer of their own.
  func transfers(of group: RefreshGroup<DomainName>) -> [RefreshTransfer] {
    [RefreshFamilies.both, .ipv4, .ipv6].compactMap { families in
      let asked = group.members.filter { $0.families == families }.flatMap { member in
        families.types.map {
          RoutedQuestion(question: HTTPDNSQuestion(name: member.name, type: $0), route: route)
        }
      }
      return asked.isEmpty ? nil : RefreshTransfer(source: source, asked: asked)
    }
  }
}

extension Refresher {
  /// Resolves the names of `keep` and `preload` that have no fresh answer. Call it once the network is known.
  package func start() {
    loop.assertCurrent()
    markKeepList()
    resolveAhead((keep + preload).filter { !isFresh($0) }, occasion: "at start", isBudgeted: false)
  }

  /// The machine has slept: notes the hot questions before the schedule finds their entries expired.
  package func hasSlept() {
    loop.assertCurrent()
    hotAsleep = hotQuestions()
  }

  /// The machine is on another network, or has slept: resolves the names of `keep` and `preload` and the hot questions.
  /// Other names are resolved when a client asks.
  package func networkHasChanged() {
    loop.assertCurrent()
    let hot = hotAsleep + hotQuestions()
    hotAsleep = []
    markKeepList()
    resolveAhead(
      keep + preload + hot.map(\.asked), heat: Dictionary(hot.map { ($0.asked, $0.heat) }) { first, _ in first },
      occasion: "for another network", isBudgeted: true)
  }

  /// The questions of `keep` about these names that have an entry.
  func cached(among names: NameSelection) -> [RoutedQuestion] {
    loop.assertCurrent()
    return keep.filter { names.contains($0.question.name) && isCached($0) }
  }

  /// Resolves those of these questions again at once whose entries are gone. The log says so once a minute.
  func mayHaveBeenFlushed(_ questions: [RoutedQuestion]) {
    loop.assertCurrent()
    let isNoted = flushNotedAt.map { loop.now - $0 >= .seconds(60) } ?? true
    if isNoted { flushNotedAt = loop.now }
    resolveAhead(questions.filter { !isCached($0) }, occasion: "after a flush", isBudgeted: true, isNoted: isNoted)
  }

  /// Resolves questions in the background, and logs how many got an answer.
  ///
  /// - Parameter heat: the heat of questions that may have no entry any more; for others it is that of the entry.
  func resolveAhead(
    _ names: [RoutedQuestion], heat: [RoutedQuestion: Heat] = [:], occasion: String, isBudgeted: Bool,
    isNoted: Bool = true
  ) {
    var seen: Set<RoutedQuestion> = []
    let names = names.filter { seen.insert($0).inserted }
    guard !names.isEmpty else { return }
    let begin = loop.now
    Task(executorPreference: loop) { [self] in
      let count = await resolveAhead(names, heat: heat, isBudgeted: isBudgeted)
      retryKeepList()
      let time = (loop.now - begin).nanoseconds / 1_000_000
      guard isNoted else { return }
      note("\(count) of \(names.count) names and types resolved \(occasion) in \(time) ms")
    }
  }

  /// The maximum number of concurrent transfers: more would displace clients' questions.
  private static let maxInFlight = 8

  /// Resolves questions, several per transfer if the provider supports that.
  ///
  /// - Parameter isBudgeted: whether the refresh budget applies; at start it does not.
  /// - Returns: the number of questions that have an answer.
  private func resolveAhead(
    _ names: [RoutedQuestion], heat: [RoutedQuestion: Heat], isBudgeted: Bool
  ) async -> Int {
    var waiting = transfers(names)[...]
    return await withTaskGroup(of: Int.self) { group in
      func startNext() {
        guard let transfer = waiting.popFirst() else { return }
        group.addTask(executorPreference: loop) { [self] in
          isBudgeted ? await refresh(transfer, heat: heat) : await resolve(transfer)
        }
      }
      for _ in 0..<Refresher.maxInFlight { startNext() }
      var answered = 0
      while let count = await group.next() {
        answered += count
        startNext()
      }
      return answered
    }
  }

  private func transfers(_ names: [RoutedQuestion]) -> [RefreshTransfer] {
    var transfers: [RefreshTransfer] = []
    var gatherings: [RefreshJourney: RefreshGathering<DomainName>] = [:]
    var order: [RefreshJourney] = []
    for asked in names {
      let way = way(of: asked, after: .unknown)
      guard let way, way.mostNames > 0, let family = asked.question.family else {
        transfers.append(RefreshTransfer(source: way?.source, asked: [asked]))
        continue
      }
      let journey = RefreshJourney(source: way.source, route: asked.route)
      if gatherings[journey] == nil { order.append(journey) }
      gatherings[journey, default: RefreshGathering(mostNames: way.mostNames)]
        .add(asked.question.name, family, deadline: .min)
    }
    for journey in order {
      for group in gatherings[journey]?.takeClosed(now: .max) ?? [] { transfers += journey.transfers(of: group) }
    }
    return transfers
  }

  /// Sends one transfer within the refresh budget, if a source is fit.
  private func refresh(_ transfer: RefreshTransfer, heat: [RoutedQuestion: Heat]) async -> Int {
    guard let source = transfer.source else { return 0 }
    let isPaid = takeFromBudget(transfer.asked, source)
    let asked = zip(transfer.asked, isPaid).filter(\.1).map(\.0)
    guard !asked.isEmpty else { return 0 }
    return await ask(RefreshTransfer(source: source, asked: asked), source, heat: heat).count { $0 }
  }

  /// Sends one transfer without a budget. Questions that get no answer are then resolved one by one as for a client,
  /// with retries and fallback.
  private func resolve(_ transfer: RefreshTransfer) async -> Int {
    // A client's question or a refresh may have brought an answer since the list was made.
    var rest = transfer.asked.filter { !isFresh($0) }
    if let source = transfer.source, rest.count > 1 {
      let part = RefreshTransfer(source: source, asked: rest)
      rest = zip(rest, await ask(part, source, heat: [:])).filter { !$1 }.map(\.0)
    }
    var answered = transfer.asked.count - rest.count
    for asked in rest {
      guard !isFresh(asked) else {
        answered += 1
        continue
      }
      let answer = await resolver.resolve(asked.question, route: asked.route, fresh: true)
      if answer.failure == nil { answered += 1 }
    }
    return answered
  }

  private func ask(
    _ transfer: RefreshTransfer, _ source: EntrySource, heat: [RoutedQuestion: Heat]
  ) async -> [Bool] {
    let questions = transfer.asked.map {
      RefreshedQuestion(asked: $0, heat: (heat[$0] ?? self.heat(of: $0)).rawValue)
    }
    return await ask(questions, source)
  }
}

extension RefreshFamilies {
  static let both: RefreshFamilies = [.ipv4, .ipv6]

  /// The types of these families, A first.
  var types: [RecordType] { (contains(.ipv4) ? [.a] : []) + (contains(.ipv6) ? [.aaaa] : []) }
}

extension HTTPDNSQuestion {
  /// The address family that is asked for; nil if the question cannot share a transfer.
  var family: RefreshFamilies? {
    guard !dnssecOK, !checkingDisabled else { return nil }
    switch type {
    case .a: return .ipv4
    case .aaaa: return .ipv6
    default: return nil
    }
  }
}
