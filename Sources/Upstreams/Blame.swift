// Blame.swift -- what a failure counts against and what follows from that; docs/internals.md, "Blame", has the
// table.

import DNSWire
import HTTPClient
import HTTPDNS
import LocalDNS

/// What a failure counts against.
package enum Blame: Hashable, CaseIterable, Sendable {
  /// The question: the provider replied that it does not serve this question, or is late with this one only.
  case question
  /// The answer: a reachable server replied, but its answer cannot be returned to a client.
  case answer
  /// The server: another server may succeed.
  case server
  /// The account, its settings or its units: every server of the provider would reply the same.
  case account
  /// The network on the way to the server, or the plain resolvers that it announces.
  case network
  /// Our own limits: the failure says nothing about the provider.
  case ourselves
}

extension Blame {
  /// Whether another server of the same provider may succeed.
  var leadsToNextServer: Bool {
    switch self {
    case .server, .network: true
    case .question, .answer, .account, .ourselves: false
    }
  }

  /// Whether LocalDNS may be asked instead. Not after a reachable provider has replied about a name, and not because of
  /// our own limits.
  var leadsToLocalDNS: Bool {
    switch self {
    case .server, .account, .network: true
    case .question, .answer, .ourselves: false
    }
  }

  /// Whether the failure is cached, so that the question is not sent again at once (RFC 9520).
  package var isRemembered: Bool { self != .ourselves }

  /// Whether the cached failure ends when a provider recovers.
  package var endsWithRecovery: Bool {
    switch self {
    case .server, .account, .network: true
    case .question, .answer, .ourselves: false
    }
  }
}

/// How strongly a failure speaks against a server or an account.
enum Evidence: Hashable, Sendable {
  /// No question can cause it: it counts at once.
  case certain
  /// The question may have caused it: it counts if a question known to be good fails as well.
  case doubtful
  /// Doubtful as well: the timeout expired.
  case late
}

extension HTTPFailure.Kind {
  var blame: Blame {
    switch self {
    case .timeout, .refused, .certificate, .pin, .tls, .reset, .calm, .badHTTP: .server
    case .unreachable, .proxy: .network
    case .tooLarge: .answer
    case .badRequest: .question
    case .busy, .cancelled, .internal: .ourselves
    }
  }

  var evidence: Evidence {
    switch self {
    case .timeout: .late
    case .reset, .calm, .badHTTP, .tooLarge, .badRequest: .doubtful
    case .refused, .certificate, .pin, .tls, .unreachable, .proxy, .busy, .cancelled, .internal: .certain
    }
  }

  var extendedError: ExtendedError {
    switch self {
    case .tooLarge, .badHTTP: .invalidData
    case .busy, .internal, .cancelled, .badRequest: .other
    default: .networkError
    }
  }
}

extension HTTPDNSFailure {
  /// Every refusal of the account is doubtful: a service may refuse a single name with the same code.
  var blame: Blame {
    switch self {
    case .authentication, .expired, .account, .unsigned, .badParameter, .badPath, .quota: .account
    case .name, .unsupported: .question
    case .truncated: .answer
    case .server, .wrongQuestion: .server
    case .unreadable(let reason): reason.blame
    }
  }

  var extendedError: ExtendedError {
    switch self {
    case .unreadable, .wrongQuestion, .truncated: .invalidData
    case .unsupported, .name: .notSupported
    case .server: .noReachableAuthority
    case .authentication, .expired, .account, .unsigned, .badParameter, .badPath, .quota: .other
    }
  }
}

extension UnreadableReason {
  /// The owner of a zone controls sizes, names, data and chains. A body that is not a reply of the service counts
  /// against the server.
  var blame: Blame {
    switch self {
    case .tooLarge, .number, .name, .rdata, .chain, .contradiction, .referral: .answer
    case .mediaType, .page, .syntax, .nesting, .shape, .message, .cipher, .noServers: .server
    }
  }
}

extension LocalDNSFailure {
  var blame: Blame {
    switch self {
    case .responseCode, .referral: .answer
    case .cancelled: .ourselves
    case .noServer, .timedOut, .closed, .network: isOwnLimit ? .ourselves : .network
    }
  }
}
