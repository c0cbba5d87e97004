// TransferFailureCause.swift -- why transfers to a provider fail.

import HTTPClient
import HTTPDNS

/// Why a transfer yielded no usable reply.
package enum TransferFailureCause: Hashable, Sendable {
  /// The HTTP client got no response.
  case noResponse(HTTPFailure.Kind)
  /// The machine slept while the transfer was in flight.
  case slept
  /// A response without an answer.
  case noAnswer(HTTPDNSFailure.Kind)

  /// Whether there was no response in time.
  package var isLate: Bool { self == .noResponse(.timeout) || self == .slept }
}

extension TransferFailureCause: CaseIterable {
  /// Every cause, in the order in which the metrics list them.
  package static let allCases: [TransferFailureCause] =
    HTTPFailure.Kind.allCases.map { .noResponse($0) } + [.slept] + HTTPDNSFailure.Kind.allCases.map { .noAnswer($0) }

  /// The label of the metrics and of JSON.
  package var label: String {
    switch self {
    case .noResponse(let kind): kind.label
    case .slept: "slept"
    case .noAnswer(let kind): kind.rawValue
    }
  }
}
