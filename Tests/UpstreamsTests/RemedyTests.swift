// RemedyTests.swift -- remedies name the keys that the provider's kind has.

import Ciphers
import EventLoop
import HTTPClient
import HTTPDNS
import Testing

@testable import Configuration
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
    (.baidu(.init(id: "1", secret: secret)), "check account_id and secret"),
    (.volcengine(.init(id: "1", secret: secret)), "check account_id and secret_key"),
    (.jdcloud(.init(id: "1", secret: secret)), "check account_id and key"),
    (
      .ucloud(.init(id: "1", secret: secret), appID: nil, isScheduled: true),
      "check auth_id, auth_secret and app_id"
    ),
    (.json, "check url or servers, and whether the service admits this client"),
    (
      .text(.dnspod, url: ProviderURL(text: "http://192.0.2.1/d")!),
      "check url or servers, and whether the service admits this client"
    ),
    (.doh(method: .post), "check url or servers, and whether the service admits this client"),
  ]

  private static let table = Kind.table(.init(location: .url(ProviderURL(text: "https://192.0.2.10/table.json")!)))

  private func provider(
    _ kind: Configuration.ProviderKind, requestsPerSecond: Int = 0, proxy: String? = nil
  ) -> Configuration.Provider {
    var provider = Configuration.Provider()
    provider.kind = kind
    provider.requestsPerSecond = requestsPerSecond
    provider.proxy = proxy.flatMap { CredentialURL(text: $0, schemes: ["http"]) }
    return provider
  }

  @Test func `refused credentials name the keys of the kind's account`() {
    for (kind, remedy) in RemedyTests.kinds {
      #expect(HTTPDNSFailure.authentication.remedy(provider(kind)) == remedy)
      let isRefusal = HTTPDNSFailure.authentication.text(kind) == "the provider refused the request"
      #expect(isRefusal == !kind.hasAccount, "without an account there are no credentials")
    }
  }

  @Test func `an account that is not served leads to account_id, a request without a signature to secret_key`() {
    let emas = provider(.emas(.init(accountID: "1")))
    #expect(
      HTTPDNSFailure.account.remedy(emas)
        == "check account_id, and in the provider's console that the account exists, is paid for, and may be used this "
        + "way")
    #expect(
      HTTPDNSFailure.unsigned.remedy(emas) == "set secret_key, or switch signed access off in the provider's console")
  }

  @Test func `too many requests lead to requests_per_second first, and no quota is called used up`() {
    let quota = HTTPDNSFailure.quota
    for (kind, _) in RemedyTests.kinds {
      let console = kind.hasAccount ? ", or raise the quota in the provider's console" : ""
      #expect(quota.remedy(provider(kind)) == "set requests_per_second\(console)")
      #expect(quota.remedy(provider(kind, requestsPerSecond: 5)) == "set requests_per_second lower\(console)")
    }
    #expect(quota.remedy(provider(RemedyTests.table)) == "set a longer interval")
    #expect("\(quota)" == "too many requests")
  }

  @Test func `a certificate for another name leads to the key that sets the name`() {
    let reason = "SSL: no alternative certificate subject name matches target host name 'dns.example'"
    let mismatch = HTTPFailure(.certificate, reason)
    for (kind, _) in RemedyTests.kinds { #expect(mismatch.remedy(provider(kind)) == "check tls_name") }
    #expect(mismatch.remedy(provider(RemedyTests.table)) == "check host")
    #expect(HTTPFailure(.certificate, "certificate has expired").remedy(provider(.json)).isEmpty)
  }

  @Test func `a port of the other scheme leads to the keys that decide about the scheme`() {
    for (kind, _) in RemedyTests.kinds + [(RemedyTests.table, "")] {
      let keys =
        switch kind {
        case .json, .doh, .text, .table: "url"
        case .alidns, .emas, .baidu, .volcengine, .jdcloud, .ucloud: "scheme"
        case .tencent: "cipher, scheme"
        }
      for failure in [
        HTTPFailure(.tls, "the server does not speak TLS; is it an http port?"),
        HTTPFailure(.reset, "closed; is it an https port?"),
      ] {
        #expect(failure.remedy(provider(kind)) == "check \(keys) or the port in servers")
      }
      #expect(HTTPFailure(.reset, "closed").remedy(provider(kind)).isEmpty)
    }
  }

  @Test func `refused parameters, paths and connections name url first if the kind has it`() {
    for (kind, _) in RemedyTests.kinds {
      let place =
        switch kind {
        case .json, .doh, .text, .table: "url or servers"
        case .alidns, .tencent, .emas, .baidu, .volcengine, .jdcloud, .ucloud: "servers"
        }
      let (direct, proxied) = (provider(kind), provider(kind, proxy: "http://192.0.2.3:3128"))
      #expect(HTTPDNSFailure.status(400).remedy(direct) == "check \(place), then the provider's other keys")
      #expect(
        HTTPDNSFailure.status(404).remedy(direct).hasSuffix(place)
          || HTTPDNSFailure.status(404).remedy(direct).contains("\(place):"))
      let refused = HTTPFailure(.refused, "Connection refused")
      #expect(refused.remedy(direct) == "nothing listens there, or a firewall refuses; check \(place)")
      #expect(refused.remedy(proxied) == "nothing listens there, or a firewall refuses; check proxy")
      for failure in [HTTPFailure(.timeout, "no response in time"), HTTPFailure(.unreachable, "No route to host")] {
        #expect(failure.remedy(direct) == "check \(place), and this machine's network")
        #expect(failure.remedy(proxied) == "check proxy, and this machine's network")
      }
    }
  }
}
