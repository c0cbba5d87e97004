// ConsequenceTests.swift -- where a question goes after each failure: every row of the table of docs/providers.md.

import DNSWire
import Glibc
import HTTPClient
import HTTPDNS
import LocalDNS
import Testing

@testable import Upstreams

@Suite struct ConsequenceTests {
  @Test func `what the HTTP client reports`() {
    for kind in HTTPFailure.Kind.allCases {
      let expected: Consequence =
        switch kind {
        case .refused, .unreachable, .certificate, .pin, .tls, .proxy: .notAsked
        case .timeout, .reset, .badHTTP: .nextServer
        case .calm, .tooLarge, .badRequest: .nextUpstream
        case .busy, .cancelled, .internal: .ours
        }
      #expect(UpstreamFailure(HTTPFailure(kind, "", wasSent: true)).consequence == expected, "\(kind)")
    }
    // A connection that did not come about in time has asked nothing.
    #expect(UpstreamFailure(HTTPFailure(.timeout, "")).consequence == .notAsked)
  }

  @Test func `another server is asked after faults of a server, and not after refusals or nonsense`() {
    for status in [500, 502, 503, 504, 408, 421, 302, 204, 0] {
      #expect(HTTPDNSFailure.status(status).consequence == .nextServer, "\(status)")
    }
    for status in [400, 401, 403, 404, 405, 413, 429, 501] {
      #expect(HTTPDNSFailure.status(status).consequence == .nextUpstream, "\(status)")
    }
    for reason in [UnreadableReason.mediaType, .page, .syntax, .nesting, .shape("a"), .message, .cipher] {
      #expect(HTTPDNSFailure.unreadable(reason).consequence == .nextServer, "\(reason)")
    }
    for reason in [UnreadableReason.tooLarge, .number, .name, .rdata, .chain, .referral] {
      #expect(HTTPDNSFailure.unreadable(reason).consequence == .nextUpstream, "\(reason)")
    }
    #expect(HTTPDNSFailure.fault.consequence == .nextServer)
    for failure in [
      HTTPDNSFailure.authentication, .expired, .account, .unsigned, .quota, .name, .wrongQuestion, .truncated,
      .unsupported,
    ] {
      #expect(failure.consequence == .nextUpstream, "\(failure)")
    }
  }

  @Test func `a code of a plain resolver is a verdict, unlike its silence, and our own limits are ours`() {
    #expect(LocalDNSFailure.responseCode(.servFail).consequence == .verdict)
    #expect(LocalDNSFailure.noServer.consequence == .notAsked)
    #expect(LocalDNSFailure.cancelled.consequence == .ours)
    for failure in [LocalDNSFailure.timedOut, .closed, .referral, .network(ECONNREFUSED)] {
      #expect(failure.consequence == .nextUpstream)
    }
    for code in [EMFILE, ENFILE, ENOBUFS, ENOMEM, EAGAIN] {
      #expect(LocalDNSFailure.network(code).consequence == .ours)
    }
  }

  @Test func `LocalDNS is asked if there is no verdict and no limit of ours`() {
    #expect(
      Consequence.allCases.filter(\.leadsToLocalDNS) == [.nextServer, .nextUpstream, .notAsked])
    #expect(Consequence.allCases.filter(\.isRemembered) == [.verdict, .nextServer, .nextUpstream])
    #expect(Consequence.allCases.filter(\.isOurs) == [.limit, .ours])
  }

  @Test func `only a validator's verdict ends the search`() {
    #expect(UpstreamFailure.refused(.servFail, by: nil, ExtendedError(rawValue: 6)).isBogus)
    #expect(!UpstreamFailure.refused(.servFail, by: nil).isBogus)
    #expect(!UpstreamFailure(ExtendedError(rawValue: 6), "data that make no sense", .nextUpstream).isBogus)
  }
}
