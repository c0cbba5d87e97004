// ProviderProblem.swift -- why a server of a provider gave no answer, whom that counts against, and what a client is told.

import DNSWire
import HTTPClient
import HTTPDNS

/// Why one server gave no answer.
struct ProviderProblem: Error {
  /// Whom it counts against.
  enum Cause {
    /// The server: another one may do better.
    case server
    /// The server, if it had its whole time.
    case lateness
    /// The account or its settings: every server would say the same.
    case provider
    /// The question: the server is well.
    case question
    /// Limits of ours: nothing was learned about the server.
    case ourLimit
  }

  var failure: UpstreamFailure
  var cause: Cause

  init(_ failure: UpstreamFailure, _ cause: Cause) {
    self.failure = failure
    self.cause = cause
  }

  /// Whether the next server is worth asking.
  var isServersFault: Bool { cause == .server || cause == .lateness }
}

extension ProviderProblem.Cause {
  init(_ failure: HTTPFailure) {
    switch failure.kind {
    case .busy, .internal: self = .ourLimit
    case .timeout: self = .lateness
    default: self = .server
    }
  }

  init(_ failure: HTTPDNSFailure) {
    switch failure.blame {
    case .server: self = .server
    case .provider: self = .provider
    case .answer: self = .question
    }
  }
}

extension HTTPDNSFailure {
  /// Whether a signature that was made at the right time might have been taken. Not every provider says which part of a
  /// signature it refused.
  var mayBeTheClock: Bool { self == .expired || self == .authentication }
}

extension UpstreamFailure {
  init(_ failure: HTTPFailure) {
    switch failure.kind {
    case .tooLarge, .badHTTP: self.init(.invalidData, failure.description)
    case .busy, .internal:
      self.init(.other, failure.description)
      isOverload = true
    case .cancelled, .badRequest: self.init(.other, failure.description)
    default: self.init(.networkError, failure.description)
    }
    kind = failure.kind.rawValue
  }

  init(_ failure: HTTPDNSFailure) {
    switch failure {
    case .unreadable, .wrongQuestion, .truncated: self.init(.invalidData, failure.description)
    case .unsupported, .name: self.init(.notSupported, failure.description)
    case .server: self.init(.noReachableAuthority, failure.description)
    case .authentication, .expired, .account, .badParameter, .badPath, .quota: self.init(.other, failure.description)
    }
    if case .server = failure { kind = "another HTTP status" }
  }
}
