// ProviderKind.swift -- the kinds of providers: the protocol that each speaks, and what follows from it.
//
// The keys of each kind are in Kinds, the protocols themselves in the module HTTPDNS.

extension Configuration {
  /// The kind of a provider: its protocol, with the keys that belong to it.
  public enum ProviderKind: Hashable, Sendable {
    /// Alibaba Cloud DNS, unsigned without an account; `short` requests addresses only. If it is scheduled, the servers
    /// published under `auto.sdk.alidns.com` are tried before the configured ones.
    case alidns(account: AliDNSAccount?, short: Bool, isScheduled: Bool = false)
    /// Tencent Cloud HTTPDNS. With `expiry`, each request says until when it is valid.
    case tencent(TencentAccount, expiry: Duration? = nil)
    /// EMAS HTTPDNS of Alibaba Cloud.
    case emas(EMASAccount)
    /// Baidu Cloud HTTPDNS.
    case baidu(SecretAccount)
    /// Volcengine (ByteDance) HTTPDNS.
    case volcengine(SecretAccount)
    /// JD Cloud HTTPDNS.
    case jdcloud(SecretAccount)
    /// UCloud HTTPDNS. With `appID`, the account is that of an application; if it is scheduled, the nodes that the
    /// service names are tried before the configured servers.
    case ucloud(SecretAccount, appID: String?, isScheduled: Bool)
    /// The JSON API of Google and Cloudflare.
    case json
    /// DNS over HTTPS (DoH, RFC 8484).
    case doh(method: DoHMethod)
    /// A service of plain text.
    case text(TextForm, url: ProviderURL)
    /// A self-maintained table of names and addresses.
    case table(TableSource)
  }
}

/// The values of `kind`.
enum ProviderKindName: String, CaseIterable {
  case alidns, tencent, emas, baidu, volcengine, jdcloud, ucloud, json, doh, text, table

  /// The keys that not every kind has, by kind.
  private static let ownKeys: [String: [String]] = {
    let tables = Configuration.knownKeys.filter { $0.place.pattern == "provider" }
    var own: [String: [String]] = [:]
    for table in tables {
      own[table.place.text] = table.keys.filter { key in !tables.allSatisfy { $0.keys.contains(key) } }
    }
    return own
  }()

  /// Whether this kind has the key and not every other.
  func owns(_ key: String) -> Bool { ProviderKindName.ownKeys["provider[\"\(rawValue)\"]"]?.contains(key) == true }
}

extension Configuration.Provider {
  mutating func read(_ kind: ProviderKindName, from reader: TableReader) {
    switch kind {
    case .alidns: readAliDNS(from: reader)
    case .tencent: readTencent(from: reader)
    case .emas: readEMAS(from: reader)
    case .baidu: readBaidu(from: reader)
    case .volcengine: readVolcengine(from: reader)
    case .jdcloud: readJDCloud(from: reader)
    case .ucloud: readUCloud(from: reader)
    case .json: readJSON(from: reader)
    case .doh: readDoH(from: reader)
    case .text: readText(from: reader)
    case .table: readTable(from: reader)
    }
  }
}

extension Configuration.ProviderKind {
  /// Whether requests identify an account.
  public var hasAccount: Bool { !accountKeys.isEmpty }

  /// The keys that identify the account to the provider, secrets without their suffixes; empty without an account.
  package var accountKeys: [String] {
    switch self {
    case .alidns(let account, _, _): account == nil ? [] : Configuration.AliDNSAccount.accountKeys
    case .tencent(let account, _): account.accountKeys
    case .emas(let account): account.accountKeys
    case .baidu: ["account_id", "secret"]
    case .volcengine: ["account_id", "secret_key"]
    case .jdcloud: ["account_id", "key"]
    case .ucloud: ["auth_id", "auth_secret", "app_id"]
    case .json, .doh, .text, .table: []
    }
  }

  /// Whose units the provider counts, without secrets, and not how they are asked for; nil for kinds without an account.
  package var account: String? {
    switch self {
    case .alidns(let account, _, _): "alidns \(account?.accountID ?? "")"
    case .tencent(.https(_, let id), _): "tencent \(id ?? "")"
    case .tencent(.aes(let id, _), _), .tencent(.des(let id, _), _): "tencent \(id)"
    case .emas(let account): "emas \(account.accountID)"
    case .baidu(let account): "baidu \(account.id)"
    case .volcengine(let account): "volcengine \(account.id)"
    case .jdcloud(let account): "jdcloud \(account.id)"
    case .ucloud(let account, _, _): "ucloud \(account.id)"
    case .json, .doh, .text, .table: nil
    }
  }

  /// Whether the account may demand `expiry`, which is not set.
  package var mayLackExpiry: Bool { if case .tencent(_, nil) = self { true } else { false } }

  /// The keys that say where the provider is, the most likely one first.
  package var placeKeys: [String] {
    switch self {
    case .alidns, .tencent, .emas, .baidu, .volcengine, .jdcloud, .ucloud: ["servers"]
    case .json, .doh, .text, .table: ["url", "servers"]
    }
  }

  /// The keys that decide between http and https, besides the ports in `servers`.
  package var schemeKeys: [String] {
    switch self {
    case .alidns, .emas, .baidu, .volcengine, .jdcloud, .ucloud: ["scheme"]
    case .tencent: ["cipher", "scheme"]
    case .json, .doh, .text, .table: ["url"]
    }
  }

  /// The keys that say for which name the servers' certificates are.
  package var nameKeys: [String] {
    switch self {
    case .alidns, .tencent, .emas, .baidu, .volcengine, .jdcloud, .ucloud, .json, .doh, .text: ["tls_name"]
    case .table: ["host"]
    }
  }

  /// Whether replies are encrypted independently of TLS.
  var encryptsReplies: Bool {
    switch self {
    case .tencent(.https, _), .alidns, .baidu, .volcengine, .jdcloud, .ucloud, .json, .doh, .text, .table: false
    case .tencent(.aes, _), .tencent(.des, _): true
    case .emas(let account): account.aesSecretKey != nil
    }
  }

  /// Whether requests can carry DO and CD. If not, questions that differ only in these flags give the same transfer.
  package var knowsDNSSECFlags: Bool {
    switch self {
    case .json, .doh: true
    case .alidns, .tencent, .emas, .baidu, .volcengine, .jdcloud, .ucloud, .text, .table: false
    }
  }

  /// Whether a list of servers is fetched that may contain names. That of EMAS has addresses only.
  package var listsServerNames: Bool {
    switch self {
    case .alidns(_, _, let isScheduled), .ucloud(_, _, let isScheduled): isScheduled
    case .emas, .tencent, .baidu, .volcengine, .jdcloud, .json, .doh, .text, .table: false
    }
  }

  /// What a cached answer of the provider depends on: the kind and its own keys; of a secret, only whether there is one.
  ///
  /// The cache file contains fingerprints of these texts: if one changes, the next start drops the provider's entries.
  package var meaning: String {
    switch self {
    case .alidns(let account, let isShort, let isScheduled):
      "alidns \(account?.meaning ?? "unsigned") short=\(isShort) schedule=\(isScheduled)"
    case .tencent(let account, _): "tencent \(account.meaning)"
    case .emas(let account): "emas \(account.meaning)"
    case .baidu(let account): "baidu account=\(account.id)"
    case .volcengine(let account): "volcengine account=\(account.id)"
    case .jdcloud(let account): "jdcloud account=\(account.id)"
    case .ucloud(let account, let appID, let isScheduled):
      "ucloud account=\(account.id) app=\(appID ?? "-") schedule=\(isScheduled)"
    case .json: "json"
    case .doh(let method): "doh \(method.rawValue)"
    case .text(let form, let url): "text \(form.rawValue) url=\(url)"
    case .table(let table): "table \(table.meaning)"
    }
  }
}
