// ResolvedAnswer.swift -- the result of a question as callers inside the daemon get it.

import DNSWire
import Upstreams

/// The result of a question for a caller inside the daemon.
package struct ResolvedAnswer: Sendable {
  /// The response as it is cached, or an empty one with RCODE and extended error.
  package var response: ComposedResponse
  /// Seconds until the answer expires; 0 for a failure.
  package var lifetime: UInt32
  package var source: AnswerSource
  /// The reason of a failure; nil if there is an answer.
  package var failure: String?
  /// Whether it is an empty answer that may only mean that the name is not in the list of the provider's account.
  package var isAmbiguous = false
  /// Why each upstream but the last gave no answer.
  package var trail: [TrailStep] = []

  /// A failure has a lifetime of 0 seconds and its reason.
  package init(
    response: ComposedResponse, lifetime: UInt32, source: AnswerSource, failure: String? = nil, trail: [TrailStep] = []
  ) {
    self.response = response
    self.lifetime = lifetime
    self.source = source
    self.failure = failure
    self.trail = trail
  }
}

extension ResolvedAnswer {
  init(_ result: FetchResult) {
    switch result.result {
    case .success(let answer):
      self.init(response: answer.response, lifetime: answer.lifetime, source: result.source)
      isAmbiguous = answer.isAmbiguous
    case .failure(let reason):
      self.init(
        response: ComposedResponse(.servFail, extendedError: reason.extendedError), lifetime: 0, source: result.source,
        failure: reason.explanation)
    }
  }
}
