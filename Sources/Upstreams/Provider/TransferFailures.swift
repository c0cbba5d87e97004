// TransferFailures.swift -- counts failed transfers to a provider by cause.

import HTTPClient
import HTTPDNS

/// Why a transfer yielded no usable reply. The raw values are labels of the metrics.
package enum TransferFailureCause: String, CaseIterable, Sendable {
  // No response.
  case timeout, busy, refused, unreachable, certificate, pin, tls, proxy, reset, calm
  case tooLarge = "too_large"
  case badHTTP = "bad_http"
  case badRequest = "bad_request"
  case cancelled
  case `internal`
  /// The machine slept while the transfer was in flight.
  case slept
  // A response without an answer.
  case authentication, expired, account, name
  case badParameter = "bad_parameter"
  case badPath = "bad_path"
  case quota, status, unreadable
  case wrongQuestion = "wrong_question"
  case truncated, unsupported
}

/// The number of failed transfers by cause.
package struct TransferFailures: Sendable, Equatable {
  private var counts: [TransferFailureCause: Int] = [:]

  /// Creates counters of zero.
  package init() {}

  /// The number of failures with this cause.
  package subscript(cause: TransferFailureCause) -> Int { counts[cause, default: 0] }

  /// The number of failures of all causes.
  package var total: Int { counts.values.reduce(0, +) }

  /// Counts a failure.
  package mutating func count(_ cause: TransferFailureCause) { counts[cause, default: 0] += 1 }
}

extension TransferFailureCause {
  init(_ kind: HTTPFailure.Kind) {
    self =
      switch kind {
      case .timeout: .timeout
      case .busy: .busy
      case .refused: .refused
      case .unreachable: .unreachable
      case .certificate: .certificate
      case .pin: .pin
      case .tls: .tls
      case .proxy: .proxy
      case .reset: .reset
      case .calm: .calm
      case .tooLarge: .tooLarge
      case .badHTTP: .badHTTP
      case .badRequest: .badRequest
      case .cancelled: .cancelled
      case .internal: .internal
      }
  }

  init(_ failure: HTTPDNSFailure) {
    self =
      switch failure {
      case .authentication: .authentication
      case .expired: .expired
      case .account: .account
      case .name: .name
      case .badParameter: .badParameter
      case .badPath: .badPath
      case .quota: .quota
      case .server: .status
      case .unreadable: .unreadable
      case .wrongQuestion: .wrongQuestion
      case .truncated: .truncated
      case .unsupported: .unsupported
      }
  }
}
