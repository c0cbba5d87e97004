// OnDemandRefresh.swift -- refreshes the cached answers of a name at an operator's request.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Refresh

/// The result of refreshing one question.
package struct RefreshReport: Sendable {
  /// QNAME.
  package var name: DomainName
  /// QTYPE.
  package var type: RecordType
  /// The DO bit.
  package var dnssecOK: Bool
  /// The CD bit.
  package var checkingDisabled: Bool
  /// The client subnet; nil for all clients.
  package var subnet: IPPrefix?
  /// The new answer, or a failure with its reason, after which the cached answer is still there.
  package var answer: ResolvedAnswer
  /// The time that the refresh took.
  package var time: Duration
}

/// The result of refreshing a name.
package struct RefreshSummary: Sendable {
  /// One report for each question that was asked.
  package var reports: [RefreshReport] = []
  /// Questions that were not refreshed because there were too many.
  package var more = 0
  /// Entries that belong to another network, whose servers cannot be asked now.
  package var elsewhere = 0
  /// Whether anything was cached for the name, including NXDOMAIN.
  package var hasCachedAnswer = false
}

extension Resolver {
  /// Refreshes all cached types of a name, and `types`. No budget limits it, since an operator asks, but its transfers
  /// are counted as refreshes. A failure leaves the cached answer in place. Call it from a task that prefers the loop.
  ///
  /// - Parameters:
  ///   - types: types to refresh even if they are not cached, with the route of each.
  ///   - onlyThese: whether to leave out the cached entries of other types.
  package func refresh(
    _ name: DomainName, types: [(type: RecordType, route: UInt16)], onlyThese: Bool
  ) async -> RefreshSummary {
    var (summary, wanted) = await makeConsole().toRefresh(name.lowercased, types: types, onlyThese: onlyThese)
    let refreshes = wanted.map { asked in loop.startTask { await self.refreshNow(asked) } }
    for refresh in refreshes { summary.reports.append(await refresh.value) }
    return summary
  }

  /// Refreshes a question now, or joins it if it is in flight. A failure leaves the cached answer in place.
  private func refreshNow(_ asked: ResolverQuestion) async -> RefreshReport {
    let begin = loop.preciseNow
    let answer = await withCheckedContinuation { continuation in
      if let fetch = inFlight[asked.key] { return fetch.continuations.append(continuation) }
      refresher?.countTransfer()
      let fetch = makeRefresh(asked)
      inherit(fetch)
      fetch.continuations.append(continuation)
      start(fetch)
    }
    let question = asked.question
    return RefreshReport(
      name: question.name, type: question.type, dnssecOK: question.dnssecOK,
      checkingDisabled: question.checkingDisabled, subnet: question.clientSubnet, answer: answer,
      time: loop.preciseNow - begin)
  }
}

extension ResolverConsole {
  /// The maximum number of questions for one name, each of which may need its own transfer.
  static let mostRefreshed = 64

  /// The questions to refresh, and a summary that has no reports yet.
  fileprivate func toRefresh(
    _ name: DomainName, types: [(type: RecordType, route: UInt16)], onlyThese: Bool
  ) async -> (RefreshSummary, [ResolverQuestion]) {
    var summary = RefreshSummary()
    var wanted: [ResolverQuestion] = []
    var known: Set<QuestionKey> = []
    func add(_ routed: RoutedQuestion) {
      guard let asked = store.question(routed), known.insert(asked.key).inserted else { return }
      if wanted.count < ResolverConsole.mostRefreshed { wanted.append(asked) } else { summary.more += 1 }
    }
    for (type, route) in types { add(RoutedQuestion(question: HTTPDNSQuestion(name: name, type: type), route: route)) }
    let (entries, more) = await entries(of: NameSelection([name], andBelow: false))
    summary.more += more
    summary.hasCachedAnswer = more > 0 || entries.contains { $0.parts.name == name }
    for (_, parts) in entries where parts.name == name && parts.scope.type != CacheKey.everyType {
      guard !onlyThese || types.contains(where: { $0.type.rawValue == parts.scope.type }) else { continue }
      guard isHere(parts) else {
        summary.elsewhere += 1
        continue
      }
      let question = HTTPDNSQuestion(
        name: name, type: RecordType(parts.scope.type), dnssecOK: parts.scope.dnssecOK,
        checkingDisabled: parts.scope.checkingDisabled, clientSubnet: parts.subnet.prefix)
      add(RoutedQuestion(question: question, route: parts.scope.route, subnet: parts.subnet))
    }
    return (summary, wanted)
  }
}
