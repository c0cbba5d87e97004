// Replies.swift -- sends the result of a question to a query that waits for it. Resolver's loop only.

import DNSWire
import EventLoop
import FairShares
import Frontend
import Upstreams

extension ReplySender {
  /// Sends an answer, or SERVFAIL for a failure.
  ///
  /// - Parameter source: where the answer comes from, for the query log; ignored for stale data.
  func send(_ result: Result<FinishedAnswer, UpstreamFailure>, to slot: Int, from source: AnswerSource = .cache) {
    switch result {
    case .success(let answer): send(answer, to: slot, from: source)
    case .failure(let failure): send(failure, to: slot)
    }
  }

  /// Sends the result of a question to all that wait for it, a part of them in each turn of the loop, so that other queries are
  /// answered in between.
  func send(
    _ result: Result<FinishedAnswer, UpstreamFailure>, to slots: [Int], of domain: DomainKey, from source: AnswerSource,
    _ admission: Admission, on loop: any Loop
  ) {
    let mostPerTurn = 1024
    for slot in slots.prefix(mostPerTurn) { send(result, to: slot, from: source) }
    admission.removeWaiters(min(slots.count, mostPerTurn), of: domain)
    guard slots.count > mostPerTurn else { return }
    let rest = Array(slots[mostPerTurn...])
    loop.inNextTurn { [self] in send(result, to: rest, of: domain, from: source, admission, on: loop) }
  }

  /// Sends SERVFAIL with an extended error (RFC 8914).
  func send(_ failure: UpstreamFailure, to slot: Int) {
    let head = ResponseHead(responseCode: 2, extendedError: failure.extendedError.rawValue)
    complete(slot, head, body: [], .failed, failure: failure.reason)
  }

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
    complete(
      slot, head, body: answer.response.body, isTruncated: answer.isTruncated,
      isStale ? .stale : .asked(LoggedQuery.Source(source)))
  }
}

extension LoggedQuery.Source {
  init(_ source: AnswerSource) {
    self =
      switch source {
      case .provider(let name, _): .provider(name)
      case .fleet(let name): .fleet(name)
      case .localDNS: .localDNS
      case .cache: .cache
      case .ourselves: .ourselves
      }
  }
}
