// RefreshBatches.swift -- puts questions to refresh together that may share a transfer: those of one source and route.

import DNSWire
import HTTPDNS
import MessageCache

/// The questions of one transfer.
struct RefreshBatch {
  /// The source to ask; nil if none may be asked now.
  var source: EntrySource?
  var questions: [RefreshedQuestion]
}

/// Questions that wait for others to share a transfer.
struct RefreshBatches {
  private struct Gathering {
    let source: EntrySource
    let route: UInt16
    let families: TransferFamilies
    var names: RefreshGathering<DomainName>
  }

  private var gatherings: [Gathering] = []
  private var waiting: [RoutedQuestion: RefreshedQuestion] = [:]

  /// When `takeClosed` has to be called; `Int64.max` if nothing waits.
  var nextClosing: Int64 { gatherings.compactMap(\.names.nextClosing).min() ?? .max }

  /// Adds a question that may wait until `deadline`.
  ///
  /// - Returns: the question as a batch if it travels alone.
  mutating func add(_ question: RefreshedQuestion, to source: RefreshSource, deadline: Int64) -> RefreshBatch? {
    let asked = question.asked
    guard source.mostNames > 0, let family = asked.question.family else {
      waiting[asked] = nil
      return RefreshBatch(source: source.source, questions: [question])
    }
    waiting[asked] = question
    let place = gatherings.firstIndex {
      $0.source == source.source && $0.route == asked.route && $0.names.mostNames == source.mostNames
    }
    if place == nil {
      gatherings.append(
        Gathering(
          source: source.source, route: asked.route, families: source.families,
          names: RefreshGathering(mostNames: source.mostNames)))
    }
    gatherings[place ?? gatherings.count - 1].names.add(asked.question.name, family, deadline: deadline)
    return nil
  }

  /// The hashes of the questions that wait.
  var hashes: some Sequence<UInt64> { waiting.values.lazy.map(\.hash) }

  /// Takes the batches that are full, or whose questions cannot wait any longer. `Int64.max` takes all.
  mutating func takeClosed(now: Int64) -> [RefreshBatch] {
    var batches: [RefreshBatch] = []
    for index in gatherings.indices {
      let (source, route) = (gatherings[index].source, gatherings[index].route)
      let ofSource = gatherings[index].families
      for group in gatherings[index].names.takeClosed(now: now) {
        // A transfer asks for all its names in all its families, so names that need both get a transfer of their own.
        let transfers: [RefreshFamilies] =
          switch ofSource {
          case .one: [.ipv4, .ipv6]
          case .wanted: [.both, .ipv4, .ipv6]
          case .both: [.both]
          }
        for families in transfers {
          let questions = group.members.filter {
            ofSource == .wanted ? $0.families == families : !$0.families.isDisjoint(with: families)
          }.flatMap { member in
            families.intersection(member.families).types.compactMap {
              waiting.removeValue(
                forKey: RoutedQuestion(question: HTTPDNSQuestion(name: member.name, type: $0), route: route))
            }
          }
          if !questions.isEmpty { batches.append(RefreshBatch(source: source, questions: questions)) }
        }
      }
    }
    return batches
  }
}

extension RefreshFamilies {
  static let both: RefreshFamilies = [.ipv4, .ipv6]

  /// The types of these families, A first.
  var types: [RecordType] { (contains(.ipv4) ? [.a] : []) + (contains(.ipv6) ? [.aaaa] : []) }
}

extension HTTPDNSQuestion {
  /// The address family that is asked for; nil if the question cannot share a transfer.
  fileprivate var family: RefreshFamilies? {
    guard !dnssecOK, !checkingDisabled else { return nil }
    switch type {
    case .a: return .ipv4
    case .aaaa: return .ipv6
    default: return nil
    }
  }
}
