// TransferFailures.swift -- counts failed transfers to a provider by cause.

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

/// The number of failed transfers by cause.
package struct TransferFailures: Sendable, Equatable {
  private var counts: [TransferFailureCause: Int] = [:]

  package init() {}

  /// The number of failures with this cause.
  package subscript(cause: TransferFailureCause) -> Int { counts[cause, default: 0] }

  /// The number of failures of all causes.
  package var total: Int { counts.values.reduce(0, +) }

  package mutating func count(_ cause: TransferFailureCause) { counts[cause, default: 0] += 1 }
}
