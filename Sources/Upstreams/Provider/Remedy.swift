// Remedy.swift -- what helps against a provider's refusal.

import HTTPDNS

extension HTTPDNSFailure {
  /// Whether a wrong clock may be the cause. Not every provider reports which part of a signature it refused.
  var mayBeTheClock: Bool { self == .expired || self == .authentication }

  /// A human-readable remedy.
  var remedy: String {
    switch self {
    case .authentication: "check the account's id and its key, token or secret in the configuration"
    case .expired: "check the machine's clock"
    case .account: "check in the provider's console that the account exists, is paid for, and may be used this way"
    case .badPath: "check the path in url or servers"
    case .quota: "raise the quota in the provider's console, or set requests_per_second below it"
    default: "check the provider's keys in the configuration"
    }
  }
}
