// BlameTests.swift -- the table of blames for failures, and their consequences.

import DNSWire
import Glibc
import HTTPClient
import HTTPDNS
import LocalDNS
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct BlameTests {
  @Test func `each kind of failed transfer has a blame`() {
    let table: [HTTPFailure.Kind: Blame] = [
      .timeout: .server, .busy: .ourselves, .refused: .server, .unreachable: .network, .certificate: .server,
      .pin: .server, .tls: .server, .proxy: .network, .reset: .server, .calm: .server, .tooLarge: .answer,
      .badHTTP: .server, .badRequest: .question, .cancelled: .ourselves, .internal: .ourselves,
    ]
    #expect(Set(table.keys) == Set(HTTPFailure.Kind.allCases))
    for kind in HTTPFailure.Kind.allCases { #expect(kind.blame == table[kind], "\(kind)") }
  }

  @Test func `each kind of reply without an answer has a blame`() {
    for failure in [
      HTTPDNSFailure.authentication, .expired, .account, .unsigned, .badParameter, .badPath, .quota(retryAfter: nil),
    ] {
      #expect(failure.blame == .account)
    }
    for failure in [HTTPDNSFailure.name, .unsupported] { #expect(failure.blame == .question) }
    for failure in [HTTPDNSFailure.server(status: 500), .wrongQuestion] { #expect(failure.blame == .server) }
    #expect(HTTPDNSFailure.truncated.blame == .answer)
  }

  @Test func `invalid zone data is the answer's fault, an invalid reply the server's`() {
    for reason in [UnreadableReason.tooLarge, .number, .name, .rdata, .chain, .contradiction, .referral] {
      #expect(HTTPDNSFailure.unreadable(reason).blame == .answer, "\(reason)")
    }
    for reason in [
      UnreadableReason.mediaType, .page, .syntax, .nesting, .shape("Status"), .message, .cipher, .noServers(.nxDomain),
    ] {
      #expect(HTTPDNSFailure.unreadable(reason).blame == .server, "\(reason)")
    }
  }

  @Test func `a plain resolver's RCODE is the answer's fault, its silence the network's`() {
    for code in [ResponseCode.servFail, .refused, .formErr] {
      #expect(LocalDNSFailure.responseCode(code).blame == .answer)
    }
    for failure in [LocalDNSFailure.noServer, .timedOut, .closed, .network(ENETUNREACH)] {
      #expect(failure.blame == .network)
    }
    for failure in [LocalDNSFailure.cancelled, .network(EMFILE)] { #expect(failure.blame == .ourselves) }
  }

  @Test func `only failures of server, account and network lead to LocalDNS and end with them`() {
    let table: [Blame: (next: Bool, local: Bool, remembered: Bool, ends: Bool)] = [
      .question: (false, false, true, false), .answer: (false, false, true, false), .server: (true, true, true, true),
      .account: (false, true, true, true), .network: (true, true, true, true),
      .ourselves: (false, false, false, false),
    ]
    #expect(table.count == Blame.allCases.count)
    for blame in Blame.allCases {
      let row = table[blame]!
      #expect(blame.leadsToNextServer == row.next && blame.leadsToLocalDNS == row.local, "\(blame)")
      #expect(blame.isRemembered == row.remembered && blame.endsWithRecovery == row.ends, "\(blame)")
    }
    var late = UpstreamFailure(.networkError, "late", .question)
    #expect(late.isFinal && !late.leadsToLocalDNS)
    late.isLate = true
    #expect(!late.isFinal && late.leadsToLocalDNS)
  }

  @Test func `the reason that a validator gives is passed on, and no other one is made up`() {
    let bogus = UpstreamFailure.refused(.servFail, by: "192.0.2.1", ExtendedError(rawValue: 9))
    #expect(bogus.isBogus && bogus.isFinal && bogus.extendedError.rawValue == 9)
    let plain = UpstreamFailure.refused(.refused, by: nil)
    #expect(!plain.isBogus && plain.isFinal && plain.extendedError == .other)
  }
}
