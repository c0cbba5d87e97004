// ProviderRefresh.swift -- background refreshes: one server, one transfer, and only while the provider works.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS

extension HTTPDNSProvider {
  func networkHasChanged() {
    loop.assertCurrent()
    for server in servers { server.networkHasChanged() }
    order.networkHasChanged()
    patience.networkHasChanged(now: loop.now)
    timeCheckPause = HTTPDNSProvider.timeCheckPause
    arrivals.resumeAll()
    schedule?.networkHasChanged()
  }

  var refreshPrice: RefreshPrice {
    let billing = dialect.billing
    guard billing.isBilled else { return .free }
    return RefreshPrice(
      isBilled: true, perTransfer: billing.unitsPerTransfer, perAnswer: billing.unitsPerAnswer)
  }

  var mostNames: Int { batchDialect?.mostNames ?? 0 }

  func refresh(
    _ questions: [HTTPDNSQuestion], deadline: BootInstant
  ) async -> Result<[HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>], UpstreamFailure> {
    loop.assertCurrent()
    // Several refreshes may have started since `isFit` was true.
    guard limit.hasSpare(now: loop.now.nanoseconds) else {
      let reason = "requests_per_second (\(settings.requestsPerSecond)) is left to clients"
      return .failure(UpstreamFailure(.other, reason, .limit))
    }
    let asking = OwnQuestion(questions[0].name, now: loop.now)
    let replies = await askServers(
      asked(questions), for: asking, deadline: deadline, isLastResort: false, attempts: 1)
    if case .failure(let failure) = replies, failure.consequence.isRemembered { refreshHasFailed() }
    return replies.map { replies in
      var answers: [HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>] = [:]
      for question in questions {
        answers[question] = replies.answer(to: question).map {
          UpstreamAnswer(taken($0, to: question), server: replies.server)
        }.mapError { UpstreamFailure($0) }
      }
      return answers
    }
  }

  /// Composes one transfer for all questions. With several names, a question in flight may be asked again, since a
  /// transfer asks for each of its names in each of its families.
  ///
  /// - Precondition: the dialect accepts this many names.
  private func asked(_ questions: [HTTPDNSQuestion]) -> AskedQuestions {
    guard questions.count > 1 else {
      var question = questions[0]
      question.clientSubnet = subnet(for: question.clientSubnet)
      return .one(question)
    }
    let subnet = subnet(for: nil)
    var names: [DomainName] = []
    for question in questions where !names.contains(question.name) { names.append(question.name) }
    let types = [RecordType.a, .aaaa].filter { type in questions.contains { $0.type == type } }
    return .batch(QuestionBatch(names: names, types: types, clientSubnet: subnet))
  }
}
