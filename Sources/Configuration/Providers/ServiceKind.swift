// ServiceKind.swift -- the kinds of providers: their own keys and default URLs.

/// The values of `kind`.
enum ServiceKind: String, CaseIterable {
  case alidns, tencent, emas, json, doh, table

  /// The keys that not every kind has. Secrets are listed without their suffixes.
  var ownKeys: [String] {
    switch self {
    case .alidns: ["account_id", "access_key_id", "access_key_secret", "short", "schedule"]
    case .tencent: ["id", "cipher", "key", "token"]
    case .emas: ["account_id", "secret_key", "api", "aes_secret_key", "aes_mode", "region", "schedule"]
    case .json: ["url"]
    case .doh: ["url", "method"]
    case .table: ["url", "file", "host", "interval", "ttl"]
    }
  }

  /// Whether the key is one of `ownKeys`, with or without the suffix of a secret.
  func owns(_ key: String) -> Bool {
    ["", "_file", "_credential", "_env"].contains { suffix in
      key.hasSuffix(suffix) && ownKeys.contains(String(key.dropLast(suffix.count)))
    }
  }
}

/// The default services.
extension ServiceURL {
  static let aliDNS = ServiceURL(text: "https://dns.alidns.com/resolve")!
  /// The certificates of all boot and service addresses have this name.
  static let emas = ServiceURL(text: "https://resolvers.httpdns.aliyuncs.com/")!
  static let googleJSON = ServiceURL(text: "https://dns.google/resolve")!
  static let googleDoH = ServiceURL(text: "https://dns.google/dns-query")!

  /// Tencent's address for a scheme: one serves HTTP only, the other HTTPS only
  /// (cloud.tencent.com/document/product/379/95497 and …/61200).
  static func tencent(_ scheme: Scheme) -> ServiceURL {
    ServiceURL(text: scheme == .https ? "https://119.29.29.99/d" : "http://119.29.29.98/d")!
  }
}
