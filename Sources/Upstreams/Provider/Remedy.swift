// Remedy.swift -- what helps against a provider's refusal, and against a server that cannot be reached.

import Configuration
import HTTPClient
import HTTPDNS
import HTTPMessage

extension HTTPDNSFailure {
  /// Whether a wrong clock may be the cause. Not every provider reports which part of a signature it refused.
  var mayBeTheClock: Bool { kind == .expired || kind == .authentication || isUndecided }

  /// A human-readable reason. Without an account there are no credentials that a provider could refuse.
  func text(_ kind: Configuration.ProviderKind) -> String {
    guard self.kind == .authentication, !kind.hasAccount else { return description }
    return description.replacing("credentials", with: "request")
  }

  /// A human-readable remedy, with the keys of the provider's kind.
  func remedy(_ provider: Configuration.Provider) -> String {
    let kind = provider.kind
    let place = alternatives(kind.placeKeys)
    return switch self.kind {
    case .authentication where !kind.hasAccount: "check \(place), and whether the service admits this client"
    case .authentication where self == .status(401) && kind.mayLackExpiry:
      "check \(enumeration(kind.accountKeys)); if they are right, set expiry"
    case .authentication: "check \(enumeration(kind.accountKeys))"
    case .expired: "check the machine's clock"
    case .account where self == .unsigned: "set secret_key, or switch signed access off in the provider's console"
    case .account where kind.hasAccount:
      "check \(kind.accountKeys[0]), and in the provider's console that the account exists, is paid for, and may be "
        + "used this way"
    case .name where isUndecided: kind.remedyIfUndecided(about: "the name")
    case .badPath where kind.placeKeys.contains("url"): "check the path in \(place)"
    case .badPath: "check \(place): another service may listen there"
    case .quota: quotaRemedy(provider)
    default: "check \(place), then the provider's other keys"
    }
  }

  private func quotaRemedy(_ provider: Configuration.Provider) -> String {
    if case .table = provider.kind { return "set a longer interval" }
    let own = provider.requestsPerSecond == 0 ? "set requests_per_second" : "set requests_per_second lower"
    return provider.kind.hasAccount ? "\(own), or raise the quota in the provider's console" : own
  }
}

extension Configuration.ProviderKind {
  /// What to check where a refusal may concern a name or the account, human-readable.
  ///
  /// - Parameter names: what was refused.
  func remedyIfUndecided(about names: String) -> String {
    "check that the provider's console lists \(names), and \(accountKeys.joined(separator: " and "))"
  }

  /// What an ambiguous empty answer may mean, human-readable.
  var ambiguity: String {
    switch self {
    case .volcengine:
      "an empty answer, or HTTP status 403; the name may not be in the list of the provider's account, or account_id or "
        + "secret_key is wrong"
    case .text: "an empty answer; there is no such name, or no such record"
    default: UpstreamTraits.usualAmbiguity
    }
  }
}

extension HTTPFailure {
  /// A human-readable remedy; empty if the reason names it, or if none is known.
  func remedy(_ provider: Configuration.Provider) -> String {
    let kind = provider.kind
    let place = provider.proxy == nil ? alternatives(kind.placeKeys) : "proxy"
    if isForAnotherName { return kind.nameKeys.isEmpty ? "" : "check \(alternatives(kind.nameKeys))" }
    if isForAnotherScheme { return "check \(alternatives(kind.schemeKeys + ["the port in servers"]))" }
    return switch self.kind {
    case .refused: "nothing listens there, or a firewall refuses; check \(place)"
    case .unreachable, .timeout: "check \(place), and this machine's network"
    default: ""
    }
  }
}

extension HTTPResponse {
  /// Why it has no answer, in human-readable form, with the service's own error code.
  func explanation(of failure: HTTPDNSFailure, code: String? = nil, _ kind: Configuration.ProviderKind) -> String {
    if failure == .unreadable(.mediaType) { return HTTPDNSFailure.wrongMediaType(of: self) }
    return failure.text(kind) + (code.map { " (\($0))" } ?? "")
  }
}

/// `a`, `a and b`, or `a, b and c`.
private func enumeration(_ words: [String]) -> String { list(words, "and") }

/// `a`, `a or b`, or `a, b or c`.
private func alternatives(_ words: [String]) -> String { list(words, "or") }

private func list(_ words: [String], _ conjunction: String) -> String {
  guard let last = words.last, words.count > 1 else { return words.joined() }
  return "\(words.dropLast().joined(separator: ", ")) \(conjunction) \(last)"
}
