// Remedy.swift -- what helps against a provider's refusal, and against a server that cannot be reached.

import Configuration
import HTTPClient
import HTTPDNS

extension HTTPDNSFailure {
  /// Whether a wrong clock may be the cause. Not every provider reports which part of a signature it refused.
  var mayBeTheClock: Bool { self == .expired || self == .authentication }

  /// A human-readable remedy, with the keys of the provider's kind.
  func remedy(_ kind: Configuration.ProviderKind) -> String {
    let place = kind.placeKeys.joined(separator: " or ")
    return switch self {
    case .authentication where kind.accountKeys.isEmpty: "check \(place), and whether the service admits this client"
    case .authentication: "check \(enumeration(kind.accountKeys))"
    case .expired: "check the machine's clock"
    case .account: "check in the provider's console that the account exists, is paid for, and may be used this way"
    case .badPath where kind.placeKeys.contains("url"): "check the path in \(place)"
    case .badPath: "check \(place): another service may listen there"
    case .quota: "set requests_per_second lower, or raise the quota in the provider's console"
    default: "check \(place), then the provider's other keys"
    }
  }
}

extension HTTPFailure {
  /// A human-readable remedy; empty if the reason names it, or if none is known.
  ///
  /// - Parameter isByProxy: whether the connection goes to a proxy.
  func remedy(_ kind: Configuration.ProviderKind, isByProxy: Bool) -> String {
    if isForAnotherName { return kind.nameKeys.isEmpty ? "" : "check \(kind.nameKeys.joined(separator: " or "))" }
    guard self.kind == .refused else { return "" }
    let keys = isByProxy ? "proxy" : kind.placeKeys.joined(separator: " or ")
    return "nothing listens there, or a firewall refuses; check \(keys)"
  }
}

/// `a`, `a and b`, or `a, b and c`.
private func enumeration(_ words: [String]) -> String {
  guard let last = words.last, words.count > 1 else { return words.joined() }
  return words.dropLast().joined(separator: ", ") + " and " + last
}
