// AskedQuestions.swift -- the questions of one transfer, and their results.

import HTTPDNS

/// The questions of one transfer.
package enum AskedQuestions {
  case one(HTTPDNSQuestion)
  case batch(QuestionBatch)

  var count: Int {
    switch self {
    case .one: 1
    case .batch(let batch): batch.names.count * batch.types.count
    }
  }

  var nameCount: Int {
    switch self {
    case .one: 1
    case .batch(let batch): batch.names.count
    }
  }

  /// The question, or the first of the batch.
  var first: HTTPDNSQuestion {
    switch self {
    case .one(let question): question
    case .batch(let batch): batch.questions[0]
    }
  }
}

extension AskedQuestions {
  /// Calls `body` with each question. A single question, the common case, needs no array.
  package func forEachQuestion(_ body: (HTTPDNSQuestion) -> Void) {
    switch self {
    case .one(let question): body(question)
    case .batch(let batch): batch.questions.forEach(body)
    }
  }
}

/// The outcome of one transfer.
package struct ProviderReplies: Sendable {
  /// The server's address or name, human-readable.
  var server: String
  var results: [(question: HTTPDNSQuestion, result: Result<HTTPDNSAnswer, HTTPDNSFailure>)]

  /// Whether the transfer brought a verdict on any of its questions.
  var hasVerdict: Bool {
    results.contains { if case .success = $0.result { true } else { false } }
  }

  /// Returns the result for a question; compares name and type only, not client subnet and flags.
  package func answer(to question: HTTPDNSQuestion) -> Result<HTTPDNSAnswer, HTTPDNSFailure> {
    results.first { $0.question.name == question.name && $0.question.type == question.type }?.result
      ?? .failure(.wrongQuestion)
  }
}
