// Service.swift -- the protocol of a provider: one case for each kind, with the keys of that kind.

import Ciphers

extension Configuration {
  /// The protocol of a provider.
  public enum Service: Hashable, Sendable {
    /// Alibaba Cloud DNS, unsigned without an account; `short` requests addresses only. If it is scheduled, the servers
    /// published under `auto.sdk.alidns.com` are tried before the configured ones.
    case alidns(account: AliDNSAccount?, short: Bool, isScheduled: Bool = false)
    /// Tencent Cloud HTTPDNS.
    case tencent(TencentAccount)
    /// EMAS HTTPDNS of Alibaba Cloud.
    case emas(EMASAccount)
    /// The JSON API of Google and Cloudflare.
    case json
    /// DNS over HTTPS (DoH, RFC 8484).
    case doh(method: DoHMethod)
    /// A self-maintained table of names and addresses.
    case table(TableSource)
  }

  /// An account of Alibaba Cloud DNS.
  public struct AliDNSAccount: Hashable, Sendable {
    /// The account id, sent as `uid`.
    public var accountID: String
    /// The public part of the AccessKey, sent as `ak`.
    public var accessKeyID: String
    /// The secret part of the AccessKey; never sent.
    public var accessKeySecret: Secret

    /// Creates an account.
    public init(accountID: String, accessKeyID: String, accessKeySecret: Secret) {
      self.accountID = accountID
      self.accessKeyID = accessKeyID
      self.accessKeySecret = accessKeySecret
    }
  }

  /// The HTTP method of RFC 8484 transfers.
  public enum DoHMethod: String, CaseIterable, Hashable, Sendable {
    /// The query is the body: URLs are short, and names do not appear in the logs of proxies.
    case post
    /// The query is in the URL: HTTP caches can answer.
    case get
  }
}

extension Configuration.Service {
  /// Whether requests identify an account.
  public var hasAccount: Bool {
    switch self {
    case .alidns(let account, _, _): account != nil
    case .tencent, .emas: true
    case .json, .doh, .table: false
    }
  }

  /// Whether replies are encrypted independently of TLS.
  var encryptsReplies: Bool {
    switch self {
    case .tencent(.aes), .tencent(.des): true
    case .emas(let account): account.aesSecretKey != nil
    default: false
    }
  }
}

extension Configuration.AliDNSAccount {
  /// Reads the account of a provider; nil if none of its three keys is given. Records a mistake if only some are.
  init?(from reader: TableReader) {
    let isSecretGiven = reader.isSecretGiven("access_key_secret")
    let keys = [("account_id", reader.isGiven("account_id")), ("access_key_id", reader.isGiven("access_key_id"))]
    guard isSecretGiven || keys.contains(where: { $0.1 }) else { return nil }
    for (key, isGiven) in keys where !isGiven {
      reader.require(key, allowed: "account_id, access_key_id and access_key_secret_file together, or none (unsigned)")
    }
    if !isSecretGiven {
      reader.require(
        "access_key_secret", allowed: "access_key_secret_file, _credential or _env with account_id and access_key_id")
    }
    var (accountID, accessKeyID) = ("", "")
    reader.read("account_id", &accountID, .identifier)
    reader.read("access_key_id", &accessKeyID, .identifier)
    guard let secret = reader.secret("access_key_secret") else { return nil }
    self.init(accountID: accountID, accessKeyID: accessKeyID, accessKeySecret: secret)
  }
}
