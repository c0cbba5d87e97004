// Replies.swift -- what came of a question, as the reply to a query that waits. Resolver's loop only.

import DNSWire
import Frontend
import Upstreams

extension ReplySender {
  /// Sends what came of a question.
  ///
  /// - Parameter source: who gave the answer, unless it is stale data.
  func send(_ result: Result<FinishedAnswer, UpstreamFailure>, to slot: Int, from source: AnswerSource = .cache) {
    switch result {
    case .success(let answer): send(answer, to: slot, from: source)
    case .failure(let failure): send(failure, to: slot)
    }
  }

  /// Sends SERVFAIL with an extended error.
  func send(_ failure: UpstreamFailure, to slot: Int) {
    let head = ResponseHead(responseCode: 2, extendedError: failure.extendedError.rawValue)
    complete(slot, head, body: [], .failed, failure: failure.reason)
  }

  /// Sends an answer.
  func send(_ answer: FinishedAnswer, to slot: Int, from source: AnswerSource = .cache) {
    var head = ResponseHead(responseCode: answer.response.responseCode.rawValue)
    head.isAuthenticated = answer.response.isAuthenticated
    head.answers = answer.response.answers
    head.authorities = answer.response.authorities
    head.bodyLength = answer.response.body.count
    head.extendedError = answer.response.extendedError?.rawValue ?? ResponseHead.noExtendedError
    if let scope = answer.scope { head.subnetScope = Int16(clamping: scope) }
    let error = answer.response.extendedError
    let isStale = error == .staleAnswer || error == .staleNXDomain
    complete(slot, head, body: answer.response.body, isStale ? .stale : .asked(LoggedQuery.Source(source)))
  }
}

extension LoggedQuery.Source {
  init(_ source: AnswerSource) {
    self =
      switch source {
      case .provider(let name, _): .provider(name)
      case .localDNS: .localDNS
      case .cache: .cache
      case .ourselves: .ourselves
      }
  }
}
