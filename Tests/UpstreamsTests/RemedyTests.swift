// RemedyTests.swift -- remedies name the keys that the provider's kind has.

import Ciphers
import Configuration
import EventLoop
import HTTPClient
import HTTPDNS
import Testing

@testable import Upstreams

@Suite struct RemedyTests {
  private typealias Kind = Configuration.ProviderKind

  private static let secret = Secret("00")
  private static let kinds: [(kind: Kind, account: String)] = [
    (
      .alidns(account: .init(accountID: "1", accessKeyID: "2", accessKeySecret: secret), short: false),
      "check account_id, access_key_id and access_key_secret"
    ),
    (.alidns(account: nil, short: false), "check servers, and whether the service admits this client"),
    (.tencent(.https(token: secret, id: nil)), "check token"),
    (.tencent(.https(token: secret, id: "1")), "check token and id"),
    (.tencent(.aes(id: "1", key: secret)), "check id and key"),
    (.tencent(.des(id: "1", key: secret)), "check id and key"),
    (.emas(.init(accountID: "1")), "check account_id and secret_key"),
    (
      .emas(.init(accountID: "1", secretKey: secret, api: .v2, aesSecretKey: secret)),
      "check account_id, secret_key and aes_secret_key"
    ),
    (.json, "check url or servers, and whether the service admits this client"),
    (.doh(method: .post), "check url or servers, and whether the service admits this client"),
  ]

  @Test func `refused credentials name the keys of the kind's account`() {
    for (kind, remedy) in RemedyTests.kinds { #expect(HTTPDNSFailure.authentication.remedy(kind) == remedy) }
  }

  @Test func `too many requests lead to requests_per_second first, and no quota is called used up`() {
    for (kind, _) in RemedyTests.kinds {
      #expect(
        HTTPDNSFailure.quota(retryAfter: nil).remedy(kind)
          == "set requests_per_second lower, or raise the quota in the provider's console")
    }
    #expect("\(HTTPDNSFailure.quota(retryAfter: nil))" == "too many requests")
  }

  @Test func `a certificate for another name leads to the key that sets the name`() {
    let reason = "SSL: no alternative certificate subject name matches target host name 'dns.example'"
    let mismatch = HTTPFailure(.certificate, reason)
    for (kind, _) in RemedyTests.kinds {
      #expect(mismatch.remedy(kind, isByProxy: false) == "check tls_name")
    }
    #expect(HTTPFailure(.certificate, "certificate has expired").remedy(.json, isByProxy: false).isEmpty)
  }

  @Test func `refused parameters, paths and connections name url first if the kind has it`() {
    for (kind, _) in RemedyTests.kinds {
      let place =
        switch kind {
        case .json, .doh, .table: "url or servers"
        case .alidns, .tencent, .emas: "servers"
        }
      #expect(HTTPDNSFailure.badParameter.remedy(kind) == "check \(place), then the provider's other keys")
      #expect(
        HTTPDNSFailure.badPath.remedy(kind).hasSuffix(place)
          || HTTPDNSFailure.badPath.remedy(kind).contains("\(place):"))
      let refused = HTTPFailure(.refused, "Connection refused")
      #expect(refused.remedy(kind, isByProxy: false) == "nothing listens there, or a firewall refuses; check \(place)")
      #expect(refused.remedy(kind, isByProxy: true) == "nothing listens there, or a firewall refuses; check proxy")
      #expect(HTTPFailure(.timeout, "no response").remedy(kind, isByProxy: false).isEmpty)
    }
  }
}
