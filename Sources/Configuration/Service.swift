// Service.swift -- what is spoken with a provider: one case for each kind, with that kind's own keys.

import Ciphers

extension Configuration {
  /// What is spoken with a provider.
  public enum Service: Hashable, Sendable {
    /// Alibaba Cloud DNS; without an account unsigned, `short` asks for addresses only. Where it is
    /// scheduled, the servers that it publishes under `auto.sdk.alidns.com` come before the provider's own.
    case alidns(account: AliDNSAccount?, short: Bool, isScheduled: Bool = false)
    /// Tencent Cloud HTTPDNS.
    case tencent(TencentAccount)
    /// EMAS HTTPDNS of Alibaba Cloud.
    case emas(EMASAccount)
    /// JSON over HTTP as Google and Cloudflare have it.
    case json
    /// RFC 8484.
    case doh(method: DoHMethod)
    /// A table of names and addresses that somebody keeps himself.
    case table(TableSource)
  }

  /// An account of Alibaba Cloud DNS.
  public struct AliDNSAccount: Hashable, Sendable {
    /// The account's number, sent as `uid`.
    public var accountID: String
    /// The AccessKey's public part, sent as `ak`.
    public var accessKeyID: String
    /// The AccessKey's secret part.
    public var accessKeySecret: Secret

    /// An account of these parts.
    public init(accountID: String, accessKeyID: String, accessKeySecret: Secret) {
      self.accountID = accountID
      self.accessKeyID = accessKeyID
      self.accessKeySecret = accessKeySecret
    }
  }

  /// The HTTP method of RFC 8484 transfers.
  public enum DoHMethod: String, CaseIterable, Hashable, Sendable {
    /// The query is the body: shorter URLs, and nothing of it in logs on the way.
    case post
    /// The query is in the URL: caches on the way can answer.
    case get
  }
}

extension Configuration.Service {
  /// Whether the service knows who asks.
  public var hasAccount: Bool {
    switch self {
    case .alidns(let account, _, _): account != nil
    case .tencent, .emas: true
    case .json, .doh, .table: false
    }
  }

  /// Whether a reply is encrypted also where the transport is not.
  var encryptsReplies: Bool {
    switch self {
    case .tencent(.aes), .tencent(.des): true
    case .emas(let account): account.aesSecretKey != nil
    default: false
    }
  }
}

extension Configuration.AliDNSAccount {
  /// The account of a provider: all of its three keys, or nil.
  init?(from reader: TableReader) {
    let isSecretGiven = reader.isSecretGiven("access_key_secret")
    let keys = [("account_id", reader.isGiven("account_id")), ("access_key_id", reader.isGiven("access_key_id"))]
    guard isSecretGiven || keys.contains(where: { $0.1 }) else { return nil }
    for (key, isGiven) in keys where !isGiven {
      reader.require(key, allowed: "all of account_id, access_key_id and access_key_secret_file, or none (unsigned)")
    }
    if !isSecretGiven {
      reader.require(
        "access_key_secret", allowed: "access_key_secret_file, _credential or _env beside the account's other keys")
    }
    var (accountID, accessKeyID) = ("", "")
    reader.read("account_id", &accountID, .identifier)
    reader.read("access_key_id", &accessKeyID, .identifier)
    guard let secret = reader.secret("access_key_secret") else { return nil }
    self.init(accountID: accountID, accessKeyID: accessKeyID, accessKeySecret: secret)
  }
}
