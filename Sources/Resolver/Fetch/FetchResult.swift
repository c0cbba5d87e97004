// FetchResult.swift -- what comes of a question in flight.

import MessageCache
import Upstreams

/// The result of a fetch or of one attempt, and its source.
struct FetchResult {
  var result: Result<FinishedAnswer, UpstreamFailure>
  var source: AnswerSource
  /// The failure; nil if there is an answer.
  var failure: UpstreamFailure? { if case .failure(let failure) = result { failure } else { nil } }
  /// The answer; nil if there is a failure.
  var answer: FinishedAnswer? { if case .success(let answer) = result { answer } else { nil } }

  /// A failure of the daemon itself or of no upstream in particular.
  static func failure(_ failure: UpstreamFailure) -> FetchResult {
    FetchResult(result: .failure(failure), source: .ourselves)
  }
}
