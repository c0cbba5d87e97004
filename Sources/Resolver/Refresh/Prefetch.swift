// Prefetch.swift -- resolves names before a client asks: at start, after a flush, and on another network.
//
// Resolver's loop only.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Refresh

/// Questions that travel in one transfer.
struct RefreshTransfer {
  /// Who is asked; nil where the questions go the ordinary way.
  var source: EntrySource?
  var asked: [RoutedQuestion]
}

/// Who is asked for names that travel together, and by which route they came there.
struct RefreshJourney: Hashable {
  var source: EntrySource
  var route: UInt16

  /// The transfers that carry those names. One asks for each of its names in each of its families: those that need both
  /// go apart from the others.
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
  /// Resolves the names of `keep` and `preload` that nothing fresh is known of. It is known on which network.
  package func start() {
    markKept()
    resolveAhead((keep + preload).filter { !isFresh($0) }, "at start", isBudgeted: false)
  }

  /// The machine has slept: remembers what was hot, before its time is found to be over.
  package func hasSlept() { hotAsleep = hotQuestions() }

  /// The network is another one, or the machine has slept: what is surely needed comes first, the rest when it is asked for.
  package func networkHasChanged() {
    let hot = hotAsleep + hotQuestions()
    hotAsleep = []
    markKept()
    resolveAhead(
      keep + preload + hot.map(\.asked), heat: Dictionary(hot.map { ($0.asked, $0.heat) }) { first, _ in first },
      "for another network", isBudgeted: true)
  }

  /// The entries of those names are gone: what is kept always is fetched again at once.
  func hasBeenFlushed(_ names: CacheSelection) {
    resolveAhead(keep.filter { names.contains($0.question.name) }, "after a flush", isBudgeted: true)
  }

  /// - Parameter heat: what the schedule remembers of them; of others it is what it is.
  func resolveAhead(
    _ names: [RoutedQuestion], heat: [RoutedQuestion: Heat] = [:], _ occasion: String, isBudgeted: Bool
  ) {
    var seen: Set<RoutedQuestion> = []
    let names = names.filter { seen.insert($0).inserted }
    guard !names.isEmpty else { return }
    let begin = loop.now
    Task(executorPreference: loop) { [self] in
      let count = await resolveAhead(names, heat, isBudgeted: isBudgeted)
      retryKept()
      let time = (loop.now - begin).nanoseconds / 1_000_000
      note("\(count) of \(names.count) names and types resolved \(occasion) in \(time) ms")
    }
  }

  /// Transfers at once: more would crowd out clients' questions.
  private static let maxInFlight = 8

  /// Resolves those names, several in one transfer where the provider can.
  ///
  /// - Parameter isBudgeted: whether the budget for refreshing counts; at start each name is asked whatever that says.
  /// - Returns: how many of the questions have an answer.
  private func resolveAhead(
    _ names: [RoutedQuestion], _ heat: [RoutedQuestion: Heat], isBudgeted: Bool
  ) async -> Int {
    let work = Work(transfers(names))
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<Refresher.maxInFlight {
        group.addTask(executorPreference: loop) { [self] in
          while let transfer = work.next() {
            work.answered += isBudgeted ? await refresh(transfer, heat) : await resolve(transfer)
          }
        }
      }
    }
    return work.answered
  }

  private func transfers(_ names: [RoutedQuestion]) -> [RefreshTransfer] {
    var transfers: [RefreshTransfer] = []
    var gatherings: [RefreshJourney: RefreshGathering<DomainName>] = [:]
    var order: [RefreshJourney] = []
    for asked in names {
      let way = way(of: asked, after: .nobody)
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

  /// Within the budget: one transfer, of whoever is well.
  private func refresh(_ transfer: RefreshTransfer, _ heat: [RoutedQuestion: Heat]) async -> Int {
    guard let source = transfer.source else { return 0 }
    let isPaid = takeFromBudget(transfer.asked, source)
    let asked = zip(transfer.asked, isPaid).filter(\.1).map(\.0)
    guard !asked.isEmpty else { return 0 }
    return await ask(RefreshTransfer(source: source, asked: asked), source, heat).count { $0 }
  }

  /// At start: whoever does not get an answer that way is asked for as by a client, with everything that may help.
  private func resolve(_ transfer: RefreshTransfer) async -> Int {
    var rest = transfer.asked
    if let source = transfer.source, rest.count > 1 {
      rest = zip(rest, await ask(transfer, source, [:])).filter { !$1 }.map(\.0)
    }
    var answered = transfer.asked.count - rest.count
    for asked in rest {
      let answer = await resolver.resolve(asked.question, route: asked.route, fresh: true)
      if answer.failure == nil { answered += 1 }
    }
    return answered
  }

  private func ask(
    _ transfer: RefreshTransfer, _ source: EntrySource, _ heat: [RoutedQuestion: Heat]
  ) async -> [Bool] {
    let questions = transfer.asked.map {
      RefreshedQuestion(asked: $0, heat: (heat[$0] ?? self.heat(of: $0)).rawValue)
    }
    return await ask(questions, source)
  }
}

/// Transfers that several tasks of one loop share.
private final class Work: @unchecked Sendable {
  var answered = 0
  private var transfers: ArraySlice<RefreshTransfer>

  init(_ transfers: [RefreshTransfer]) { self.transfers = transfers[...] }

  func next() -> RefreshTransfer? { transfers.popFirst() }
}

extension RefreshFamilies {
  static let both: RefreshFamilies = [.ipv4, .ipv6]

  /// The types of these families, A first.
  var types: [RecordType] { (contains(.ipv4) ? [.a] : []) + (contains(.ipv6) ? [.aaaa] : []) }
}

extension HTTPDNSQuestion {
  /// The address family that is asked for; nil where the question is of a kind that travels alone.
  var family: RefreshFamilies? {
    guard !dnssecOK, !checkingDisabled else { return nil }
    switch type {
    case .a: return .ipv4
    case .aaaa: return .ipv6
    default: return nil
    }
  }
}
