// Consequence.swift -- where a question goes after a failure: the table of docs/providers.md, "What leads on".
//
// A failure says something about this question at this upstream, and nothing about other questions.

import HTTPClient
import HTTPDNS
import LocalDNS

/// Where a question goes after a failure at one upstream.
package enum Consequence: Hashable, CaseIterable, Sendable {
  /// A verdict without data, such as SERVFAIL: the next provider may know better, LocalDNS is not asked.
  case verdict
  /// No verdict; another server of the provider may give one.
  case nextServer
  /// No verdict; every server of the provider would do the same, and charge for it.
  case nextUpstream
  /// The upstream was not asked, since it is unreachable, pauses or has no units left.
  case notAsked
  /// A limit of this provider that the configuration sets, `requests_per_second` or `units_reserve`: the next provider may be
  /// asked, LocalDNS not.
  case limit
  /// One of our own limits: LocalDNS is not asked, and no other provider once the clients are answered.
  case ours

  /// Whether LocalDNS may be asked instead.
  package var leadsToLocalDNS: Bool { self != .verdict && !isOurs }

  /// Whether a limit of ours is the cause, so that it says nothing about the upstream.
  package var isOurs: Bool { self == .limit || self == .ours }

  /// Whether the upstream was asked, so that it does not get the question again at once (RFC 9520).
  package var isRemembered: Bool { self != .notAsked && !isOurs }
}

extension HTTPFailure {
  var consequence: Consequence {
    switch kind {
    case .refused, .unreachable, .certificate, .pin, .tls, .proxy: .notAsked
    case .timeout: wasSent ? .nextServer : .notAsked
    case .reset, .badHTTP: .nextServer
    case .calm, .tooLarge, .badRequest: .nextUpstream
    case .busy, .cancelled, .internal: .ours
    }
  }

  /// Whether it shows that the server cannot be reached: no name and no client can cause it.
  var isOutOfReach: Bool { kind != .timeout && consequence == .notAsked }
}

extension HTTPDNSFailure {
  var consequence: Consequence {
    switch self {
    case .status: isRefusal ? .nextUpstream : .nextServer
    case .fault: .nextServer
    case .unreadable(let reason): reason.isOfService ? .nextServer : .nextUpstream
    case .authentication, .expired, .account, .unsigned, .quota, .name, .notListed, .oneNotListed, .unexplained,
      .wrongQuestion, .truncated, .unsupported:
      .nextUpstream
    }
  }
}

extension UnreadableReason {
  /// Whether the body is not a reply of the service at all. Sizes, names, data and chains are the zone's.
  fileprivate var isOfService: Bool {
    switch self {
    case .tooLarge, .number, .name, .rdata, .chain, .referral: false
    case .mediaType, .page, .syntax, .nesting, .shape, .message, .cipher, .noServers: true
    }
  }
}

extension LocalDNSFailure {
  var consequence: Consequence {
    switch self {
    case .responseCode: .verdict
    case .noServer: .notAsked
    case .cancelled: .ours
    case .timedOut, .closed, .network, .referral, .bareError, .truncated, .unusable: isOwnLimit ? .ours : .nextUpstream
    }
  }
}
