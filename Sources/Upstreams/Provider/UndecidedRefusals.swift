// UndecidedRefusals.swift -- refusals that may concern the name or the account, before the provider has answered anything.
//
// Most names of a machine are not on the list of an account, so that a service which refuses them like a wrong key cannot be
// judged by a few of them. But if nothing else ever comes, its operator has to look.

import Configuration
import HTTPDNS

/// Counts such refusals until the first answer.
struct UndecidedRefusals {
  private var count = 0
  private var hasAnswered = false
  /// Why the last one was refused, human-readable.
  private var reason = ""

  /// The log has one line after this many.
  private static let most = 8

  /// The provider has answered a question in whatever way.
  mutating func answered() { hasAnswered = true }

  /// Notes a refusal.
  ///
  /// - Parameter reason: human-readable.
  /// - Returns: a line for the operator, if one is due.
  mutating func refused(because reason: String, by provider: Configuration.Provider) -> String? {
    guard !hasAnswered else { return nil }
    count += 1
    self.reason = reason
    guard count == UndecidedRefusals.most else { return nil }
    return remark(provider).map { "provider \(provider.name): \($0)" }
  }

  /// What an operator should look at; nil before the first refusal, and once there was an answer.
  func remark(_ provider: Configuration.Provider) -> String? {
    guard !hasAnswered, count > 0 else { return nil }
    let requests = count == 1 ? "1 request" : "\(count) requests"
    return
      "\(requests) refused and none answered yet: \(reason); \(provider.kind.remedyIfUndecided(about: "these names"))"
  }
}
